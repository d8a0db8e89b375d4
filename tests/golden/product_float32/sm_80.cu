extern "C" __global__ void __launch_bounds__(64) main_kernel(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C);
#line 35 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C) {
  __shared__ alignas(128) float A_shared_ptr[2048];
  __shared__ alignas(128) float B_shared_ptr[2048];
  alignas(64) float C_local_ptr[16];
  alignas(64) float a_reg_ptr[16];
  alignas(64) float b_reg_ptr[16];
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
  __tl_cp_async_cg((&(A_shared_ptr[(((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4))])), 0, (&(A[(((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + ((((int)threadIdx.x) & 7) * 4))])), 0, 16);
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 256)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 8) < 44) ? ((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + ((((int)threadIdx.x) & 7) * 4)) + 512) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 8) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 512)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) ? ((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + ((((int)threadIdx.x) & 7) * 4)) + 1024) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 768)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 24) < 44) ? ((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + ((((int)threadIdx.x) & 7) * 4)) + 1536) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 24) < 44) ? 16 : 0)));
#line 43 "tests/tilelang_min/driver/golden_kernels.py"
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((int)threadIdx.x) * 4)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? ((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((int)threadIdx.x) * 4) + 256)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 352) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((int)threadIdx.x) * 4) + 512)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((int)threadIdx.x) * 4) + 768)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 41 "tests/tilelang_min/driver/golden_kernels.py"
  for (int ko = 0; ko < 2; ++ko) {
#line 42 "tests/tilelang_min/driver/golden_kernels.py"
    tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0();
    __syncthreads();
    if ((ko + 1) < 2) {
      __tl_cp_async_cg((&(A_shared_ptr[(((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4))])), 4096, (&(A[((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 7) * 4))])), 128, 16);
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 1280)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 8) < 44) ? (((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 544) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 8) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 1536)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) ? (((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((ko * 1024) + ((((int)threadIdx.x) >> 3) * 32)) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 3)) * 4)) + 1792)]))), (&(A[(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 24) < 44) ? (((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 3) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1568) : 0)])), ((uint)(((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 24) < 44) ? 16 : 0)));
#line 43 "tests/tilelang_min/driver/golden_kernels.py"
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + (((int)threadIdx.x) * 4)) + 1024)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1408) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + (((int)threadIdx.x) * 4)) + 1280)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1760) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + (((int)threadIdx.x) * 4)) + 1536)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 2112) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[(((ko * 1024) + (((int)threadIdx.x) * 4)) + 1792)]))), (&(B[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 2464) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
    }
    tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 44 "tests/tilelang_min/driver/golden_kernels.py"
    for (int kc = 0; kc < 8; ++kc) {
      *(float4*)(a_reg_ptr + 0) = *(float4*)(A_shared_ptr + (((ko * 1024) + ((((int)threadIdx.x) & 7) * 32)) + ((kc ^ (((int)threadIdx.x) & 7)) * 4)));
      *(float4*)(a_reg_ptr + 4) = *(float4*)(A_shared_ptr + ((((ko * 1024) + ((((int)threadIdx.x) & 7) * 32)) + ((kc ^ (((int)threadIdx.x) & 7)) * 4)) + 256));
      *(float4*)(a_reg_ptr + 8) = *(float4*)(A_shared_ptr + ((((ko * 1024) + ((((int)threadIdx.x) & 7) * 32)) + ((kc ^ (((int)threadIdx.x) & 7)) * 4)) + 512));
      *(float4*)(a_reg_ptr + 12) = *(float4*)(A_shared_ptr + ((((ko * 1024) + ((((int)threadIdx.x) & 7) * 32)) + ((kc ^ (((int)threadIdx.x) & 7)) * 4)) + 768));
      *(float4*)(b_reg_ptr + 0) = *(float4*)(B_shared_ptr + (((ko * 1024) + (kc * 128)) + ((((int)threadIdx.x) >> 3) * 4)));
      *(float4*)(b_reg_ptr + 4) = *(float4*)(B_shared_ptr + ((((ko * 1024) + (kc * 128)) + ((((int)threadIdx.x) >> 3) * 4)) + 32));
      *(float4*)(b_reg_ptr + 8) = *(float4*)(B_shared_ptr + ((((ko * 1024) + (kc * 128)) + ((((int)threadIdx.x) >> 3) * 4)) + 64));
      *(float4*)(b_reg_ptr + 12) = *(float4*)(B_shared_ptr + ((((ko * 1024) + (kc * 128)) + ((((int)threadIdx.x) >> 3) * 4)) + 96));
      C_local_ptr[0] = (C_local_ptr[0] + (a_reg_ptr[0] * b_reg_ptr[0]));
      C_local_ptr[1] = (C_local_ptr[1] + (a_reg_ptr[0] * b_reg_ptr[1]));
      C_local_ptr[2] = (C_local_ptr[2] + (a_reg_ptr[0] * b_reg_ptr[2]));
      C_local_ptr[3] = (C_local_ptr[3] + (a_reg_ptr[0] * b_reg_ptr[3]));
      C_local_ptr[4] = (C_local_ptr[4] + (a_reg_ptr[4] * b_reg_ptr[0]));
      C_local_ptr[5] = (C_local_ptr[5] + (a_reg_ptr[4] * b_reg_ptr[1]));
      C_local_ptr[6] = (C_local_ptr[6] + (a_reg_ptr[4] * b_reg_ptr[2]));
      C_local_ptr[7] = (C_local_ptr[7] + (a_reg_ptr[4] * b_reg_ptr[3]));
      C_local_ptr[8] = (C_local_ptr[8] + (a_reg_ptr[8] * b_reg_ptr[0]));
      C_local_ptr[9] = (C_local_ptr[9] + (a_reg_ptr[8] * b_reg_ptr[1]));
      C_local_ptr[10] = (C_local_ptr[10] + (a_reg_ptr[8] * b_reg_ptr[2]));
      C_local_ptr[11] = (C_local_ptr[11] + (a_reg_ptr[8] * b_reg_ptr[3]));
      C_local_ptr[12] = (C_local_ptr[12] + (a_reg_ptr[12] * b_reg_ptr[0]));
      C_local_ptr[13] = (C_local_ptr[13] + (a_reg_ptr[12] * b_reg_ptr[1]));
      C_local_ptr[14] = (C_local_ptr[14] + (a_reg_ptr[12] * b_reg_ptr[2]));
      C_local_ptr[15] = (C_local_ptr[15] + (a_reg_ptr[12] * b_reg_ptr[3]));
      C_local_ptr[0] = (C_local_ptr[0] + (a_reg_ptr[1] * b_reg_ptr[4]));
      C_local_ptr[1] = (C_local_ptr[1] + (a_reg_ptr[1] * b_reg_ptr[5]));
      C_local_ptr[2] = (C_local_ptr[2] + (a_reg_ptr[1] * b_reg_ptr[6]));
      C_local_ptr[3] = (C_local_ptr[3] + (a_reg_ptr[1] * b_reg_ptr[7]));
      C_local_ptr[4] = (C_local_ptr[4] + (a_reg_ptr[5] * b_reg_ptr[4]));
      C_local_ptr[5] = (C_local_ptr[5] + (a_reg_ptr[5] * b_reg_ptr[5]));
      C_local_ptr[6] = (C_local_ptr[6] + (a_reg_ptr[5] * b_reg_ptr[6]));
      C_local_ptr[7] = (C_local_ptr[7] + (a_reg_ptr[5] * b_reg_ptr[7]));
      C_local_ptr[8] = (C_local_ptr[8] + (a_reg_ptr[9] * b_reg_ptr[4]));
      C_local_ptr[9] = (C_local_ptr[9] + (a_reg_ptr[9] * b_reg_ptr[5]));
      C_local_ptr[10] = (C_local_ptr[10] + (a_reg_ptr[9] * b_reg_ptr[6]));
      C_local_ptr[11] = (C_local_ptr[11] + (a_reg_ptr[9] * b_reg_ptr[7]));
      C_local_ptr[12] = (C_local_ptr[12] + (a_reg_ptr[13] * b_reg_ptr[4]));
      C_local_ptr[13] = (C_local_ptr[13] + (a_reg_ptr[13] * b_reg_ptr[5]));
      C_local_ptr[14] = (C_local_ptr[14] + (a_reg_ptr[13] * b_reg_ptr[6]));
      C_local_ptr[15] = (C_local_ptr[15] + (a_reg_ptr[13] * b_reg_ptr[7]));
      C_local_ptr[0] = (C_local_ptr[0] + (a_reg_ptr[2] * b_reg_ptr[8]));
      C_local_ptr[1] = (C_local_ptr[1] + (a_reg_ptr[2] * b_reg_ptr[9]));
      C_local_ptr[2] = (C_local_ptr[2] + (a_reg_ptr[2] * b_reg_ptr[10]));
      C_local_ptr[3] = (C_local_ptr[3] + (a_reg_ptr[2] * b_reg_ptr[11]));
      C_local_ptr[4] = (C_local_ptr[4] + (a_reg_ptr[6] * b_reg_ptr[8]));
      C_local_ptr[5] = (C_local_ptr[5] + (a_reg_ptr[6] * b_reg_ptr[9]));
      C_local_ptr[6] = (C_local_ptr[6] + (a_reg_ptr[6] * b_reg_ptr[10]));
      C_local_ptr[7] = (C_local_ptr[7] + (a_reg_ptr[6] * b_reg_ptr[11]));
      C_local_ptr[8] = (C_local_ptr[8] + (a_reg_ptr[10] * b_reg_ptr[8]));
      C_local_ptr[9] = (C_local_ptr[9] + (a_reg_ptr[10] * b_reg_ptr[9]));
      C_local_ptr[10] = (C_local_ptr[10] + (a_reg_ptr[10] * b_reg_ptr[10]));
      C_local_ptr[11] = (C_local_ptr[11] + (a_reg_ptr[10] * b_reg_ptr[11]));
      C_local_ptr[12] = (C_local_ptr[12] + (a_reg_ptr[14] * b_reg_ptr[8]));
      C_local_ptr[13] = (C_local_ptr[13] + (a_reg_ptr[14] * b_reg_ptr[9]));
      C_local_ptr[14] = (C_local_ptr[14] + (a_reg_ptr[14] * b_reg_ptr[10]));
      C_local_ptr[15] = (C_local_ptr[15] + (a_reg_ptr[14] * b_reg_ptr[11]));
      C_local_ptr[0] = (C_local_ptr[0] + (a_reg_ptr[3] * b_reg_ptr[12]));
      C_local_ptr[1] = (C_local_ptr[1] + (a_reg_ptr[3] * b_reg_ptr[13]));
      C_local_ptr[2] = (C_local_ptr[2] + (a_reg_ptr[3] * b_reg_ptr[14]));
      C_local_ptr[3] = (C_local_ptr[3] + (a_reg_ptr[3] * b_reg_ptr[15]));
      C_local_ptr[4] = (C_local_ptr[4] + (a_reg_ptr[7] * b_reg_ptr[12]));
      C_local_ptr[5] = (C_local_ptr[5] + (a_reg_ptr[7] * b_reg_ptr[13]));
      C_local_ptr[6] = (C_local_ptr[6] + (a_reg_ptr[7] * b_reg_ptr[14]));
      C_local_ptr[7] = (C_local_ptr[7] + (a_reg_ptr[7] * b_reg_ptr[15]));
      C_local_ptr[8] = (C_local_ptr[8] + (a_reg_ptr[11] * b_reg_ptr[12]));
      C_local_ptr[9] = (C_local_ptr[9] + (a_reg_ptr[11] * b_reg_ptr[13]));
      C_local_ptr[10] = (C_local_ptr[10] + (a_reg_ptr[11] * b_reg_ptr[14]));
      C_local_ptr[11] = (C_local_ptr[11] + (a_reg_ptr[11] * b_reg_ptr[15]));
      C_local_ptr[12] = (C_local_ptr[12] + (a_reg_ptr[15] * b_reg_ptr[12]));
      C_local_ptr[13] = (C_local_ptr[13] + (a_reg_ptr[15] * b_reg_ptr[13]));
      C_local_ptr[14] = (C_local_ptr[14] + (a_reg_ptr[15] * b_reg_ptr[14]));
      C_local_ptr[15] = (C_local_ptr[15] + (a_reg_ptr[15] * b_reg_ptr[15]));
    }
  }
#line 45 "tests/tilelang_min/driver/golden_kernels.py"
  if (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) >> 3) * 4)) < 44) {
    *(float4*)(C + ((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) & 7) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) >> 3) * 4))) = *(float4*)(C_local_ptr + 0);
  }
  if (((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) & 7)) + 8) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) >> 3) * 4)) < 44)) {
    *(float4*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) & 7) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) >> 3) * 4)) + 352)) = *(float4*)(C_local_ptr + 4);
  }
  if (((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) & 7)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) >> 3) * 4)) < 44)) {
    *(float4*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) & 7) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) >> 3) * 4)) + 704)) = *(float4*)(C_local_ptr + 8);
  }
  if (((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) & 7)) + 24) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) >> 3) * 4)) < 44)) {
    *(float4*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) & 7) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) >> 3) * 4)) + 1056)) = *(float4*)(C_local_ptr + 12);
  }
}
