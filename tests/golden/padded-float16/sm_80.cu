extern "C" __global__ void __launch_bounds__(64) padded_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C);
#line 57 "workloads/kernels/matmul.py"
extern "C" __global__ void __launch_bounds__(64) padded_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C) {
  __shared__ alignas(128) half A_shared_ptr[1536];
  __shared__ alignas(128) half B_shared_ptr[1280];
  alignas(64) float C_local_ptr[16];
  alignas(16) uint a_frag_ptr[4];
  alignas(32) uint b_frag_ptr[8];
#line 62 "workloads/kernels/matmul.py"
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
#line 64 "workloads/kernels/matmul.py"
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((int)threadIdx.x) >> 2) * 24) + ((((int)threadIdx.x) & 3) * 4))]))), (&(A[((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? (((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 2) * 44)) + ((((int)threadIdx.x) & 3) * 4)) : 0)])), ((uint)((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 2) * 24) + ((((int)threadIdx.x) & 3) * 4)) + 384)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? ((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 2) * 44)) + ((((int)threadIdx.x) & 3) * 4)) + 704) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) ? 8 : 0)));
#line 65 "workloads/kernels/matmul.py"
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((int)threadIdx.x) >> 3) * 40) + ((((int)threadIdx.x) & 7) * 4))]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? ((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((((int)threadIdx.x) >> 3) * 40) + ((((int)threadIdx.x) & 7) * 4)) + 320)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 352) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 8 : 0)));
  tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 63 "workloads/kernels/matmul.py"
  for (int ko = 0; ko < 3; ++ko) {
#line 64 "workloads/kernels/matmul.py"
    tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0();
    __syncthreads();
    if ((ko + 1) < 3) {
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((ko + 1) & 1) * 768) + ((((int)threadIdx.x) >> 2) * 24)) + ((((int)threadIdx.x) & 3) * 4))]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) && ((((ko * 16) + ((((int)threadIdx.x) & 3) * 4)) + 16) < 44)) ? (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 2) * 44)) + (ko * 16)) + ((((int)threadIdx.x) & 3) * 4)) + 16) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) < 44) && ((((ko * 16) + ((((int)threadIdx.x) & 3) * 4)) + 16) < 44)) ? 8 : 0)));
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((ko + 1) & 1) * 768) + ((((int)threadIdx.x) >> 2) * 24)) + ((((int)threadIdx.x) & 3) * 4)) + 384)]))), (&(A[((((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) && ((((ko * 16) + ((((int)threadIdx.x) & 3) * 4)) + 16) < 44)) ? (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 2) * 44)) + (ko * 16)) + ((((int)threadIdx.x) & 3) * 4)) + 720) : 0)])), ((uint)((((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 2)) + 16) < 44) && ((((ko * 16) + ((((int)threadIdx.x) & 3) * 4)) + 16) < 44)) ? 8 : 0)));
#line 65 "workloads/kernels/matmul.py"
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko + 1) & 1) * 640) + ((((int)threadIdx.x) >> 3) * 40)) + ((((int)threadIdx.x) & 7) * 4))]))), (&(B[((((((ko * 16) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? (((((ko * 704) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704) : 0)])), ((uint)((((((ko * 16) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? 8 : 0)));
      tvm_builtin_ptx_cp_async_ca_src_size_async_ca_shared__cta_global_8(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((((ko + 1) & 1) * 640) + ((((int)threadIdx.x) >> 3) * 40)) + ((((int)threadIdx.x) & 7) * 4)) + 320)]))), (&(B[((((((ko * 16) + (((int)threadIdx.x) >> 3)) + 24) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? (((((ko * 704) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056) : 0)])), ((uint)((((((ko * 16) + (((int)threadIdx.x) >> 3)) + 24) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? 8 : 0)));
    }
    tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 66 "workloads/kernels/matmul.py"
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((ko & 1) * 768) + ((((int)threadIdx.x) >> 5) * 384)) + ((((int)threadIdx.x) & 15) * 24)) + (((((int)threadIdx.x) & 31) >> 4) * 8))]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[0], b_frag_ptr[1], b_frag_ptr[2], b_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((ko & 1) * 640) + ((((int)threadIdx.x) & 15) * 40)) + (((((int)threadIdx.x) & 31) >> 4) * 8))]))));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(b_frag_ptr[4], b_frag_ptr[5], b_frag_ptr[6], b_frag_ptr[7], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((((ko & 1) * 640) + ((((int)threadIdx.x) & 15) * 40)) + (((((int)threadIdx.x) & 31) >> 4) * 8)) + 16)]))));
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11]);
    tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15]);
  }
#line 67 "workloads/kernels/matmul.py"
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
