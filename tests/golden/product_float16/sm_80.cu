extern "C" __global__ void __launch_bounds__(64) main_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C);
#line 35 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C) {
  __shared__ alignas(128) half A_shared_ptr[2048];
  __shared__ alignas(128) half B_shared_ptr[2048];
  alignas(64) float C_local_ptr[16];
  alignas(16) uint a_frag_ptr[4];
  alignas(32) uint b_frag_ptr[8];
#line 40 "tests/tilelang_min/driver/golden_kernels.py"
  C_local_ptr[0] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[1] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[2] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[3] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[4] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[5] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[6] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[7] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[8] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[9] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[10] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[11] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[12] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[13] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[14] = 0x0p+0f/*0.000000e+00*/;
  C_local_ptr[15] = 0x0p+0f/*0.000000e+00*/;
#line 42 "tests/tilelang_min/driver/golden_kernels.py"
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8))]))), (&(A[((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? (((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 2) * 64)) + ((((int)threadIdx.x) & 3) * 8)) : 0)])), ((uint)((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 2) * 32) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8)) + 512)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? ((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 2) * 64)) + ((((int)threadIdx.x) & 3) * 8)) + 1024) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? 16 : 0)));
#line 43 "tests/tilelang_min/driver/golden_kernels.py"
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((((int)threadIdx.x) >> 3) * 32) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4))]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? ((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((((int)threadIdx.x) >> 3) * 32) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 256)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 352) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((((int)threadIdx.x) >> 3) * 32) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 512)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((((int)threadIdx.x) >> 3) * 32) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 768)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 41 "tests/tilelang_min/driver/golden_kernels.py"
  for (int ko = 0; ko < 2; ++ko) {
#line 42 "tests/tilelang_min/driver/golden_kernels.py"
    tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0();
    __syncthreads();
    if ((ko + 1) < 2) {
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 2) * 32)) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8)) + 1024)]))), (&(A[((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? (((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 2) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 3) * 8)) + 32) : 0)])), ((uint)((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 2) * 32)) + (((((int)threadIdx.x) & 3) ^ ((((int)threadIdx.x) & 31) >> 3)) * 8)) + 1536)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? (((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 2) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 3) * 8)) + 1056) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? 16 : 0)));
#line 43 "tests/tilelang_min/driver/golden_kernels.py"
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 1024)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1408) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 1280)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1760) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 1536)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 2112) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + ((((((int)threadIdx.x) & 7) >> 1) ^ (((int)threadIdx.x) >> 4)) * 8)) + ((((int)threadIdx.x) & 1) * 4)) + 1792)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 2464) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
    }
    tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 44 "tests/tilelang_min/driver/golden_kernels.py"
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 5) * 512)) + ((((int)threadIdx.x) & 15) * 32)) + ((((((int)threadIdx.x) & 31) >> 4) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[0], b_frag_ptr[1], b_frag_ptr[2], b_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + ((((int)threadIdx.x) & 15) * 32)) + ((((((int)threadIdx.x) & 31) >> 4) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[4], b_frag_ptr[5], b_frag_ptr[6], b_frag_ptr[7], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + ((((int)threadIdx.x) & 15) * 32)) + (((((((int)threadIdx.x) & 31) >> 4) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15]);
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 5) * 512)) + ((((int)threadIdx.x) & 15) * 32)) + (((((((int)threadIdx.x) & 31) >> 4) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8))]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[0], b_frag_ptr[1], b_frag_ptr[2], b_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) & 15) * 32)) + ((((((int)threadIdx.x) & 31) >> 4) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8)) + 512)]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[4], b_frag_ptr[5], b_frag_ptr[6], b_frag_ptr[7], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) & 15) * 32)) + (((((((int)threadIdx.x) & 31) >> 4) + 2) ^ ((((int)threadIdx.x) & 7) >> 1)) * 8)) + 512)]))));
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15]);
  }
#line 45 "tests/tilelang_min/driver/golden_kernels.py"
  if ((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) {
    *(float2*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2))) = *(float2*)(C_local_ptr + 0);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 352)) = *(float2*)(C_local_ptr + 2);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 8)) = *(float2*)(C_local_ptr + 4);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 360)) = *(float2*)(C_local_ptr + 6);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 16)) = *(float2*)(C_local_ptr + 8);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 368)) = *(float2*)(C_local_ptr + 10);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 24)) = *(float2*)(C_local_ptr + 12);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(float2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 376)) = *(float2*)(C_local_ptr + 14);
  }
}
