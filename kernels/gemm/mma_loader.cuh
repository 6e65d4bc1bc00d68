// The way of an operand from global into shared memory.

// Moves one 16-byte chunk; what is past `valid` becomes zero.
template <int kAlign>
__device__ __forceinline__ void copy_chunk(u32 shared, const char* global, int valid) {
#pragma unroll
  for (int i = 0; i < 16; i += kAlign) {
    const int part = min(max(valid - i, 0), kAlign);
    cp_async<kAlign>(shared + i, global + (part > 0 ? i : 0), part);
  }
}

// Copies one operand's tiles from global memory, k tile after k tile: asynchronously where the GPU
// can and rows are aligned to 4 bytes or more, else through registers.
template <bool kKMajor, int kExtent, int kAlign>
struct Loader {
  typedef Tile<kKMajor, kExtent> T;
  static constexpr int kTotal = T::kRows * T::kChunks;
  static constexpr int kPerThread = (kTotal + THREADS - 1) / THREADS;
  static constexpr int kRowStep = THREADS / T::kChunks;  // rows between a thread's chunks
  static_assert(THREADS % T::kChunks == 0, "a thread stays in its column of chunks");
  static constexpr bool kAsynchronous = HAS_CP_ASYNC && kAlign >= 4;
  static constexpr int kAtOnce = kAsynchronous ? 1 : kPerThread < 4 ? kPerThread : 4;  // chunks

  const char* pointer;  // of this thread's first chunk
  const char* end;      // of the matrix
  i64 row_step_bytes;
  i64 k_step_bytes;
  int row;
  int chunk;
  int extent_left;  // rows or columns of the operand from the tile's first on
  u32 shared_offset[kPerThread];

  __device__ __forceinline__ Loader(const void* base, i64 leading, int first, int extent, int k) {
    row = threadIdx.x / T::kChunks;
    chunk = threadIdx.x % T::kChunks;
    extent_left = extent - first;
    const i64 row_bytes = leading * kElementBytes;
    const i64 origin = kKMajor ? (first + i64(row)) * row_bytes + chunk * 16
                               : row * row_bytes + i64(first) * kElementBytes + chunk * 16;
    pointer = static_cast<const char*>(base) + origin;
    end = static_cast<const char*>(base) + ((kKMajor ? extent : k) - 1) * row_bytes +
          i64(kKMajor ? k : extent) * kElementBytes;
    row_step_bytes = kRowStep * row_bytes;
    k_step_bytes = kKMajor ? i64(BLOCK_K) * kElementBytes : BLOCK_K * row_bytes;
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) shared_offset[i] = T::offset(row + i * kRowStep, chunk);
  }

  __device__ __forceinline__ void skip(int k_tiles) { pointer += k_tiles * k_step_bytes; }

  // Whether the tile has this thread's i-th chunk.
  __device__ __forceinline__ bool has(int i) const {
    constexpr bool kAll = kTotal % THREADS == 0 && kPerThread % kAtOnce == 0;
    return kAll || row + i * kRowStep < T::kRows;
  }

  // Fills `tile` (a shared address) and moves on by one k tile. `k_left`: columns of k from there.
  __device__ __forceinline__ void load(u32 tile, int k_left) {
    // Bytes of a chunk that exist; along the contiguous direction the same for all of its rows.
    const int contiguous_left = kKMajor ? k_left : extent_left;
    const int valid =
        min(max(contiguous_left - chunk * kChunkElements, 0), kChunkElements) * kElementBytes;
    const int rows_left = (kKMajor ? extent_left : k_left) - row;
    const auto bytes = [&](int i) { return i * kRowStep < rows_left ? valid : 0; };
    const char* source = pointer;
    if constexpr (kAsynchronous) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        if (has(i)) copy_chunk<kAlign>(tile + shared_offset[i], source, bytes(i));
        source += row_step_bytes;
      }
    } else {
#pragma unroll 1  // a tile's worth of this is long to compile
      for (int first = 0; first < kPerThread; first += kAtOnce) {
        RaggedChunk<kAlign> chunks[kAtOnce];
        bool missing = false;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int there = has(first + i) ? bytes(first + i) : 0;
          missing |= chunks[i].read(source + i * row_step_bytes, there, end);
        }
        if (missing) {
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            const char* from = source + i * row_step_bytes;
            if (bytes(first + i) > 0 && end - from <= 32) chunks[i].read_last(from, end);
          }
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (!has(first + i)) continue;
          store_shared_16(tile + T::offset(row + (first + i) * kRowStep, chunk),
                          chunks[i].chunk(source + i * row_step_bytes, bytes(first + i)));
        }
        source += kAtOnce * row_step_bytes;
      }
    }
    pointer += k_step_bytes;
  }
};
