extern "C" __global__ void __launch_bounds__(64) main_kernel(int* __restrict__ A, int* __restrict__ B);
#line 145 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(int* __restrict__ A, int* __restrict__ B) {
  __shared__ alignas(128) int line_ptr[64];
  alignas(4) int count_ptr[1];
#line 148 "tests/tilelang_min/driver/golden_kernels.py"
  line_ptr[((int)threadIdx.x)] = A[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))];
#line 150 "tests/tilelang_min/driver/golden_kernels.py"
  count_ptr[0] = 0;
#line 151 "tests/tilelang_min/driver/golden_kernels.py"
  for (int k = 0; k < 64; ++k) {
#line 152 "tests/tilelang_min/driver/golden_kernels.py"
    __syncthreads();
    count_ptr[0] = (count_ptr[0] + line_ptr[k]);
#line 153 "tests/tilelang_min/driver/golden_kernels.py"
    if ((k & 1) == 1) {
#line 154 "tests/tilelang_min/driver/golden_kernels.py"
      __syncthreads();
      if (((int)threadIdx.x) == 0) {
        line_ptr[k] = count_ptr[0];
      }
    }
#line 153 "tests/tilelang_min/driver/golden_kernels.py"
  }
#line 155 "tests/tilelang_min/driver/golden_kernels.py"
  __syncthreads();
  B[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))] = line_ptr[((int)threadIdx.x)];
}
