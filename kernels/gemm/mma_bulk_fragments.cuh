// What a lane of mma_bulk multiplies: words of rows that lie in shared memory as they came.

// The words of a lane for one step along k, as the instruction has them.
struct Fragments {
  u32 a[kTilesM][4];
  u32 b[kTilesN][2];
};

// A lane's next words, of which the first begins at `address` of shared memory, on kAlign bytes.
template <int kAlign, int kWords>
__device__ __forceinline__ void read_words(u32 (&w)[kWords], u32 address) {
  if constexpr (kLanesHavePieces && kAlign >= 16 && kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(w[i]), "=r"(w[i + 1]), "=r"(w[i + 2]), "=r"(w[i + 3])
                   : "r"(address + i * 4));
    }
  } else if constexpr (kLanesHavePieces && kAlign >= 8) {
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n"
                   : "=r"(w[i]), "=r"(w[i + 1])
                   : "r"(address + i * 4));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(w[i]) : "r"(address + i * kWordStride));
    }
  }
}

// The same where they begin on 2 bytes: each is made of two.
template <int kWords>
__device__ __forceinline__ void read_halves(u32 (&w)[kWords], u32 address) {
  u32 whole[kWords + 1];
  read_words<4>(whole, address & ~3);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    w[i] = __funnelshift_r(whole[i], whole[i + 1], address << 3);  // by bits 0..4 of that: 0 or 16
  }
}

// Steps whose fragments are asked for together: as many as registers are free for.
constexpr int kStepRegisters = 4 * kTilesM + 2 * kTilesN;
constexpr int kGroup = kStepRegisters <= 12 ? 4 : kStepRegisters <= 24 ? 2 : 1;

// Where a lane's fragments begin: of each group of 8 rows or columns its own row's word.
class FragmentReader {
 public:
  FragmentReader() = default;
  __device__ __forceinline__ FragmentReader(const SharedMemory& shared, const GemmArgs& args,
                                            const TilePlace& tile, bool in_runs) {
    const WarpPlace place;
    const u32 ring = shared_address(&shared) + lane() % 4 * kLaneStride;
#pragma unroll
    for (int i = 0; i < 2 * kTilesM; ++i) {
      const int row = row_of_group<kClassesA>(place.group_m + i, lane() / 4);
      a_[i] =
          ring + place_in_stage<kRowsApartA, kBoxBytesA>(args.a, tile.row, row, args.lda, in_runs);
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      const int col = row_of_group<kClassesB>(place.group_n + j, lane() / 4);
      b_[j] = ring + kOperandBytesA +
              place_in_stage<kRowsApartB, kBoxBytesB>(args.b, tile.col, col, args.ldb, in_runs);
    }
  }

  // Of kGroup steps, the lane's words of which begin `offset` bytes behind its first in the ring.
  __device__ __forceinline__ void read(Fragments (&f)[kGroup], u32 offset) const {
#pragma unroll
    for (int i = 0; i < 2 * kTilesM; ++i) {
      u32 w[2 * kGroup];
      read_row<ALIGN_A>(w, a_[i] + offset);
#pragma unroll
      for (int j = 0; j < 2 * kGroup; ++j) f[j / 2].a[i / 2][i % 2 + j % 2 * 2] = w[j];
    }
#pragma unroll
    for (int i = 0; i < kTilesN; ++i) {
      u32 w[2 * kGroup];
      read_row<ALIGN_B>(w, b_[i] + offset);
#pragma unroll
      for (int j = 0; j < 2 * kGroup; ++j) f[j / 2].b[i][j % 2] = w[j];
    }
  }

 private:
  template <int kAlign, int kWords>
  static __device__ __forceinline__ void read_row(u32 (&w)[kWords], u32 address) {
    if constexpr (kAlign < 4) {
      read_halves(w, address);
    } else {
      read_words<kAlign>(w, address);
#pragma unroll
      for (int i = 0; i < kWords; ++i) w[i] = round_tf32(w[i]);
    }
  }

  u32 a_[2 * kTilesM];
  u32 b_[kTilesN];
};

// Takes out what lies behind the rows' end, `valid` elements behind the lane's first.
__device__ __forceinline__ void cut(Fragments (&f)[kGroup], int valid) {
  constexpr int kPerWord = 4 / kElementBytes;
#pragma unroll
  for (int word = 0; word < 2 * kGroup; ++word) {
    const int left = valid - word * kWordStride / kElementBytes;
    const u32 keep = left >= kPerWord ? ~0u : left == 1 ? 0xffff : 0;
    Fragments& step = f[word / 2];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      step.a[i][word % 2 * 2] &= keep;
      step.a[i][word % 2 * 2 + 1] &= keep;
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) step.b[j][word % 2] &= keep;
  }
}
