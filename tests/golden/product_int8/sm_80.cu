extern "C" __global__ void __launch_bounds__(64) main_kernel(signed char* __restrict__ A, signed char* __restrict__ B, int* __restrict__ C);
#line 35 "tests/tilelang_min/driver/golden_kernels.py"
extern "C" __global__ void __launch_bounds__(64) main_kernel(signed char* __restrict__ A, signed char* __restrict__ B, int* __restrict__ C) {
  alignas(16) signed char v0_ptr[16];
  alignas(16) signed char v1_ptr[16];
  __shared__ alignas(128) signed char A_shared_ptr[1024];
  __shared__ alignas(128) signed char B_shared_ptr[1152];
  alignas(64) int C_local_ptr[16];
  alignas(16) signed char A_in_ptr[16];
  alignas(4) signed char B_in_ptr[4];
  alignas(4) signed char B_in_1_ptr[4];
  alignas(4) signed char B_in_2_ptr[4];
  alignas(4) signed char B_in_3_ptr[4];
  alignas(16) uint a_frag_ptr[4];
  alignas(32) uint b_frag_ptr[8];
  alignas(64) uint c_frag_ptr[16];
  alignas(4) signed char packed_ptr[4];
  alignas(4) signed char packed_1_ptr[4];
  alignas(4) signed char packed_2_ptr[4];
  alignas(4) signed char packed_3_ptr[4];
#line 40 "tests/tilelang_min/driver/golden_kernels.py"
  C_local_ptr[0] = 0;
  C_local_ptr[1] = 0;
  C_local_ptr[2] = 0;
  C_local_ptr[3] = 0;
  C_local_ptr[4] = 0;
  C_local_ptr[5] = 0;
  C_local_ptr[6] = 0;
  C_local_ptr[7] = 0;
  C_local_ptr[8] = 0;
  C_local_ptr[9] = 0;
  C_local_ptr[10] = 0;
  C_local_ptr[11] = 0;
  C_local_ptr[12] = 0;
  C_local_ptr[13] = 0;
  C_local_ptr[14] = 0;
  C_local_ptr[15] = 0;
#line 41 "tests/tilelang_min/driver/golden_kernels.py"
  for (int ko = 0; ko < 2; ++ko) {
#line 42 "tests/tilelang_min/driver/golden_kernels.py"
    __syncthreads();
    if (((((int)blockIdx.y) * 32) + (((int)threadIdx.x) >> 1)) < 44) {
      *(int4*)(v1_ptr + 0) = *(int4*)(A + ((((((int)blockIdx.y) * 2048) + ((((int)threadIdx.x) >> 1) * 64)) + (ko * 32)) + ((((int)threadIdx.x) & 1) * 16)));
      *(int*)(v0_ptr + 0) = *(int*)(v1_ptr + 0);
      *(int*)(v0_ptr + 4) = *(int*)(v1_ptr + 4);
      *(int*)(v0_ptr + 8) = *(int*)(v1_ptr + 8);
      *(int*)(v0_ptr + 12) = *(int*)(v1_ptr + 12);
      *(int4*)(A_in_ptr + 0) = *(int4*)(v0_ptr + 0);
    } else {
          signed char v_ = (signed char)0;
        uint4 v__1 = make_uint4((((uint)(*(uchar *)(&(v_)))) * (uint)16843009), (((uint)(*(uchar *)(&(v_)))) * (uint)16843009), (((uint)(*(uchar *)(&(v_)))) * (uint)16843009), (((uint)(*(uchar *)(&(v_)))) * (uint)16843009));
      *(int4*)(A_in_ptr + 0) = (*(int4 *)(&(v__1)));
    }
    *(int*)(v0_ptr + 0) = *(int*)(A_in_ptr + 0);
    *(int*)(v0_ptr + 4) = *(int*)(A_in_ptr + 4);
    *(int*)(v0_ptr + 8) = *(int*)(A_in_ptr + 8);
    *(int*)(v0_ptr + 12) = *(int*)(A_in_ptr + 12);
    *(int4*)(A_shared_ptr + (((((int)threadIdx.x) >> 1) * 32) + (((((int)threadIdx.x) & 1) ^ ((((int)threadIdx.x) & 15) >> 3)) * 16))) = *(int4*)(v0_ptr + 0);
#line 43 "tests/tilelang_min/driver/golden_kernels.py"
    if (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) {
      *(int*)(B_in_ptr + 0) = *(int*)(B + ((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)));
    } else {
          signed char v__2 = (signed char)0;
        uint v__3 = ((uint)(*(uchar *)(&(v__2)))) * (uint)16843009;
      *(int*)(B_in_ptr + 0) = (*(int *)(&(v__3)));
    }
    *(int*)(B_shared_ptr + (((((int)threadIdx.x) >> 3) * 36) + ((((int)threadIdx.x) & 7) * 4))) = *(int*)(B_in_ptr + 0);
    if (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) {
      *(int*)(B_in_1_ptr + 0) = *(int*)(B + (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 352));
    } else {
          signed char v__4 = (signed char)0;
        uint v__5 = ((uint)(*(uchar *)(&(v__4)))) * (uint)16843009;
      *(int*)(B_in_1_ptr + 0) = (*(int *)(&(v__5)));
    }
    *(int*)(B_shared_ptr + ((((((int)threadIdx.x) >> 3) * 36) + ((((int)threadIdx.x) & 7) * 4)) + 288)) = *(int*)(B_in_1_ptr + 0);
    if (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) {
      *(int*)(B_in_2_ptr + 0) = *(int*)(B + (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 704));
    } else {
          signed char v__6 = (signed char)0;
        uint v__7 = ((uint)(*(uchar *)(&(v__6)))) * (uint)16843009;
      *(int*)(B_in_2_ptr + 0) = (*(int *)(&(v__7)));
    }
    *(int*)(B_shared_ptr + ((((((int)threadIdx.x) >> 3) * 36) + ((((int)threadIdx.x) & 7) * 4)) + 576)) = *(int*)(B_in_2_ptr + 0);
    if (((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 7) * 4)) < 44) {
      *(int*)(B_in_3_ptr + 0) = *(int*)(B + (((((ko * 1408) + ((((int)threadIdx.x) >> 3) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 7) * 4)) + 1056));
    } else {
          signed char v__8 = (signed char)0;
        uint v__9 = ((uint)(*(uchar *)(&(v__8)))) * (uint)16843009;
      *(int*)(B_in_3_ptr + 0) = (*(int *)(&(v__9)));
    }
    *(int*)(B_shared_ptr + ((((((int)threadIdx.x) >> 3) * 36) + ((((int)threadIdx.x) & 7) * 4)) + 864)) = *(int*)(B_in_3_ptr + 0);
#line 44 "tests/tilelang_min/driver/golden_kernels.py"
    __syncthreads();
      int v__10 = C_local_ptr[0];
    c_frag_ptr[0] = (*(uint *)(&(v__10)));
      int v__11 = C_local_ptr[1];
    c_frag_ptr[1] = (*(uint *)(&(v__11)));
      int v__12 = C_local_ptr[2];
    c_frag_ptr[2] = (*(uint *)(&(v__12)));
      int v__13 = C_local_ptr[3];
    c_frag_ptr[3] = (*(uint *)(&(v__13)));
      int v__14 = C_local_ptr[4];
    c_frag_ptr[4] = (*(uint *)(&(v__14)));
      int v__15 = C_local_ptr[5];
    c_frag_ptr[5] = (*(uint *)(&(v__15)));
      int v__16 = C_local_ptr[6];
    c_frag_ptr[6] = (*(uint *)(&(v__16)));
      int v__17 = C_local_ptr[7];
    c_frag_ptr[7] = (*(uint *)(&(v__17)));
      int v__18 = C_local_ptr[8];
    c_frag_ptr[8] = (*(uint *)(&(v__18)));
      int v__19 = C_local_ptr[9];
    c_frag_ptr[9] = (*(uint *)(&(v__19)));
      int v__20 = C_local_ptr[10];
    c_frag_ptr[10] = (*(uint *)(&(v__20)));
      int v__21 = C_local_ptr[11];
    c_frag_ptr[11] = (*(uint *)(&(v__21)));
      int v__22 = C_local_ptr[12];
    c_frag_ptr[12] = (*(uint *)(&(v__22)));
      int v__23 = C_local_ptr[13];
    c_frag_ptr[13] = (*(uint *)(&(v__23)));
      int v__24 = C_local_ptr[14];
    c_frag_ptr[14] = (*(uint *)(&(v__24)));
      int v__25 = C_local_ptr[15];
    c_frag_ptr[15] = (*(uint *)(&(v__25)));
    tvm_builtin_ptx_ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], tvm_builtin_cuda_cvta_generic_to_shared((&(A_shared_ptr[((((((int)threadIdx.x) >> 5) * 512) + ((((int)threadIdx.x) & 15) * 32)) + ((((((int)threadIdx.x) & 31) >> 4) ^ ((((int)threadIdx.x) & 7) >> 2)) * 16))]))));
    packed_ptr[0] = B_shared_ptr[(((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2))];
    packed_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 36)];
    packed_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 72)];
    packed_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 108)];
      int v__26 = *(int*)(packed_ptr + 0);
    b_frag_ptr[0] = (*(uint *)(&(v__26)));
    packed_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 576)];
    packed_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 612)];
    packed_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 648)];
    packed_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 684)];
      int v__27 = *(int*)(packed_ptr + 0);
    b_frag_ptr[1] = (*(uint *)(&(v__27)));
    packed_1_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 8)];
    packed_1_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 44)];
    packed_1_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 80)];
    packed_1_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 116)];
      int v__28 = *(int*)(packed_1_ptr + 0);
    b_frag_ptr[2] = (*(uint *)(&(v__28)));
    packed_1_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 584)];
    packed_1_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 620)];
    packed_1_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 656)];
    packed_1_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 692)];
      int v__29 = *(int*)(packed_1_ptr + 0);
    b_frag_ptr[3] = (*(uint *)(&(v__29)));
    packed_2_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 16)];
    packed_2_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 52)];
    packed_2_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 88)];
    packed_2_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 124)];
      int v__30 = *(int*)(packed_2_ptr + 0);
    b_frag_ptr[4] = (*(uint *)(&(v__30)));
    packed_2_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 592)];
    packed_2_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 628)];
    packed_2_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 664)];
    packed_2_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 700)];
      int v__31 = *(int*)(packed_2_ptr + 0);
    b_frag_ptr[5] = (*(uint *)(&(v__31)));
    packed_3_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 24)];
    packed_3_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 60)];
    packed_3_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 96)];
    packed_3_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 132)];
      int v__32 = *(int*)(packed_3_ptr + 0);
    b_frag_ptr[6] = (*(uint *)(&(v__32)));
    packed_3_ptr[0] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 600)];
    packed_3_ptr[1] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 636)];
    packed_3_ptr[2] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 672)];
    packed_3_ptr[3] = B_shared_ptr[((((((int)threadIdx.x) & 3) * 144) + ((((int)threadIdx.x) & 31) >> 2)) + 708)];
      int v__33 = *(int*)(packed_3_ptr + 0);
    b_frag_ptr[7] = (*(uint *)(&(v__33)));
    tvm_builtin_ptx_mma_int_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(c_frag_ptr[0], c_frag_ptr[1], c_frag_ptr[2], c_frag_ptr[3], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[0], b_frag_ptr[1], c_frag_ptr[0], c_frag_ptr[1], c_frag_ptr[2], c_frag_ptr[3]);
    tvm_builtin_ptx_mma_int_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(c_frag_ptr[4], c_frag_ptr[5], c_frag_ptr[6], c_frag_ptr[7], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[2], b_frag_ptr[3], c_frag_ptr[4], c_frag_ptr[5], c_frag_ptr[6], c_frag_ptr[7]);
    tvm_builtin_ptx_mma_int_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(c_frag_ptr[8], c_frag_ptr[9], c_frag_ptr[10], c_frag_ptr[11], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[4], b_frag_ptr[5], c_frag_ptr[8], c_frag_ptr[9], c_frag_ptr[10], c_frag_ptr[11]);
    tvm_builtin_ptx_mma_int_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(c_frag_ptr[12], c_frag_ptr[13], c_frag_ptr[14], c_frag_ptr[15], a_frag_ptr[0], a_frag_ptr[1], a_frag_ptr[2], a_frag_ptr[3], b_frag_ptr[6], b_frag_ptr[7], c_frag_ptr[12], c_frag_ptr[13], c_frag_ptr[14], c_frag_ptr[15]);
      uint v__34 = c_frag_ptr[0];
    C_local_ptr[0] = (*(int *)(&(v__34)));
      uint v__35 = c_frag_ptr[1];
    C_local_ptr[1] = (*(int *)(&(v__35)));
      uint v__36 = c_frag_ptr[2];
    C_local_ptr[2] = (*(int *)(&(v__36)));
      uint v__37 = c_frag_ptr[3];
    C_local_ptr[3] = (*(int *)(&(v__37)));
      uint v__38 = c_frag_ptr[4];
    C_local_ptr[4] = (*(int *)(&(v__38)));
      uint v__39 = c_frag_ptr[5];
    C_local_ptr[5] = (*(int *)(&(v__39)));
      uint v__40 = c_frag_ptr[6];
    C_local_ptr[6] = (*(int *)(&(v__40)));
      uint v__41 = c_frag_ptr[7];
    C_local_ptr[7] = (*(int *)(&(v__41)));
      uint v__42 = c_frag_ptr[8];
    C_local_ptr[8] = (*(int *)(&(v__42)));
      uint v__43 = c_frag_ptr[9];
    C_local_ptr[9] = (*(int *)(&(v__43)));
      uint v__44 = c_frag_ptr[10];
    C_local_ptr[10] = (*(int *)(&(v__44)));
      uint v__45 = c_frag_ptr[11];
    C_local_ptr[11] = (*(int *)(&(v__45)));
      uint v__46 = c_frag_ptr[12];
    C_local_ptr[12] = (*(int *)(&(v__46)));
      uint v__47 = c_frag_ptr[13];
    C_local_ptr[13] = (*(int *)(&(v__47)));
      uint v__48 = c_frag_ptr[14];
    C_local_ptr[14] = (*(int *)(&(v__48)));
      uint v__49 = c_frag_ptr[15];
    C_local_ptr[15] = (*(int *)(&(v__49)));
  }
