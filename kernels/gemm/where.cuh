// A second entry beside a kernel that runs in clusters, by which a program learns where the GPU at
// hand runs these: the driver does not tell.

#if CLUSTER_M * CLUSTER_N * SPLIT_PARTS > 1
// The SM of each block, which stays there for `clocks`, so that all run at once.
extern "C" __global__ void where_blocks_run(u32* sms, u64 clocks) {
  const i64 start = clock64();
  if (threadIdx.x == 0) asm volatile("mov.u32 %0, %%smid;" : "=r"(sms[blockIdx.x]));
  while (u64(clock64() - start) < clocks) {
  }
}
#endif
