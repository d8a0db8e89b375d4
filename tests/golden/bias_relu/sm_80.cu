extern "C" __global__ void __launch_bounds__(64) main_kernel(ushort* __restrict__ A, ushort* __restrict__ B, float* __restrict__ bias, ushort* __restrict__ C);
#line 64 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(ushort* __restrict__ A, ushort* __restrict__ B, float* __restrict__ bias, ushort* __restrict__ C) {
  __shared__ alignas(128) ushort A_shared_ptr[1024];
  __shared__ alignas(128) ushort B_shared_ptr[1024];
  alignas(64) float acc_ptr[16];
  alignas(16) ushort A_in_ptr[8];
  alignas(16) ushort A_in_1_ptr[8];
  alignas(16) ushort B_in_ptr[8];
  alignas(16) ushort B_in_1_ptr[8];
  alignas(16) uint a_frag_ptr[4];
  alignas(32) uint b_frag_ptr[8];
  alignas(8) float bias_in_ptr[2];
  alignas(8) float bias_in_1_ptr[2];
  alignas(8) float bias_in_2_ptr[2];
  alignas(8) float bias_in_3_ptr[2];
  alignas(4) ushort C_out_ptr[2];
  alignas(4) ushort C_out_1_ptr[2];
  alignas(4) ushort C_out_2_ptr[2];
  alignas(4) ushort C_out_3_ptr[2];
  alignas(4) ushort C_out_4_ptr[2];
  alignas(4) ushort C_out_5_ptr[2];
  alignas(4) ushort C_out_6_ptr[2];
  alignas(4) ushort C_out_7_ptr[2];