#line 45 "tests/tilelang_min/driver/golden_kernels.py"
  if ((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) {
    *(int2*)(C + (((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2))) = *(int2*)(C_local_ptr + 0);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 352)) = *(int2*)(C_local_ptr + 2);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 8)) = *(int2*)(C_local_ptr + 4);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 8) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 360)) = *(int2*)(C_local_ptr + 6);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 16)) = *(int2*)(C_local_ptr + 8);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 16) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 368)) = *(int2*)(C_local_ptr + 10);
  }
  if (((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 24)) = *(int2*)(C_local_ptr + 12);
  }
  if ((((((((int)blockIdx.y) * 32) + ((((int)threadIdx.x) >> 5) * 16)) + ((((int)threadIdx.x) & 31) >> 2)) + 8) < 44) && ((((((int)blockIdx.x) * 32) + ((((int)threadIdx.x) & 3) * 2)) + 24) < 44)) {
    *(int2*)(C + ((((((((int)blockIdx.y) * 1408) + ((((int)threadIdx.x) >> 5) * 704)) + (((((int)threadIdx.x) & 31) >> 2) * 44)) + (((int)blockIdx.x) * 32)) + ((((int)threadIdx.x) & 3) * 2)) + 376)) = *(int2*)(C_local_ptr + 14);
  }
}
