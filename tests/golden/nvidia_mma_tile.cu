typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
__forceinline__ unsigned long long __tl_pair(float x, float y) {
  return (unsigned long long)__float_as_uint(x) | ((unsigned long long)__float_as_uint(y) << 32);
}
__forceinline__ ulonglong4 make_ulonglong4(float a, float b, float c, float d, float e, float f, float g, float h) {
  return make_ulonglong4(__tl_pair(a, b), __tl_pair(c, d), __tl_pair(e, f), __tl_pair(g, h));
}
#include <cuda_fp16.h>
struct __align__(8) half4 { half x, y, z, w; };
__forceinline__ half4 make_half4(half x, half y, half z, half w) { return half4{x, y, z, w}; }
__forceinline__ unsigned __pack_half2(half x, half y) {
  return (unsigned)__half_as_ushort(x) | ((unsigned)__half_as_ushort(y) << 16);
}
__forceinline__ half max(half a, half b) { return __hmax(a, b); }
__forceinline__ half min(half a, half b) { return __hmin(a, b); }
__forceinline__ half hpow(half a, half b) { return __float2half(powf(__half2float(a), __half2float(b))); }
#define tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(__d0, __d1, __d2, __d3, __a0, __a1, __a2, __a3, __b0, __b1, __c0, __c1, __c2, __c3) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(__d0), "=f"(__d1), "=f"(__d2), "=f"(__d3) : "r"((uint32_t)(__a0)), "r"((uint32_t)(__a1)), "r"((uint32_t)(__a2)), "r"((uint32_t)(__a3)), "r"((uint32_t)(__b0)), "r"((uint32_t)(__b1)), "f"((float)(__c0)), "f"((float)(__c1)), "f"((float)(__c2)), "f"((float)(__c3)))
#define tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x2_trans_shared__cta_b16(__r0, __r1, __p) asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];" : "=r"(__r0), "=r"(__r1) : "r"((uint32_t)(__p)) : "memory")
#define tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(__r0, __r1, __r2, __r3, __p) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];" : "=r"(__r0), "=r"(__r1), "=r"(__r2), "=r"(__r3) : "r"((uint32_t)(__p)) : "memory")
#define tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0() asm volatile("cp.async.wait_group 0;" :  :  : "memory")
#define tvm_builtin_ptx_cp_async_commit_group_async_commit_group() asm volatile("cp.async.commit_group;" :  : )
#define tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(__dst_mem, __src_mem, __src_size) asm volatile("cp.async.cg.shared::cta.global [%0], [%1], 16, %2;" :  : "r"((uint32_t)(__dst_mem)), "l"((const void*)(__src_mem)), "r"((uint32_t)(__src_size)) : "memory")

#define tvm_builtin_cuda_cvta_generic_to_shared(p) ((unsigned int)(__cvta_generic_to_shared((void*)(p))))
extern "C" __global__ void __launch_bounds__(32) mma_tile_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C);
#line 3 "/home/author/kernel.py"
extern "C" __global__ void __launch_bounds__(32) mma_tile_kernel(half* __restrict__ A, half* __restrict__ B, float* __restrict__ C) {
#line 3 "/home/author/kernel.py"
  __shared__ alignas(128) half A_shared_ptr[384];
#line 3 "/home/author/kernel.py"
  __shared__ alignas(128) half B_shared_ptr[128];
#line 3 "/home/author/kernel.py"
  alignas(16) uint a_ptr[4];
#line 3 "/home/author/kernel.py"
  alignas(16) uint b_ptr[2];
#line 3 "/home/author/kernel.py"
  alignas(16) float c_ptr[4];
#line 5 "/home/author/kernel.py"
  c_ptr[0] = 0x0p+0f/*0.000000e+00*/;
#line 5 "/home/author/kernel.py"
  c_ptr[1] = 0x0p+0f/*0.000000e+00*/;
#line 5 "/home/author/kernel.py"
  c_ptr[2] = 0x0p+0f/*0.000000e+00*/;
#line 5 "/home/author/kernel.py"
  c_ptr[3] = 0x0p+0f/*0.000000e+00*/;
#line 6 "/home/author/kernel.py"
  tvm_builtin_ptx_cp_async_cg_src_size_async_cg_shared__cta_global_16(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((int)threadIdx.x) >> 1) * 24) + ((((int)threadIdx.x) & 1) * 8))]))), (&(A[(((int)threadIdx.x) * 8)])), ((uint)((((int)threadIdx.x) < 32) ? 16 : 0)));
#line 6 "/home/author/kernel.py"
  if (((int)threadIdx.x) < 16) {
#line 6 "/home/author/kernel.py"
    *(uint4*)(B_shared_ptr + (((int)threadIdx.x) * 8)) = *(uint4*)(B + (((int)threadIdx.x) * 8));
#line 6 "/home/author/kernel.py"
  }
#line 6 "/home/author/kernel.py"
  tvm_builtin_ptx_cp_async_commit_group_async_commit_group();
#line 6 "/home/author/kernel.py"
  tvm_builtin_ptx_cp_async_wait_group_async_wait_group_0();
#line 6 "/home/author/kernel.py"
  __syncthreads();
#line 7 "/home/author/kernel.py"
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_ptr[0], a_ptr[1], a_ptr[2], a_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[(((((int)threadIdx.x) & 15) * 24) + ((((int)threadIdx.x) >> 4) * 8))]))));
#line 7 "/home/author/kernel.py"
  tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x2_trans_shared__cta_b16(b_ptr[0], b_ptr[1], tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared_ptr[((((int)threadIdx.x) & 15) * 8)]))));
#line 7 "/home/author/kernel.py"
  tvm_builtin_ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(c_ptr[0], c_ptr[1], c_ptr[2], c_ptr[3], a_ptr[0], a_ptr[1], a_ptr[2], a_ptr[3], b_ptr[0], b_ptr[1], c_ptr[0], c_ptr[1], c_ptr[2], c_ptr[3]);
#line 8 "/home/author/kernel.py"
  for (int j = 0; j < 2; ++j) {
#line 8 "/home/author/kernel.py"
    *(float2*)(C + ((((((int)threadIdx.x) >> 2) + (j * 8)) * 8) + ((((int)threadIdx.x) & 3) * 2))) = *(float2*)(c_ptr + (j * 2));
#line 8 "/home/author/kernel.py"
  }
#line 8 "/home/author/kernel.py"
}