#line 74 "tests/tilelang_min/driver/golden_kernels.py"
  if (((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) {
    *(uint4*)(A_in_ptr + 0) = *(uint4*)(A + ((((int)blockIdx.y) * 1024) + (((int)threadIdx.x) * 8)));
  } else {
      uint4 v_ = make_uint4((((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537));
    *(uint4*)(A_in_ptr + 0) = (*(uint4 *)(&(v_)));
  }
  *(uint4*)(A_shared_ptr + (((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8))) = *(uint4*)(A_in_ptr + 0);
  if ((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) {
    *(uint4*)(A_in_1_ptr + 0) = *(uint4*)(A + (((((int)blockIdx.y) * 1024) + (((int)threadIdx.x) * 8)) + 512));
  } else {
      uint4 v__1 = make_uint4((((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537));
    *(uint4*)(A_in_1_ptr + 0) = (*(uint4 *)(&(v__1)));
  }
  *(uint4*)(A_shared_ptr + ((((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8)) + 512)) = *(uint4*)(A_in_1_ptr + 0);
#line 75 "tests/tilelang_min/driver/golden_kernels.py"
  if (((((int)blockIdx.x) * 32) + (((int)threadIdx.x) >> 2)) < 44) {
    *(uint4*)(B_in_ptr + 0) = *(uint4*)(B + ((((int)blockIdx.x) * 1024) + (((int)threadIdx.x) * 8)));
  } else {
      uint4 v__2 = make_uint4((((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537));
    *(uint4*)(B_in_ptr + 0) = (*(uint4 *)(&(v__2)));
  }
  *(uint4*)(B_shared_ptr + (((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8))) = *(uint4*)(B_in_ptr + 0);
  if ((((((int)blockIdx.x) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) {
    *(uint4*)(B_in_1_ptr + 0) = *(uint4*)(B + (((((int)blockIdx.x) * 1024) + (((int)threadIdx.x) * 8)) + 512));
  } else {
      uint4 v__3 = make_uint4((((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537), (((uint)(ushort)0) * (uint)65537));
    *(uint4*)(B_in_1_ptr + 0) = (*(uint4 *)(&(v__3)));
  }
  *(uint4*)(B_shared_ptr + ((((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8)) + 512)) = *(uint4*)(B_in_1_ptr + 0);
#line 76 "tests/tilelang_min/driver/golden_kernels.py"
  acc_ptr[0] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[1] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[2] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[3] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[4] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[5] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[6] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[7] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[8] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[9] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[10] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[11] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[12] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[13] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[14] = 0x0p+0f/*0.000000e+00*/;
  acc_ptr[15] = 0x0p+0f/*0.000000e+00*/;
#line 77 "tests/tilelang_min/driver/golden_kernels.py"
  __syncthreads();
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 5) * 512) + ((((int)threadIdx.x) & 15) * 32)) + ((((((int)threadIdx.x) & 31) >> 4) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(b_frag_ptr[0], b_frag_ptr[1], b_frag_ptr[2], b_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((((int)threadIdx.x) & 31) >> 4) * 256) + ((((int)threadIdx.x) & 7) * 32)) + ((((((int)threadIdx.x) & 15) >> 3) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(b_frag_ptr[4], b_frag_ptr[5], b_frag_ptr[6], b_frag_ptr[7], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((((((int)threadIdx.x) & 31) >> 4) * 256) + ((((int)threadIdx.x) & 7) * 32)) + ((((((int)threadIdx.x) & 15) >> 3) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8)) + 512)]))));
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[0], acc_ptr[1], acc_ptr[2], acc_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], acc_ptr[0], acc_ptr[1], acc_ptr[2], acc_ptr[3]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[4], acc_ptr[5], acc_ptr[6], acc_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], acc_ptr[4], acc_ptr[5], acc_ptr[6], acc_ptr[7]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[8], acc_ptr[9], acc_ptr[10], acc_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], acc_ptr[8], acc_ptr[9], acc_ptr[10], acc_ptr[11]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[12], acc_ptr[13], acc_ptr[14], acc_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], acc_ptr[12], acc_ptr[13], acc_ptr[14], acc_ptr[15]);
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 5) * 512) + ((((int)threadIdx.x) & 15) * 32)) + (((((((int)threadIdx.x) & 31) >> 4) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(b_frag_ptr[0], b_frag_ptr[1], b_frag_ptr[2], b_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((((int)threadIdx.x) & 31) >> 4) * 256) + ((((int)threadIdx.x) & 7) * 32)) + (((((((int)threadIdx.x) & 15) >> 3) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(b_frag_ptr[4], b_frag_ptr[5], b_frag_ptr[6], b_frag_ptr[7], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((((((int)threadIdx.x) & 31) >> 4) * 256) + ((((int)threadIdx.x) & 7) * 32)) + (((((((int)threadIdx.x) & 15) >> 3) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8)) + 512)]))));
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[0], acc_ptr[1], acc_ptr[2], acc_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], acc_ptr[0], acc_ptr[1], acc_ptr[2], acc_ptr[3]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[4], acc_ptr[5], acc_ptr[6], acc_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], acc_ptr[4], acc_ptr[5], acc_ptr[6], acc_ptr[7]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[8], acc_ptr[9], acc_ptr[10], acc_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], acc_ptr[8], acc_ptr[9], acc_ptr[10], acc_ptr[11]);
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(acc_ptr[12], acc_ptr[13], acc_ptr[14], acc_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], acc_ptr[12], acc_ptr[13], acc_ptr[14], acc_ptr[15]);
#line 78 "tests/tilelang_min/driver/golden_kernels.py"
  *(float2*)(bias_in_ptr + 0) = *(float2*)(bias + ((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)));
  acc_ptr[0] = max((acc_ptr[0] + bias_in_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[1] = max((acc_ptr[1] + bias_in_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[2] = max((acc_ptr[2] + bias_in_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[3] = max((acc_ptr[3] + bias_in_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  if ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44) {
    *(float2*)(bias_in_1_ptr + 0) = *(float2*)(bias + (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8));
  } else {
    *(float2*)(bias_in_1_ptr + 0) = make_float2(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
  }
  acc_ptr[4] = max((acc_ptr[4] + bias_in_1_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[5] = max((acc_ptr[5] + bias_in_1_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[6] = max((acc_ptr[6] + bias_in_1_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[7] = max((acc_ptr[7] + bias_in_1_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  if ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44) {
    *(float2*)(bias_in_2_ptr + 0) = *(float2*)(bias + (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16));
  } else {
    *(float2*)(bias_in_2_ptr + 0) = make_float2(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
  }
  acc_ptr[8] = max((acc_ptr[8] + bias_in_2_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[9] = max((acc_ptr[9] + bias_in_2_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[10] = max((acc_ptr[10] + bias_in_2_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[11] = max((acc_ptr[11] + bias_in_2_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  if ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44) {
    *(float2*)(bias_in_3_ptr + 0) = *(float2*)(bias + (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24));
  } else {
    *(float2*)(bias_in_3_ptr + 0) = make_float2(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
  }
  acc_ptr[12] = max((acc_ptr[12] + bias_in_3_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[13] = max((acc_ptr[13] + bias_in_3_ptr[1]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[14] = max((acc_ptr[14] + bias_in_3_ptr[0]), 0x0p+0f/*0.000000e+00*/);
  acc_ptr[15] = max((acc_ptr[15] + bias_in_3_ptr[1]), 0x0p+0f/*0.000000e+00*/);
#line 80 "tests/tilelang_min/driver/golden_kernels.py"
  C_out_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[0]);
  C_out_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[1]);
  if ((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) {
    *(ushort2*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2))) = *(ushort2*)(C_out_ptr + 0);
  }
  C_out_1_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[2]);
  C_out_1_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[3]);
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 352)) = *(ushort2*)(C_out_1_ptr + 0);
  }
  C_out_2_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[4]);
  C_out_2_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[5]);
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 8)) = *(ushort2*)(C_out_2_ptr + 0);
  }
  C_out_3_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[6]);
  C_out_3_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[7]);
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 360)) = *(ushort2*)(C_out_3_ptr + 0);
  }
  C_out_4_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[8]);
  C_out_4_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[9]);
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 16)) = *(ushort2*)(C_out_4_ptr + 0);
  }
  C_out_5_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[10]);
  C_out_5_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[11]);
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 368)) = *(ushort2*)(C_out_5_ptr + 0);
  }
  C_out_6_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[12]);
  C_out_6_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[13]);
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 24)) = *(ushort2*)(C_out_6_ptr + 0);
  }
  C_out_7_ptr[0] = __tl_convert_float32_bfloat16(acc_ptr[14]);
  C_out_7_ptr[1] = __tl_convert_float32_bfloat16(acc_ptr[15]);
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(ushort2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 376)) = *(ushort2*)(C_out_7_ptr + 0);
  }
}
