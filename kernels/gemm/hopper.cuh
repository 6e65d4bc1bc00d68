// The PTX of Hopper's asynchronous machinery: transaction barriers, the tensor copy engine (TMA),
// warpgroup matrix instructions. Addresses of shared memory are 32-bit.

__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}

// Makes the barriers of this block visible to the copy engine and to the cluster.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Whether a wait would be over at once. Where it would be, none need follow: the answer orders what
// comes behind it like a wait.
__device__ __forceinline__ bool barrier_passed(u32 barrier, u32 parity) {
  u32 passed;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}\n"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}

// One arrival that also announces `bytes` to come: by the copy engine, or given by other blocks.
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

// The same barrier in block `rank` of the cluster.
__device__ __forceinline__ void barrier_arrive_at(u32 barrier, u32 rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// Barrier 0 of the block among `kThreads` of its threads: those that only bring something, and
// those that wait until all of them came.
template <int kThreads>
__device__ __forceinline__ void block_arrive() {
  asm volatile("bar.arrive 0, %0;\n" ::"n"(kThreads) : "memory");
}

template <int kThreads>
__device__ __forceinline__ void block_wait() {
  asm volatile("bar.sync 0, %0;\n" ::"n"(kThreads) : "memory");
}

// A barrier of its own for each of `kWarpgroups`, by its number. Constants: ptxas would take all 16
// for one that it does not know.
template <int kWarpgroups>
__device__ __forceinline__ void warpgroup_wait(int warpgroup) {
  static_assert(kWarpgroups <= 3);
  if (kWarpgroups == 1 || warpgroup == 0) {
    asm volatile("bar.sync 1, 128;\n" ::: "memory");
  } else if (kWarpgroups == 2 || warpgroup == 1) {
    asm volatile("bar.sync 2, 128;\n" ::: "memory");
  } else {
    asm volatile("bar.sync 3, 128;\n" ::: "memory");
  }
}

__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}

// For those that brought nothing but barriers behind barrier_init_fence(): without `relaxed` it
// waits until all that its thread wrote is seen by the whole GPU.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

// All threads of the cluster wait for each other; what they wrote before is seen behind it.
__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory");
  cluster_wait();
}

// The same place in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ u32 cluster_address(u32 address, u32 rank) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

// Writes to another block's shared memory, whose barrier hears of the bytes when they are there.
__device__ __forceinline__ void give_floats(u32 there, float4 v, u32 barrier_there) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];\n" ::"r"(there),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(barrier_there)
      : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMapBytes& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(&map) : "memory");
}

// Which lines the L2 drops when it needs room: what ptxas 13.0 makes of createpolicy.fractional,
// which itself takes several instructions, and of no preference (CUTLASS, TMA::CacheHintSm90).
enum class L2Policy : u64 {
  kNormal = 0x1000000000000000,
  kEvictFirst = 0x12F0000000000000,
  kEvictLast = 0x14F0000000000000,
};

// Copies the box at (inner, outer) to shared memory; what lies outside of the matrix becomes zero.
// The policy is given with the copy only where `kHinted`.
template <bool kHinted>
__device__ __forceinline__ void tma_load(u32 shared, const TensorMapBytes& map, int inner,
                                         int outer, u32 barrier, L2Policy policy) {
#define AT_LOAD(hint, operand)                                                                \
  asm volatile(                                                                               \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" hint \
      " [%0], [%1, {%2, %3}], [%4]" operand ";\n" ::"r"(shared),                              \
      "l"(&map), "r"(inner), "r"(outer), "r"(barrier), "l"(u64(policy))                       \
      : "memory")
  if constexpr (kHinted) {
    AT_LOAD(".L2::cache_hint", ", %5");
  } else {
    AT_LOAD("", "");
  }
#undef AT_LOAD
}

// The same into every block of the cluster whose bit is set, at the same address of each.
template <bool kHinted>
__device__ __forceinline__ void tma_load_multicast(u32 shared, const TensorMapBytes& map, int inner,
                                                   int outer, u32 barrier, u16 blocks,
                                                   L2Policy policy) {
#define AT_LOAD(hint, operand)                                                                  \
  asm volatile(                                                                                 \
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"        \
      ".multicast::cluster" hint " [%0], [%1, {%2, %3}], [%4], %5" operand ";\n" ::"r"(shared), \
      "l"(&map), "r"(inner), "r"(outer), "r"(barrier), "h"(blocks), "l"(u64(policy))            \
      : "memory")
  if constexpr (kHinted) {
    AT_LOAD(".L2::cache_hint", ", %6");
  } else {
    AT_LOAD("", "");
  }
#undef AT_LOAD
}

// Copies a box from shared memory. What lies outside of the matrix is not written, where the
// matrix ends on a multiple of 16 bytes: the engine writes whole pieces of that size.
__device__ __forceinline__ void tma_store(const TensorMapBytes& map, u32 shared, int inner,
                                          int outer) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(&map),
      "r"(shared), "r"(inner), "r"(outer)
      : "memory");
}

// Closes a group of stores, which may be empty.
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

// Until at most kPending groups of this thread have still to read their shared memory.
template <int kPending>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

// Orders this thread's writes to shared memory before what the copy engine reads next.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// The same of global memory: in the thread that wrote, before it tells anybody, and in the one that
// was told, before it asks the copy engine.
__device__ __forceinline__ void fence_async_proxy_global() {
  asm volatile("fence.proxy.async.global;\n" ::: "memory");
}

template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

// Four 8x8 matrices of 16-bit elements, each lane giving one row's address.
template <bool kTransposed>
__device__ __forceinline__ void stmatrix_x4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  if constexpr (kTransposed) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3)
        : "memory");
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3)
        : "memory");
  }
}

template <bool kTransposed>
__device__ __forceinline__ void stmatrix_x2(u32 address, u32 r0, u32 r1) {
  if constexpr (kTransposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};\n" ::"r"(address),
                 "r"(r0), "r"(r1)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};\n" ::"r"(address),
                 "r"(r0), "r"(r1)
                 : "memory");
  }
}
