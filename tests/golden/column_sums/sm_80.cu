extern "C" __global__ void __launch_bounds__(64) main_kernel(float* __restrict__ A, float* __restrict__ B);
#line 118 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(float* __restrict__ A, float* __restrict__ B) {
  __shared__ alignas(128) float tile_ptr[1024];
  __shared__ alignas(128) float total_parts_ptr[64];
  alignas(16) float total_ptr[4];
  alignas(32) float tile_tile_ptr[8];
  alignas(16) float total_part_ptr[4];
  alignas(4) float total_other_ptr[1];
  alignas(4) float total_other_1_ptr[1];
  alignas(16) float total_read_ptr[4];
  alignas(16) float total_read_1_ptr[4];
#line 122 "tests/tilelang_min/driver/golden_kernels.py"
  total_ptr[0] = 0x0p+0f/*0.000000e+00*/;
  total_ptr[1] = 0x0p+0f/*0.000000e+00*/;
  total_ptr[2] = 0x0p+0f/*0.000000e+00*/;
  total_ptr[3] = 0x0p+0f/*0.000000e+00*/;
#line 124 "tests/tilelang_min/driver/golden_kernels.py"
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(tile_ptr[(((int)threadIdx.x) * 4)]))), (&(A[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? ((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(tile_ptr[((((int)threadIdx.x) * 4) + 256)]))), (&(A[((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? (((((((int)threadIdx.x) >> 3) * 44) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 352) : 0)])), ((uint)((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) ? 16 : 0)));
  tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 123 "tests/tilelang_min/driver/golden_kernels.py"
  for (int k = 0; k < 3; ++k) {
#line 124 "tests/tilelang_min/driver/golden_kernels.py"
    tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0();
    __syncthreads();
    if ((k + 1) < 3) {
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(tile_ptr[((((k + 1) & 1) * 512) + (((int)threadIdx.x) * 4))]))), (&(A[((((((k * 16) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? (((((k * 704) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704) : 0)])), ((uint)((((((k * 16) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? 16 : 0)));
      tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(tile_ptr[(((((k + 1) & 1) * 512) + (((int)threadIdx.x) * 4)) + 256)]))), (&(A[((((((k * 16) + (((int)threadIdx.x) >> 3)) + 24) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? (((((k * 704) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056) : 0)])), ((uint)((((((k * 16) + (((int)threadIdx.x) >> 3)) + 24) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) ? 16 : 0)));
    }
    tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 125 "tests/tilelang_min/driver/golden_kernels.py"
    *(float4*)(tile_tile_ptr + 0) = *(float4*)(tile_ptr + (((k & 1) * 512) + (((int)threadIdx.x) * 4)));
    *(float4*)(tile_tile_ptr + 4) = *(float4*)(tile_ptr + ((((k & 1) * 512) + (((int)threadIdx.x) * 4)) + 256));
    total_part_ptr[0] = tile_tile_ptr[0];
    total_part_ptr[1] = tile_tile_ptr[1];
    total_part_ptr[2] = tile_tile_ptr[2];
    total_part_ptr[3] = tile_tile_ptr[3];
    total_part_ptr[0] = (total_part_ptr[0] + tile_tile_ptr[4]);
    total_part_ptr[1] = (total_part_ptr[1] + tile_tile_ptr[5]);
    total_part_ptr[2] = (total_part_ptr[2] + tile_tile_ptr[6]);
    total_part_ptr[3] = (total_part_ptr[3] + tile_tile_ptr[7]);
    total_other_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[0], 8, 32);
    total_part_ptr[0] = (total_part_ptr[0] + total_other_ptr[0]);
    total_other_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[1], 8, 32);
    total_part_ptr[1] = (total_part_ptr[1] + total_other_ptr[0]);
    total_other_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[2], 8, 32);
    total_part_ptr[2] = (total_part_ptr[2] + total_other_ptr[0]);
    total_other_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[3], 8, 32);
    total_part_ptr[3] = (total_part_ptr[3] + total_other_ptr[0]);
    total_other_1_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[0], 16, 32);
    total_part_ptr[0] = (total_part_ptr[0] + total_other_1_ptr[0]);
    total_other_1_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[1], 16, 32);
    total_part_ptr[1] = (total_part_ptr[1] + total_other_1_ptr[0]);
    total_other_1_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[2], 16, 32);
    total_part_ptr[2] = (total_part_ptr[2] + total_other_1_ptr[0]);
    total_other_1_ptr[0] = __shfl_xor_sync((uint)4294967295, total_part_ptr[3], 16, 32);
    total_part_ptr[3] = (total_part_ptr[3] + total_other_1_ptr[0]);
    if (((((int)threadIdx.x) & 31) >> 3) == 0) {
      *(float4*)(total_parts_ptr + (((((int)threadIdx.x) >> 5) * 32) + ((((int)threadIdx.x) & 7) * 4))) = *(float4*)(total_part_ptr + 0);
    }
    __syncthreads();
    *(float4*)(total_read_ptr + 0) = *(float4*)(total_parts_ptr + ((((int)threadIdx.x) & 7) * 4));
    *(float4*)(total_read_1_ptr + 0) = *(float4*)(total_parts_ptr + (((((int)threadIdx.x) & 7) * 4) + 32));
    total_ptr[0] = (total_ptr[0] + (total_read_ptr[0] + total_read_1_ptr[0]));
    total_ptr[1] = (total_ptr[1] + (total_read_ptr[1] + total_read_1_ptr[1]));
    total_ptr[2] = (total_ptr[2] + (total_read_ptr[2] + total_read_1_ptr[2]));
    total_ptr[3] = (total_ptr[3] + (total_read_ptr[3] + total_read_1_ptr[3]));
  }
#line 126 "tests/tilelang_min/driver/golden_kernels.py"
  if (((((int)threadIdx.x) >> 3) == 0) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) {
    *(float4*)(B + ((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4))) = *(float4*)(total_ptr + 0);
  }
}
