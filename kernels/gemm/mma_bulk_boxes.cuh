// The way of rows into shared memory as boxes of tensor maps (BOXES).
//
// Every eighth row of 16-bit elements (every 16 / align-th) begins at the same place within 16
// bytes, and these rows are a multiple of 16 bytes apart: the copy engine loads them as a matrix of
// their own, which begins with the piece of 16 bytes in which its first row does. So a tile comes
// in so many boxes, of which each has all its rows behind as many elements of the rows before.

#if BOXES
class BoxCopies {
 public:
  BoxCopies() = default;
  __device__ __forceinline__ BoxCopies(const MmaBulkArgs& args, const TilePlace& tile, int first) {
    const int box = int(threadIdx.x % 32) * kWarps + int(threadIdx.x / 32);
    const bool of_a = box < kRowsApartA;
    const int at = of_a ? box : box - kRowsApartA;
    map_ = box < kBoxes ? &args.maps[box] : nullptr;
    place_ = of_a ? at * kBoxBytesA : kOperandBytesA + at * kBoxBytesB;
    bytes_ = of_a ? BLOCK_M / kRowsApartA * kSlotBytes : BLOCK_N / kRowsApartB * kSlotBytes;
    outer_ = of_a ? tile.row / kRowsApartA : tile.col / kRowsApartB;
    first_ = first;
  }

  // Starts to copy the part's k tile `step`, the `turn`-th that goes through the ring.
  __device__ __forceinline__ void start(SharedMemory& shared, u32 turn, int step, int) const {
    if (map_ == nullptr) return;
    const u32 stage = turn % STAGES;
    const u32 full = shared_address(&shared.full[stage]);
    barrier_expect(full, bytes_);
    tma_load<false>(shared_address(shared.ring.stages[stage]) + place_, *map_,
                    (first_ + step) * BLOCK_K, outer_, full, L2Policy{});
  }

 private:
  const TensorMapBytes* map_;  // null where this thread has no box
  u32 place_;                  // in a stage
  u32 bytes_;
  int outer_;
  int first_;
};
#endif
