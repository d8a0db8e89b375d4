struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
#define __tl_keep_float32(x) asm volatile("" : "+f"(x) : : "memory")
#define __tl_keep_uint32(x) asm volatile("" : "+r"(x) : : "memory")
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
#define tvm_builtin_ptx_cp_async_bulk_wait_group_async_bulk_wait_group_read_0() asm volatile("cp.async.bulk.wait_group.read 0;" :  :  : "memory")
#define tvm_builtin_ptx_cp_async_bulk_tensor_s2g_async_bulk_tensor_2d_global_shared__cta_tile_bulk_group(__tmap, __coords0, __coords1, __src_mem) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" :  : "l"((const void*)(__tmap)), "r"((int32_t)(__coords0)), "r"((int32_t)(__coords1)), "r"((uint32_t)(__src_mem)) : "memory")
#define tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_0() asm volatile("wgmma.wait_group.sync.aligned 0;" :  :  : "memory")
#define tvm_builtin_ptx_cp_async_bulk_commit_group_async_bulk_commit_group() asm volatile("cp.async.bulk.commit_group;" :  : )

#define tvm_builtin_cuda_cvta_generic_to_shared(p) ((unsigned int)(__cvta_generic_to_shared((void*)(p))))
#define tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(__addr, __count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :  : "r"((uint32_t)(__addr)), "r"((uint32_t)(__count)) : "memory")
#define tvm_builtin_ptx_fence_mbarrier_init_mbarrier_init_release_cluster() asm volatile("fence.mbarrier_init.release.cluster;" :  :  : "memory")
#define tvm_builtin_ptx_fence_proxy_proxy_async_shared__cta() asm volatile("fence.proxy.async.shared::cta;" :  :  : "memory")
#define tvm_builtin_ptx_mbarrier_arrive_nocount_arrive_shared__cta_b64(__addr) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :  : "r"((uint32_t)(__addr)) : "memory")
#define tvm_builtin_ptx_setmaxnreg_dec_sync_aligned_u32_40() asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" :  :  : "memory")
#define tvm_builtin_ptx_cp_async_bulk_wait_group_async_bulk_wait_group_read_1() asm volatile("cp.async.bulk.wait_group.read 1;" :  :  : "memory")
#define tvm_builtin_ptx_mbarrier_try_wait_parity_no_hint_try_wait_parity_shared__cta_b64(__wait_complete, __addr, __phase) asm volatile("{ .reg .pred pd0; mbarrier.try_wait.parity.shared::cta.b64 pd0, [%1], %2; selp.b32 %0, 1, 0, pd0; }" : "=r"(__wait_complete) : "r"((uint32_t)(__addr)), "r"((uint32_t)(__phase)) : "memory")
#define tvm_builtin_ptx_mbarrier_arrive_expect_tx_arrive_expect_tx_shared__cta_b64(__addr, __tx_count) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :  : "r"((uint32_t)(__addr)), "r"((uint32_t)(__tx_count)) : "memory")
#define tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_1() asm volatile("wgmma.wait_group.sync.aligned 1;" :  :  : "memory")
#define tvm_builtin_ptx_bar_sync_count_sync(__a, __b) asm volatile("bar.sync %0, %1;" :  : "r"((uint32_t)(__a)), "r"((uint32_t)(__b)) : "memory")
#define tvm_builtin_ptx_setmaxnreg_inc_sync_aligned_u32_232() asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" :  :  : "memory")
#define tvm_builtin_ptx_wgmma_fence_fence_sync_aligned() asm volatile("wgmma.fence.sync.aligned;" :  :  : "memory")
#define tvm_builtin_ptx_cp_async_bulk_tensor_g2s_cluster_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(__dst_mem, __tmap, __coords0, __coords1, __mbar) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :  : "r"((uint32_t)(__dst_mem)), "l"((const void*)(__tmap)), "r"((int32_t)(__coords0)), "r"((int32_t)(__coords1)), "r"((uint32_t)(__mbar)) : "memory")
#define tvm_builtin_ptx_wgmma_commit_group_commit_group_sync_aligned() asm volatile("wgmma.commit_group.sync.aligned;" :  :  : "memory")
#define tvm_builtin_ptx_wgmma_f16_ss_mma_async_sync_aligned_m64n128k16_f32_f16_f16_1_1_0_1(__d0, __d1, __d2, __d3, __d4, __d5, __d6, __d7, __d8, __d9, __d10, __d11, __d12, __d13, __d14, __d15, __d16, __d17, __d18, __d19, __d20, __d21, __d22, __d23, __d24, __d25, __d26, __d27, __d28, __d29, __d30, __d31, __d32, __d33, __d34, __d35, __d36, __d37, __d38, __d39, __d40, __d41, __d42, __d43, __d44, __d45, __d46, __d47, __d48, __d49, __d50, __d51, __d52, __d53, __d54, __d55, __d56, __d57, __d58, __d59, __d60, __d61, __d62, __d63, __a_desc, __b_desc, __scale_d) asm volatile("{ .reg .pred ps0; setp.ne.b32 ps0, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, ps0, 1, 1, 0, 1; }" : "+f"(__d0), "+f"(__d1), "+f"(__d2), "+f"(__d3), "+f"(__d4), "+f"(__d5), "+f"(__d6), "+f"(__d7), "+f"(__d8), "+f"(__d9), "+f"(__d10), "+f"(__d11), "+f"(__d12), "+f"(__d13), "+f"(__d14), "+f"(__d15), "+f"(__d16), "+f"(__d17), "+f"(__d18), "+f"(__d19), "+f"(__d20), "+f"(__d21), "+f"(__d22), "+f"(__d23), "+f"(__d24), "+f"(__d25), "+f"(__d26), "+f"(__d27), "+f"(__d28), "+f"(__d29), "+f"(__d30), "+f"(__d31), "+f"(__d32), "+f"(__d33), "+f"(__d34), "+f"(__d35), "+f"(__d36), "+f"(__d37), "+f"(__d38), "+f"(__d39), "+f"(__d40), "+f"(__d41), "+f"(__d42), "+f"(__d43), "+f"(__d44), "+f"(__d45), "+f"(__d46), "+f"(__d47), "+f"(__d48), "+f"(__d49), "+f"(__d50), "+f"(__d51), "+f"(__d52), "+f"(__d53), "+f"(__d54), "+f"(__d55), "+f"(__d56), "+f"(__d57), "+f"(__d58), "+f"(__d59), "+f"(__d60), "+f"(__d61), "+f"(__d62), "+f"(__d63) : "l"((uint64_t)(__a_desc)), "l"((uint64_t)(__b_desc)), "r"((uint32_t)(__scale_d)))
extern "C" __global__ void __launch_bounds__(384, 1) product_kernel(half* __restrict__ A, half* __restrict__ B, half* __restrict__ C, const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map, const __grid_constant__ CUtensorMap C_map);
#define tvm_builtin_ptx_wgmma_f16_ss_mma_async_sync_aligned_m64n128k16_f32_f16_f16_1_1_0_1_x4(__d0, __d1, __d2, __d3, __d4, __d5, __d6, __d7, __d8, __d9, __d10, __d11, __d12, __d13, __d14, __d15, __d16, __d17, __d18, __d19, __d20, __d21, __d22, __d23, __d24, __d25, __d26, __d27, __d28, __d29, __d30, __d31, __d32, __d33, __d34, __d35, __d36, __d37, __d38, __d39, __d40, __d41, __d42, __d43, __d44, __d45, __d46, __d47, __d48, __d49, __d50, __d51, __d52, __d53, __d54, __d55, __d56, __d57, __d58, __d59, __d60, __d61, __d62, __d63, __a_desc_0, __b_desc_0, __scale_d_0, __a_desc_1, __b_desc_1, __scale_d_1, __a_desc_2, __b_desc_2, __scale_d_2, __a_desc_3, __b_desc_3, __scale_d_3) asm volatile("{ .reg .pred ps0; setp.ne.b32 ps0, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, ps0, 1, 1, 0, 1; } { .reg .pred ps0; setp.ne.b32 ps0, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %67, %68, ps0, 1, 1, 0, 1; } { .reg .pred ps0; setp.ne.b32 ps0, %72, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %70, %71, ps0, 1, 1, 0, 1; } { .reg .pred ps0; setp.ne.b32 ps0, %75, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %73, %74, ps0, 1, 1, 0, 1; }" : "+f"(__d0), "+f"(__d1), "+f"(__d2), "+f"(__d3), "+f"(__d4), "+f"(__d5), "+f"(__d6), "+f"(__d7), "+f"(__d8), "+f"(__d9), "+f"(__d10), "+f"(__d11), "+f"(__d12), "+f"(__d13), "+f"(__d14), "+f"(__d15), "+f"(__d16), "+f"(__d17), "+f"(__d18), "+f"(__d19), "+f"(__d20), "+f"(__d21), "+f"(__d22), "+f"(__d23), "+f"(__d24), "+f"(__d25), "+f"(__d26), "+f"(__d27), "+f"(__d28), "+f"(__d29), "+f"(__d30), "+f"(__d31), "+f"(__d32), "+f"(__d33), "+f"(__d34), "+f"(__d35), "+f"(__d36), "+f"(__d37), "+f"(__d38), "+f"(__d39), "+f"(__d40), "+f"(__d41), "+f"(__d42), "+f"(__d43), "+f"(__d44), "+f"(__d45), "+f"(__d46), "+f"(__d47), "+f"(__d48), "+f"(__d49), "+f"(__d50), "+f"(__d51), "+f"(__d52), "+f"(__d53), "+f"(__d54), "+f"(__d55), "+f"(__d56), "+f"(__d57), "+f"(__d58), "+f"(__d59), "+f"(__d60), "+f"(__d61), "+f"(__d62), "+f"(__d63) : "l"((uint64_t)(__a_desc_0)), "l"((uint64_t)(__b_desc_0)), "r"((uint32_t)(__scale_d_0)), "l"((uint64_t)(__a_desc_1)), "l"((uint64_t)(__b_desc_1)), "r"((uint32_t)(__scale_d_1)), "l"((uint64_t)(__a_desc_2)), "l"((uint64_t)(__b_desc_2)), "r"((uint32_t)(__scale_d_2)), "l"((uint64_t)(__a_desc_3)), "l"((uint64_t)(__b_desc_3)), "r"((uint32_t)(__scale_d_3)))
extern "C" __global__ void __launch_bounds__(384, 1) product_kernel(half* __restrict__ A, half* __restrict__ B, half* __restrict__ C, const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map, const __grid_constant__ CUtensorMap C_map) {
  extern __shared__ __align__(1024) uchar shared_memory_ptr[];
  half* A_shared = ((half*)((void*)((char*)shared_memory_ptr + 0)));
  half* B_shared = ((half*)((void*)((char*)shared_memory_ptr + 65536)));
  uint64_t* ring_barriers = ((uint64_t*)((void*)((char*)shared_memory_ptr + 131072)));
  half* C_staging = ((half*)((void*)((char*)shared_memory_ptr + 132096)));
  alignas(64) float C_local_ptr[64];
  alignas(4) int producer_stage_ptr[1];
  alignas(4) int producer_parity_ptr[1];
  alignas(4) uint producer_ready_ptr[1];
  alignas(4) int consumer_stage_ptr[1];
  alignas(4) int consumer_parity_ptr[1];
  alignas(4) uint consumer_ready_ptr[1];
  alignas(4) half pair_ptr[2];
  alignas(4) half pair_1_ptr[2];
  alignas(4) half pair_2_ptr[2];
  alignas(4) half pair_3_ptr[2];
  alignas(4) half pair_4_ptr[2];
  alignas(4) half pair_5_ptr[2];
  alignas(4) half pair_6_ptr[2];
  alignas(4) half pair_7_ptr[2];
  alignas(4) half pair_8_ptr[2];
  alignas(4) half pair_9_ptr[2];
  alignas(4) half pair_10_ptr[2];
  alignas(4) half pair_11_ptr[2];
  alignas(4) half pair_12_ptr[2];
  alignas(4) half pair_13_ptr[2];
  alignas(4) half pair_14_ptr[2];
  alignas(4) half pair_15_ptr[2];
  alignas(4) half pair_16_ptr[2];
  alignas(4) half pair_17_ptr[2];
  alignas(4) half pair_18_ptr[2];
  alignas(4) half pair_19_ptr[2];
  alignas(4) half pair_20_ptr[2];
  alignas(4) half pair_21_ptr[2];
  alignas(4) half pair_22_ptr[2];
  alignas(4) half pair_23_ptr[2];
  alignas(4) half pair_24_ptr[2];
  alignas(4) half pair_25_ptr[2];
  alignas(4) half pair_26_ptr[2];
  alignas(4) half pair_27_ptr[2];
  alignas(4) half pair_28_ptr[2];
  alignas(4) half pair_29_ptr[2];
  alignas(4) half pair_30_ptr[2];
  alignas(4) half pair_31_ptr[2];
  if (((int)threadIdx.x) == 0) {
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[0]))), (uint)1);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[4]))), (uint)8);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[1]))), (uint)1);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[5]))), (uint)8);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[2]))), (uint)1);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[6]))), (uint)8);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[3]))), (uint)1);
    tvm_builtin_ptx_mbarrier_init_init_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[7]))), (uint)8);
    tvm_builtin_ptx_fence_mbarrier_init_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if ((((int)threadIdx.x) >> 7) == 2) {
    tvm_builtin_ptx_setmaxnreg_dec_sync_aligned_u32_40();
    if ((((int)threadIdx.x) % 128) == 0) {
      producer_stage_ptr[0] = 0;
      producer_parity_ptr[0] = 1;
      #pragma unroll 1
      for (int turn = 0; turn < ((403 - ((int)blockIdx.x)) / 132); ++turn) {
        int tile = (((int)blockIdx.x) + (turn * 132));
        int bx_ahead = ((tile % 136) >> 3);
        int by_ahead = (((tile / 136) * 8) + ((tile % 136) & 7));
        int bz_ahead = 0;
        #pragma unroll 1
        for (int ko_ahead = 0; ko_ahead < 16; ++ko_ahead) {
          int filled = producer_stage_ptr[0];
          producer_ready_ptr[0] = (uint)0;
          #pragma unroll 1
          while (1) {
            if (!((producer_ready_ptr[0] == (uint)0))) { break; }
            tvm_builtin_ptx_mbarrier_try_wait_parity_no_hint_try_wait_parity_shared__cta_b64(producer_ready_ptr[0], tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[(filled + 4)]))), ((uint)producer_parity_ptr[0]));
          }
          tvm_builtin_ptx_mbarrier_arrive_expect_tx_arrive_expect_tx_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[filled]))), (uint)32768);
          tvm_builtin_ptx_cp_async_bulk_tensor_g2s_cluster_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared[(filled * 8192)]))), ((void*)((unsigned long long)(&(A_map)))), (ko_ahead * 64), (by_ahead * 128), tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[filled]))));
          tvm_builtin_ptx_cp_async_bulk_tensor_g2s_cluster_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared[(filled * 8192)]))), ((void*)((unsigned long long)(&(B_map)))), (bx_ahead * 128), (ko_ahead * 64), tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[filled]))));
          tvm_builtin_ptx_cp_async_bulk_tensor_g2s_cluster_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared[((filled * 8192) + 4096)]))), ((void*)((unsigned long long)(&(B_map)))), ((bx_ahead * 128) + 64), (ko_ahead * 64), tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[filled]))));
          producer_parity_ptr[0] = (producer_parity_ptr[0] ^ ((int)(filled == 3)));
          producer_stage_ptr[0] = ((filled == 3) ? 0 : (filled + 1));
        }
      }
    }
  } else {
    tvm_builtin_ptx_setmaxnreg_inc_sync_aligned_u32_232();
    consumer_stage_ptr[0] = 0;
    consumer_parity_ptr[0] = 0;
    #pragma unroll 1
    for (int turn_1 = 0; turn_1 < ((403 - ((int)blockIdx.x)) / 132); ++turn_1) {
      int tile_1 = (((int)blockIdx.x) + (turn_1 * 132));
      int bx = ((tile_1 % 136) >> 3);
      int by = (((tile_1 / 136) * 8) + ((tile_1 % 136) & 7));
      int bz = 0;
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
      C_local_ptr[16] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[17] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[18] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[19] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[20] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[21] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[22] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[23] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[24] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[25] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[26] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[27] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[28] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[29] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[30] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[31] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[32] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[33] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[34] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[35] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[36] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[37] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[38] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[39] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[40] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[41] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[42] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[43] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[44] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[45] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[46] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[47] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[48] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[49] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[50] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[51] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[52] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[53] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[54] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[55] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[56] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[57] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[58] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[59] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[60] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[61] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[62] = 0x0p+0f/*0.000000e+00*/;
      C_local_ptr[63] = 0x0p+0f/*0.000000e+00*/;
      #pragma unroll 1
      for (int ko = 0; ko < 16; ++ko) {
        int ko_stage = consumer_stage_ptr[0];
        consumer_ready_ptr[0] = (uint)0;
        #pragma unroll 1
        while (1) {
          if (!((consumer_ready_ptr[0] == (uint)0))) { break; }
          tvm_builtin_ptx_mbarrier_try_wait_parity_no_hint_try_wait_parity_shared__cta_b64(consumer_ready_ptr[0], tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[ko_stage]))), ((uint)consumer_parity_ptr[0]));
        }
        uint A_shared_descriptor = (((tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared[((ko_stage * 8192) + ((((int)threadIdx.x) >> 7) * 4096))]))) & (uint)262143) >> (uint)4) | (uint)65536);
        __tl_keep_uint32(A_shared_descriptor);
        uint B_shared_descriptor = (((tvm_builtin_cuda_cvta_generic_to_shared((&(B_shared[(ko_stage * 8192)]))) & (uint)262143) >> (uint)4) | (uint)33554432);
        __tl_keep_uint32(B_shared_descriptor);
        tvm_builtin_ptx_wgmma_fence_fence_sync_aligned();
