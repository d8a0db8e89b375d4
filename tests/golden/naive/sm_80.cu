extern "C" __global__ void __launch_bounds__(256) main_kernel(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C);
#line 19 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(256) main_kernel(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C) {
  alignas(4) float total_ptr[1];
#line 24 "tests/tilelang_min/driver/golden_kernels.py"
  total_ptr[0] = 0x0p+0f/*0.000000e+00*/;
#line 25 "tests/tilelang_min/driver/golden_kernels.py"
  for (int k = 0; k < 40; ++k) {
#line 26 "tests/tilelang_min/driver/golden_kernels.py"
    float condval;
    if (((((int)blockIdx.y) * 16) + (((int)threadIdx.x) >> 4)) < 44) {
      condval = A[(((((int)blockIdx.y) * 640) + ((((int)threadIdx.x) >> 4) * 40)) + k)];
    } else {
      condval = 0x0p+0f/*0.000000e+00*/;
    }
    float condval_1;
    if (((((int)blockIdx.x) * 16) + (((int)threadIdx.x) & 15)) < 44) {
      condval_1 = B[(((k * 44) + (((int)blockIdx.x) * 16)) + (((int)threadIdx.x) & 15))];
    } else {
      condval_1 = 0x0p+0f/*0.000000e+00*/;
    }
    total_ptr[0] = (total_ptr[0] + (condval * condval_1));
  }
#line 28 "tests/tilelang_min/driver/golden_kernels.py"
  if ((((((int)blockIdx.y) * 16) + (((int)threadIdx.x) >> 4)) < 44) && (((((int)blockIdx.x) * 16) + (((int)threadIdx.x) & 15)) < 44)) {
    C[((((((int)blockIdx.y) * 704) + ((((int)threadIdx.x) >> 4) * 44)) + (((int)blockIdx.x) * 16)) + (((int)threadIdx.x) & 15))] = total_ptr[0];
  }
}
