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

// The aligned pieces of 16 bytes in which a chunk lies that begins on kAlign bytes, and the chunk
// out of them, zero past its `valid` bytes. A matrix begins on 16 bytes, so that nothing before it
// is read, and nothing from its `end` on is either: the piece in which it ends comes last, word by
// word.
template <int kAlign>
struct RaggedChunk {
  uint4 pieces[2];

  // Whether a piece is still missing.
  __device__ __forceinline__ bool read(const char* from, int valid, const char* end) {
    const char* aligned = from - skipped(from);
    const bool first = valid > 0;
    const bool second = skipped(from) + valid > 16;
    const i64 left = end - aligned;
    pieces[0] = pieces[1] = uint4{0, 0, 0, 0};
    if (first && left >= 16) pieces[0] = *reinterpret_cast<const uint4*>(aligned);
    if (second && left >= 32) pieces[1] = *reinterpret_cast<const uint4*>(aligned + 16);
    return (first && left < 16) || (second && left < 32);
  }

  __device__ __forceinline__ void read_last(const char* from, const char* end) {
    const char* aligned = from - skipped(from);
    const bool second = end - aligned > 16;
    const u16* halves = reinterpret_cast<const u16*>(aligned + (second ? 16 : 0));
    const int left = int(end - reinterpret_cast<const char*>(halves));
    u32 words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (left >= i * 4 + 4) {
        words[i] = reinterpret_cast<const u32*>(halves)[i];
      } else if (left >= i * 4 + 2) {
        words[i] = halves[i * 2];
      }
    }
    const uint4 piece{words[0], words[1], words[2], words[3]};
    if (second) {
      pieces[1] = piece;
    } else {
      pieces[0] = piece;
    }
  }

  __device__ __forceinline__ uint4 chunk(const char* from, int valid) const {
    const bool two = skipped(from) & 8;
    const bool one = skipped(from) & 4;
    const u32 w[8] = {pieces[0].x, pieces[0].y, pieces[0].z, pieces[0].w,
                      pieces[1].x, pieces[1].y, pieces[1].z, pieces[1].w};
    u32 half[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) half[i] = two ? w[i + 2] : w[i];
    u32 out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 low = one ? half[i + 1] : half[i];
      const u32 high = one ? half[i + 2] : half[i + 1];
      const u32 word = __funnelshift_r(low, high, (skipped(from) & 2) * 8);
      const int left = valid - i * 4;  // bytes of this word that exist
      out[i] = left >= 4 ? word : left == 2 ? word & 0xffff : 0;
    }
    return uint4{out[0], out[1], out[2], out[3]};
  }

 private:
  static __device__ __forceinline__ int skipped(const char* from) {
    return int(reinterpret_cast<u64>(from)) & (16 - kAlign);
  }
};

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
