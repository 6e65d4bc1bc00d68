// The way of rows into shared memory.

// Copies bytes in pieces of 16: both addresses begin on one.
__device__ __forceinline__ void bulk_copy(u32 shared, const void* global, u32 bytes, u32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::
          "r"(shared),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier)
      : "memory");
}

// The rows that one thread copies: its slots of each stage.
class RowCopies {
 public:
  __device__ __forceinline__ RowCopies(const GemmArgs& args, const TilePlace& tile, int first) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int slot = slot_of(i);
      const bool of_a = slot < BLOCK_M;
      const int row = of_a ? tile.row + slot : tile.col + slot - BLOCK_M;
      const int rows = of_a ? args.m : args.n;
      const i64 pitch = (of_a ? args.lda : args.ldb) * kElementBytes;
      const u8* matrix = static_cast<const u8*>(of_a ? args.a : args.b);
      // A tile may end past 2^31 - 1 rows, where they turn negative.
      const bool exists = slot < kSlots && u32(row) < u32(rows);
      from_[i] = exists ? matrix + row * pitch + i64(first) * (BLOCK_K * kElementBytes) : nullptr;
      end_[i] = matrix + (rows - 1) * pitch + i64(args.k) * kElementBytes;
    }
    first_ = first;
  }

  // Starts to copy the part's k tile `step`, the `turn`-th that goes through the ring.
  __device__ __forceinline__ void start(SharedMemory& shared, u32 turn, int step, int k) const {
    const u32 stage = turn % STAGES;
    const u32 full = shared_address(&shared.full[stage]);
    const int left = min(k - (first_ + step) * BLOCK_K, BLOCK_K) * kElementBytes;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (slot_of(i) >= kSlots) continue;
      u8* slot = shared.ring.stages[stage] + slot_of(i) * kSlotBytes;
      copy(slot, from_[i], i64(step) * (BLOCK_K * kElementBytes), left, end_[i], full);
    }
  }

 private:
  // All warps take part, as each copy takes a warp some 60 clocks to ask for.
  static constexpr int kEach = (kSlots + THREADS - 1) / THREADS;
  static __device__ __forceinline__ int slot_of(int i) {
    return (i * 32 + lane()) * kWarps + int(threadIdx.x / 32);
  }

  // Nothing is read outside of the matrix: of the piece in which it ends, what exists comes element
  // by element.
  static __device__ __forceinline__ void copy(u8* slot, const u8* row, i64 offset, int bytes,
                                              const u8* end, u32 full) {
    if (row == nullptr) {
      barrier_arrive(full);
      return;
    }
    const u64 first = u64(row) + offset;
    const u64 begin = first & ~u64(15);
    const u64 behind = first + bytes;
    const u64 whole = min((behind + 15) & ~u64(15), u64(end) & ~u64(15));
    u8* target = slot + (u32(begin) & 127);
    if (behind > whole) {
      typedef VectorOf<kElementBytes>::Type Element;
#pragma unroll 1
      for (u64 at = max(first, whole); at < behind; at += kElementBytes) {
        *reinterpret_cast<Element*>(target + (at - begin)) = *reinterpret_cast<const Element*>(at);
      }
    }
    if (whole > begin) {
      barrier_expect(full, u32(whole - begin));
      bulk_copy(shared_address(target), reinterpret_cast<const void*>(begin), u32(whole - begin),
                full);
    } else {
      barrier_arrive(full);
    }
  }

  const u8* from_[kEach];
  const u8* end_[kEach];
  int first_;
};