tvm_builtin_ptx_wgmma_f16_ss_mma_async_sync_aligned_m64n128k16_f32_f16_f16_1_1_0_1_x4(C_local_ptr[0], C_local_ptr[1], C_local_ptr[2], C_local_ptr[3], C_local_ptr[4], C_local_ptr[5], C_local_ptr[6], C_local_ptr[7], C_local_ptr[8], C_local_ptr[9], C_local_ptr[10], C_local_ptr[11], C_local_ptr[12], C_local_ptr[13], C_local_ptr[14], C_local_ptr[15], C_local_ptr[16], C_local_ptr[17], C_local_ptr[18], C_local_ptr[19], C_local_ptr[20], C_local_ptr[21], C_local_ptr[22], C_local_ptr[23], C_local_ptr[24], C_local_ptr[25], C_local_ptr[26], C_local_ptr[27], C_local_ptr[28], C_local_ptr[29], C_local_ptr[30], C_local_ptr[31], C_local_ptr[32], C_local_ptr[33], C_local_ptr[34], C_local_ptr[35], C_local_ptr[36], C_local_ptr[37], C_local_ptr[38], C_local_ptr[39], C_local_ptr[40], C_local_ptr[41], C_local_ptr[42], C_local_ptr[43], C_local_ptr[44], C_local_ptr[45], C_local_ptr[46], C_local_ptr[47], C_local_ptr[48], C_local_ptr[49], C_local_ptr[50], C_local_ptr[51], C_local_ptr[52], C_local_ptr[53], C_local_ptr[54], C_local_ptr[55], C_local_ptr[56], C_local_ptr[57], C_local_ptr[58], C_local_ptr[59], C_local_ptr[60], C_local_ptr[61], C_local_ptr[62], C_local_ptr[63], (((uint64_t)A_shared_descriptor) | (uint64_t)4611686293305294848ULL), (((uint64_t)B_shared_descriptor) | (uint64_t)4611686293305294848ULL), (bool)1, (((uint64_t)(A_shared_descriptor + (uint)2)) | (uint64_t)4611686293305294848ULL), (((uint64_t)(B_shared_descriptor + (uint)128)) | (uint64_t)4611686293305294848ULL), (bool)1, (((uint64_t)(A_shared_descriptor + (uint)4)) | (uint64_t)4611686293305294848ULL), (((uint64_t)(B_shared_descriptor + (uint)256)) | (uint64_t)4611686293305294848ULL), (bool)1, (((uint64_t)(A_shared_descriptor + (uint)6)) | (uint64_t)4611686293305294848ULL), (((uint64_t)(B_shared_descriptor + (uint)384)) | (uint64_t)4611686293305294848ULL), (bool)1);
        tvm_builtin_ptx_wgmma_commit_group_commit_group_sync_aligned();
        tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_1();
        if (ko > 0) {
          if ((((int)threadIdx.x) % 32) == 0) {
            tvm_builtin_ptx_mbarrier_arrive_nocount_arrive_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[(((ko_stage == 0) ? 3 : (ko_stage - 1)) + 4)]))));
          }
        }
        consumer_parity_ptr[0] = (consumer_parity_ptr[0] ^ ((int)(ko_stage == 3)));
        consumer_stage_ptr[0] = ((ko_stage == 3) ? 0 : (ko_stage + 1));
      }
      tvm_builtin_ptx_wgmma_wait_group_wait_group_sync_aligned_0();
