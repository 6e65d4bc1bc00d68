// Sixteen bytes that begin anywhere.

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
