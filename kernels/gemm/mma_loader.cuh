// The way of an operand from global into shared memory.

// Copies one operand's tiles from global memory, k tile after k tile.
template <bool kKMajor, int kExtent, int kAlign>
struct Loader {
  typedef Tile<kKMajor, kExtent> T;
  static constexpr int kTotal = T::kRows * T::kChunks;
  static constexpr int kPerThread = (kTotal + THREADS - 1) / THREADS;
  static constexpr int kRowStep = THREADS / T::kChunks;  // rows between a thread's chunks
  static_assert(THREADS % T::kChunks == 0, "a thread stays in its column of chunks");

  const char* pointer;  // of this thread's first chunk
  i64 row_step_bytes;
  i64 k_step_bytes;
  int row;
  int chunk;
  int extent_left;  // rows or columns of the operand from the tile's first on
  u32 shared_offset[kPerThread];

  __device__ __forceinline__ Loader(const void* base, i64 leading, int first, int extent) {
    row = threadIdx.x / T::kChunks;
    chunk = threadIdx.x % T::kChunks;
    extent_left = extent - first;
    const i64 row_bytes = leading * kElementBytes;
    const i64 origin = kKMajor ? (first + i64(row)) * row_bytes + chunk * 16
                               : row * row_bytes + i64(first) * kElementBytes + chunk * 16;
    pointer = static_cast<const char*>(base) + origin;
    row_step_bytes = kRowStep * row_bytes;
    k_step_bytes = kKMajor ? i64(BLOCK_K) * kElementBytes : BLOCK_K * row_bytes;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) shared_offset[i] = T::offset(row + i * kRowStep, chunk);
  }

  __device__ __forceinline__ void skip(int k_tiles) { pointer += k_tiles * k_step_bytes; }

  // Fills `tile` (a shared address) and moves on by one k tile. `k_left`: columns of k from there.
  __device__ __forceinline__ void load(u32 tile, int k_left) {
    // Bytes of a chunk that exist; along the contiguous direction the same for all of its rows.
    const int contiguous_left = kKMajor ? k_left : extent_left;
    const int valid =
        min(max(contiguous_left - chunk * kChunkElements, 0), kChunkElements) * kElementBytes;
    const int rows_left = (kKMajor ? extent_left : k_left) - row;
    const char* source = pointer;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (kTotal % THREADS == 0 || row + i * kRowStep < T::kRows) {
        const int bytes = i * kRowStep < rows_left ? valid : 0;
        copy_chunk<kAlign>(tile + shared_offset[i], source, bytes);
      }
      source += row_step_bytes;
    }
    pointer += k_step_bytes;
  }
};