asm volatile("" : "+f"(C_local_ptr[0]), "+f"(C_local_ptr[1]), "+f"(C_local_ptr[2]), "+f"(C_local_ptr[3]), "+f"(C_local_ptr[4]), "+f"(C_local_ptr[5]), "+f"(C_local_ptr[6]), "+f"(C_local_ptr[7]), "+f"(C_local_ptr[8]), "+f"(C_local_ptr[9]), "+f"(C_local_ptr[10]), "+f"(C_local_ptr[11]), "+f"(C_local_ptr[12]), "+f"(C_local_ptr[13]), "+f"(C_local_ptr[14]), "+f"(C_local_ptr[15]), "+f"(C_local_ptr[16]), "+f"(C_local_ptr[17]), "+f"(C_local_ptr[18]), "+f"(C_local_ptr[19]), "+f"(C_local_ptr[20]), "+f"(C_local_ptr[21]), "+f"(C_local_ptr[22]), "+f"(C_local_ptr[23]), "+f"(C_local_ptr[24]), "+f"(C_local_ptr[25]), "+f"(C_local_ptr[26]), "+f"(C_local_ptr[27]), "+f"(C_local_ptr[28]), "+f"(C_local_ptr[29]), "+f"(C_local_ptr[30]), "+f"(C_local_ptr[31]), "+f"(C_local_ptr[32]), "+f"(C_local_ptr[33]), "+f"(C_local_ptr[34]), "+f"(C_local_ptr[35]), "+f"(C_local_ptr[36]), "+f"(C_local_ptr[37]), "+f"(C_local_ptr[38]), "+f"(C_local_ptr[39]), "+f"(C_local_ptr[40]), "+f"(C_local_ptr[41]), "+f"(C_local_ptr[42]), "+f"(C_local_ptr[43]), "+f"(C_local_ptr[44]), "+f"(C_local_ptr[45]), "+f"(C_local_ptr[46]), "+f"(C_local_ptr[47]), "+f"(C_local_ptr[48]), "+f"(C_local_ptr[49]), "+f"(C_local_ptr[50]), "+f"(C_local_ptr[51]), "+f"(C_local_ptr[52]), "+f"(C_local_ptr[53]), "+f"(C_local_ptr[54]), "+f"(C_local_ptr[55]), "+f"(C_local_ptr[56]), "+f"(C_local_ptr[57]), "+f"(C_local_ptr[58]), "+f"(C_local_ptr[59]), "+f"(C_local_ptr[60]), "+f"(C_local_ptr[61]), "+f"(C_local_ptr[62]), "+f"(C_local_ptr[63]) : : "memory");
      if ((((int)threadIdx.x) % 32) == 0) {
        tvm_builtin_ptx_mbarrier_arrive_nocount_arrive_shared__cta_b64(tvm_builtin_cuda_cvta_generic_to_shared((&(ring_barriers[(((consumer_stage_ptr[0] == 0) ? 3 : (consumer_stage_ptr[0] - 1)) + 4)]))));
      }
      if ((((int)threadIdx.x) % 128) == 0) {
        tvm_builtin_ptx_cp_async_bulk_wait_group_async_bulk_wait_group_read_1();
      }
      tvm_builtin_ptx_bar_sync_count_sync(((uint)((((int)threadIdx.x) >> 7) + 2)), (uint)128);
      pair_ptr[0] = ((half)C_local_ptr[0]);
      pair_ptr[1] = ((half)C_local_ptr[1]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((0 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_ptr + 0);
      pair_1_ptr[0] = ((half)C_local_ptr[2]);
      pair_1_ptr[1] = ((half)C_local_ptr[3]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((0 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_1_ptr + 0);
      pair_2_ptr[0] = ((half)C_local_ptr[4]);
      pair_2_ptr[1] = ((half)C_local_ptr[5]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((1 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_2_ptr + 0);
      pair_3_ptr[0] = ((half)C_local_ptr[6]);
      pair_3_ptr[1] = ((half)C_local_ptr[7]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((1 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_3_ptr + 0);
      pair_4_ptr[0] = ((half)C_local_ptr[8]);
      pair_4_ptr[1] = ((half)C_local_ptr[9]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((2 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_4_ptr + 0);
      pair_5_ptr[0] = ((half)C_local_ptr[10]);
      pair_5_ptr[1] = ((half)C_local_ptr[11]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((2 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_5_ptr + 0);
      pair_6_ptr[0] = ((half)C_local_ptr[12]);
      pair_6_ptr[1] = ((half)C_local_ptr[13]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((3 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_6_ptr + 0);
      pair_7_ptr[0] = ((half)C_local_ptr[14]);
      pair_7_ptr[1] = ((half)C_local_ptr[15]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((3 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_7_ptr + 0);
      pair_8_ptr[0] = ((half)C_local_ptr[16]);
      pair_8_ptr[1] = ((half)C_local_ptr[17]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((4 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_8_ptr + 0);
      pair_9_ptr[0] = ((half)C_local_ptr[18]);
      pair_9_ptr[1] = ((half)C_local_ptr[19]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((4 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_9_ptr + 0);
      pair_10_ptr[0] = ((half)C_local_ptr[20]);
      pair_10_ptr[1] = ((half)C_local_ptr[21]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((5 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_10_ptr + 0);
      pair_11_ptr[0] = ((half)C_local_ptr[22]);
      pair_11_ptr[1] = ((half)C_local_ptr[23]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((5 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_11_ptr + 0);
      pair_12_ptr[0] = ((half)C_local_ptr[24]);
      pair_12_ptr[1] = ((half)C_local_ptr[25]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((6 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_12_ptr + 0);
      pair_13_ptr[0] = ((half)C_local_ptr[26]);
      pair_13_ptr[1] = ((half)C_local_ptr[27]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((6 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_13_ptr + 0);
      pair_14_ptr[0] = ((half)C_local_ptr[28]);
      pair_14_ptr[1] = ((half)C_local_ptr[29]);
      *(half2*)(C_staging + ((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((7 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2))) = *(half2*)(pair_14_ptr + 0);
      pair_15_ptr[0] = ((half)C_local_ptr[30]);
      pair_15_ptr[1] = ((half)C_local_ptr[31]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((7 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 512)) = *(half2*)(pair_15_ptr + 0);
      tvm_builtin_ptx_fence_proxy_proxy_async_shared__cta();
      tvm_builtin_ptx_bar_sync_count_sync(((uint)((((int)threadIdx.x) >> 7) + 2)), (uint)128);
      if ((((int)threadIdx.x) % 128) == 0) {
        tvm_builtin_ptx_cp_async_bulk_tensor_s2g_async_bulk_tensor_2d_global_shared__cta_tile_bulk_group(((void*)((unsigned long long)(&(C_map)))), (bx * 128), ((by * 128) + ((((int)threadIdx.x) >> 7) * 64)), tvm_builtin_cuda_cvta_generic_to_shared((&(C_staging[((((int)threadIdx.x) >> 7) * 8192)]))));
        tvm_builtin_ptx_cp_async_bulk_commit_group_async_bulk_commit_group();
      }
      if ((((int)threadIdx.x) % 128) == 0) {
        tvm_builtin_ptx_cp_async_bulk_wait_group_async_bulk_wait_group_read_1();
      }
      tvm_builtin_ptx_bar_sync_count_sync(((uint)((((int)threadIdx.x) >> 7) + 2)), (uint)128);
      pair_16_ptr[0] = ((half)C_local_ptr[32]);
      pair_16_ptr[1] = ((half)C_local_ptr[33]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((0 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_16_ptr + 0);
      pair_17_ptr[0] = ((half)C_local_ptr[34]);
      pair_17_ptr[1] = ((half)C_local_ptr[35]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((0 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_17_ptr + 0);
      pair_18_ptr[0] = ((half)C_local_ptr[36]);
      pair_18_ptr[1] = ((half)C_local_ptr[37]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((1 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_18_ptr + 0);
      pair_19_ptr[0] = ((half)C_local_ptr[38]);
      pair_19_ptr[1] = ((half)C_local_ptr[39]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((1 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_19_ptr + 0);
      pair_20_ptr[0] = ((half)C_local_ptr[40]);
      pair_20_ptr[1] = ((half)C_local_ptr[41]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((2 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_20_ptr + 0);
      pair_21_ptr[0] = ((half)C_local_ptr[42]);
      pair_21_ptr[1] = ((half)C_local_ptr[43]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((2 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_21_ptr + 0);
      pair_22_ptr[0] = ((half)C_local_ptr[44]);
      pair_22_ptr[1] = ((half)C_local_ptr[45]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((3 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_22_ptr + 0);
      pair_23_ptr[0] = ((half)C_local_ptr[46]);
      pair_23_ptr[1] = ((half)C_local_ptr[47]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((3 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_23_ptr + 0);
      pair_24_ptr[0] = ((half)C_local_ptr[48]);
      pair_24_ptr[1] = ((half)C_local_ptr[49]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((4 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_24_ptr + 0);
      pair_25_ptr[0] = ((half)C_local_ptr[50]);
      pair_25_ptr[1] = ((half)C_local_ptr[51]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((4 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_25_ptr + 0);
      pair_26_ptr[0] = ((half)C_local_ptr[52]);
      pair_26_ptr[1] = ((half)C_local_ptr[53]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((5 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_26_ptr + 0);
      pair_27_ptr[0] = ((half)C_local_ptr[54]);
      pair_27_ptr[1] = ((half)C_local_ptr[55]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((5 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_27_ptr + 0);
      pair_28_ptr[0] = ((half)C_local_ptr[56]);
      pair_28_ptr[1] = ((half)C_local_ptr[57]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((6 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_28_ptr + 0);
      pair_29_ptr[0] = ((half)C_local_ptr[58]);
      pair_29_ptr[1] = ((half)C_local_ptr[59]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((6 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_29_ptr + 0);
      pair_30_ptr[0] = ((half)C_local_ptr[60]);
      pair_30_ptr[1] = ((half)C_local_ptr[61]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((7 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4096)) = *(half2*)(pair_30_ptr + 0);
      pair_31_ptr[0] = ((half)C_local_ptr[62]);
      pair_31_ptr[1] = ((half)C_local_ptr[63]);
      *(half2*)(C_staging + (((((((((int)threadIdx.x) >> 7) * 8192) + (((((int)threadIdx.x) & 127) >> 5) * 1024)) + (((((int)threadIdx.x) & 31) >> 2) * 64)) + ((7 ^ ((((int)threadIdx.x) & 31) >> 2)) * 8)) + ((((int)threadIdx.x) & 3) * 2)) + 4608)) = *(half2*)(pair_31_ptr + 0);
      tvm_builtin_ptx_fence_proxy_proxy_async_shared__cta();
      tvm_builtin_ptx_bar_sync_count_sync(((uint)((((int)threadIdx.x) >> 7) + 2)), (uint)128);
      if ((((int)threadIdx.x) % 128) == 0) {
        tvm_builtin_ptx_cp_async_bulk_tensor_s2g_async_bulk_tensor_2d_global_shared__cta_tile_bulk_group(((void*)((unsigned long long)(&(C_map)))), ((bx * 128) + 64), ((by * 128) + ((((int)threadIdx.x) >> 7) * 64)), tvm_builtin_cuda_cvta_generic_to_shared((&(C_staging[(((((int)threadIdx.x) >> 7) * 8192) + 4096)]))));
        tvm_builtin_ptx_cp_async_bulk_commit_group_async_bulk_commit_group();
      }
    }
    if ((((int)threadIdx.x) % 128) == 0) {
      tvm_builtin_ptx_cp_async_bulk_wait_group_async_bulk_wait_group_read_0();
    }
  }
}
