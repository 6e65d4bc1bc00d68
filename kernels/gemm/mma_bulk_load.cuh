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
  RowCopies() = default;
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

// Whether a tile's rows are all of k and lie close to each other. Then A's come as one run and B's
// as another, gaps and all, by cp.async: threads that ask for neighbouring pieces are faster at
// that than the engine, which takes its time for each row.
__device__ __forceinline__ bool rows_are_runs(const GemmArgs& args) {
  return !BOXES && args.k <= BLOCK_K && args.lda * kElementBytes <= kSlotBytes &&
         args.ldb * kElementBytes <= kSlotBytes;
}

// Such a run, of a tile of kRows rows from `first` on. It lies as far behind a line as in global
// memory.
template <int kRows>
class RunCopy {
 public:
  __device__ __forceinline__ RunCopy(u8* stage, const void* matrix, int first, int extent,
                                     i64 leading, int k) {
    const int rows = min(extent - first, kRows);
    const u64 begin = u64(matrix) + first * leading * kElementBytes;
    end_ = begin + ((rows - 1) * leading + k) * kElementBytes;
    from_ = begin & ~u64(kPiece - 1);
    place_ = stage + (u32(from_) & 127);
    // Nothing is read behind the matrix: of the piece in which it ends, what exists comes by
    // element.
    ends_ = rows == extent - first;
    bytes_ = int(u32(end_ - from_)) & (ends_ ? ~int(kPiece - 1) : ~0);
  }

  // Asks for its whole pieces by cp.async.
  __device__ __forceinline__ void ask() const {
    // With addresses at constant distances: in a loop of single copies each takes some 200 clocks,
    // presumably since its address stays in the registers until the copy has left.
    constexpr int kSideBySide = 8;
    constexpr int kStep = THREADS * int(kPiece);
    const u32 to = shared_address(place_);
#pragma unroll 1
    for (int at = int(threadIdx.x) * int(kPiece); at < bytes_; at += kSideBySide * kStep) {
#pragma unroll
      for (int i = 0; i < kSideBySide && i * kStep < kRows * kSlotBytes; ++i) {
        if (at + i * kStep >= bytes_) continue;
        cp_async<kPiece>(to + at + i * kStep, reinterpret_cast<const u8*>(from_ + at) + i * kStep,
                         kPiece);
      }
    }
  }

  // Copies the elements behind these. The thread waits for them, so nothing is left to be asked
  // for.
  __device__ __forceinline__ void copy_end() const {
    typedef VectorOf<kElementBytes>::Type Element;
    const u32 at = u32(bytes_) + threadIdx.x * kElementBytes;
    if (!ends_ || from_ + at >= end_) return;
    *reinterpret_cast<Element*>(place_ + at) = *reinterpret_cast<const Element*>(from_ + at);
  }

 private:
  static constexpr u32 kPiece = 16;

  u64 from_;
  u64 end_;
  u8* place_;
  int bytes_;
  bool ends_;  // with the matrix
};

// Starts to copy both runs of a tile.
__device__ __forceinline__ void start_runs(SharedMemory& shared, const GemmArgs& args,
                                           const TilePlace& tile, u32 stage) {
  u8* target = shared.ring.stages[stage];
  const RunCopy<BLOCK_M> a(target, args.a, tile.row, args.m, args.lda, args.k);
  a.ask();
  const RunCopy<BLOCK_N> b(target + kOperandBytesA, args.b, tile.col, args.n, args.ldb, args.k);
  b.ask();
  cp_async_commit();
  a.copy_end();
  b.copy_end();
}

// Of all threads.
__device__ __forceinline__ void wait_for_runs() {
  cp_async_wait<0>();
  __syncthreads();
}
