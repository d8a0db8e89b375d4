extern "C" __global__ void __launch_bounds__(128) main_kernel(float* __restrict__ A, float* __restrict__ B);
#line 133 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(128) main_kernel(float* __restrict__ A, float* __restrict__ B) {
  __shared__ alignas(128) float tile_ptr[1024];
  alignas(16) float A_in_ptr[4];
  alignas(16) float A_in_1_ptr[4];
  alignas(16) float B_out_ptr[4];
  alignas(16) float B_out_1_ptr[4];
#line 136 "tests/tilelang_min/driver/golden_kernels.py"
  if ((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) {
    *(float4*)(A_in_ptr + 0) = *(float4*)(A + ((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)));
  } else {
    *(float4*)(A_in_ptr + 0) = make_float4(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
  }
  *(float4*)(tile_ptr + (((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ (((int)threadIdx.x) >> 5)) * 4))) = *(float4*)(A_in_ptr + 0);
  if (((((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) {
    *(float4*)(A_in_1_ptr + 0) = *(float4*)(A + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704));
  } else {
    *(float4*)(A_in_1_ptr + 0) = make_float4(0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/, 0x0p+0f/*0.000000e+00*/);
  }
  *(float4*)(tile_ptr + ((((((int)threadIdx.x) >> 3) * 32) + (((((int)threadIdx.x) & 7) ^ ((((int)threadIdx.x) >> 5) + 4)) * 4)) + 512)) = *(float4*)(A_in_1_ptr + 0);
#line 137 "tests/tilelang_min/driver/golden_kernels.py"
  __syncthreads();
  B_out_ptr[0] = tile_ptr[((((((int)threadIdx.x) & 7) * 128) + (((((int)threadIdx.x) >> 5) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3))];
  B_out_ptr[1] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + (((((int)threadIdx.x) >> 5) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 32)];
  B_out_ptr[2] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + (((((int)threadIdx.x) >> 5) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 64)];
  B_out_ptr[3] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + (((((int)threadIdx.x) >> 5) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 96)];
  if ((((((int)blockIdx.x) * 32) + (((int)threadIdx.x) >> 3)) < 44) && (((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) {
    *(float4*)(B + ((((((int)blockIdx.x) * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.y) * 32)) + ((((int)threadIdx.x) & 7) * 4))) = *(float4*)(B_out_ptr + 0);
  }
  B_out_1_ptr[0] = tile_ptr[((((((int)threadIdx.x) & 7) * 128) + ((((((int)threadIdx.x) >> 5) + 4) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3))];
  B_out_1_ptr[1] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + ((((((int)threadIdx.x) >> 5) + 4) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 32)];
  B_out_1_ptr[2] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + ((((((int)threadIdx.x) >> 5) + 4) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 64)];
  B_out_1_ptr[3] = tile_ptr[(((((((int)threadIdx.x) & 7) * 128) + ((((((int)threadIdx.x) >> 5) + 4) ^ (((int)threadIdx.x) & 7)) * 4)) + ((((int)threadIdx.x) & 31) >> 3)) + 96)];
  if (((((((int)blockIdx.x) * 32) + (((int)threadIdx.x) >> 3)) + 16) < 44) && (((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44)) {
    *(float4*)(B + (((((((int)blockIdx.x) * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.y) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704)) = *(float4*)(B_out_1_ptr + 0);
  }
}
