// GEMM on the warp-wide tensor-core instructions (mma.sync), sm_80 and up; fp16 on sm_75.
//
// A block computes block_m x block_n of C. Tiles of A and B travel through a ring of `stages` in
// shared memory, filled by cp.async. Each warp owns warp_m x warp_n, reads its fragments with
// ldmatrix one k step ahead of the multiplication, and keeps fp32 accumulators in registers. The
// result leaves through a small per-warp buffer so that global stores are whole 16-byte pieces.
//
// Further constants: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N, THREADS, MIN_BLOCKS, and
// the shared-memory layout SMEM_A_BYTES, SMEM_B_OFFSET, SMEM_B_BYTES, SMEM_STAGE_BYTES,
// SMEM_WARP_PITCH, SMEM_WARP_BYTES, SMEM_BYTES.

constexpr int kWarpM = BLOCK_M / WARPS_M;
constexpr int kWarpN = BLOCK_N / WARPS_N;
constexpr int kStepBytes = 32;                      // k of one instruction, in bytes
constexpr int kStepK = kStepBytes / kElementBytes;  // 16 or 8 elements
constexpr int kSteps = BLOCK_K / kStepK;            // per k tile
constexpr int kTilesM = kWarpM / 16;                // 16 x 8 instruction tiles of a warp
constexpr int kTilesN = kWarpN / 8;
constexpr int kChunkElements = 16 / kElementBytes;

static_assert(THREADS == 32 * WARPS_M * WARPS_N, "threads");
static_assert(kSteps >= 2 && kSteps % 2 == 0, "two fragment buffers alternate over an even number");

// One operand's tile in shared memory: rows of 16-byte chunks, the chunk index XORed with the row
// so that the eight rows of one ldmatrix lie in eight different bank groups.
template <bool kKMajor, int kExtent>
struct Tile {
  static constexpr int kRows = kKMajor ? kExtent : BLOCK_K;
  static constexpr int kPitch = (kKMajor ? BLOCK_K : kExtent) * kElementBytes;
  static constexpr int kChunks = kPitch / 16;
  static constexpr int kBytes = kRows * kPitch;
  static_assert(kChunks % 8 == 0 || 8 % kChunks == 0, "swizzle");

  u8 bytes[kBytes];

  static __device__ __forceinline__ int swizzle(int row) {
    if constexpr (!kKMajor && kElementBytes == 4) {
      return ((row & 3) << 1) & (kChunks - 1);  // read word by word: 4 rows x 2 chunks at a time
    } else if constexpr (kChunks >= 8) {
      return row & 7;
    } else {
      return (row / (8 / kChunks)) & (kChunks - 1);
    }
  }
  static __device__ __forceinline__ u32 offset(int row, int chunk) {
    return u32(row * kPitch + ((chunk ^ swizzle(row)) << 4));
  }
};

typedef Tile<A_K_MAJOR, BLOCK_M> TileA;
typedef Tile<B_K_MAJOR, BLOCK_N> TileB;

struct Stage {
  TileA a;
  TileB b;
};

struct WarpBuffer {
  u8 rows[16][SMEM_WARP_PITCH];
};

// The host twin's layout and the types above must be the same thing.
static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(sizeof(TileB) == SMEM_B_BYTES, "B tile");
static_assert(sizeof(TileA) == SMEM_B_OFFSET, "B offset");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(WarpBuffer) == SMEM_WARP_BYTES, "epilogue buffer of a warp");
static_assert(SMEM_WARP_PITCH == kWarpN * kOutBytes + 16, "epilogue row");
static_assert(SMEM_BYTES == (STAGES * sizeof(Stage) > WARPS_M * WARPS_N * sizeof(WarpBuffer)
                                 ? STAGES * sizeof(Stage)
                                 : WARPS_M * WARPS_N * sizeof(WarpBuffer)),
              "shared memory");

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

__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ u32 load_shared_4(u32 address) {
  u32 value;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// fp32 bits rounded to tf32; the instruction itself would truncate.
__device__ __forceinline__ u32 round_tf32(u32 bits) {
  if constexpr (DTYPE == DTYPE_TF32) {
#if __CUDA_ARCH__ >= 800
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
#endif
  }
  return bits;
}

// d += a * b on one 16 x 8 x (16 or 8) tile.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
#define AT_MMA(shape_and_types)                                                     \
  asm volatile("mma.sync.aligned." shape_and_types                                  \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (DTYPE == DTYPE_BF16) {
    AT_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else if constexpr (DTYPE == DTYPE_FP16) {
    AT_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else {
    AT_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#undef AT_MMA
#else
  // sm_75 multiplies 8 deep: the same fragments in two halves.
#define AT_MMA(a0, a1, b)                                      \
  asm volatile(                                                \
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"       \
      " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])         \
      : "r"(a0), "r"(a1), "r"(b))
  AT_MMA(a[0], a[1], b0);
  AT_MMA(a[2], a[3], b1);
#undef AT_MMA
#endif
}

// The fragments of one k step: 16-row tiles of A, pairs of 8-column tiles of B.
struct Fragments {
  u32 a[kTilesM][4];
  u32 b[kTilesN / 2][4];
};

// Where this lane reads its fragments; the rest is constants that the compiler folds.
struct FragmentReader {
  int lane;
  int first_m;
  int first_n;

  __device__ __forceinline__ void load(Fragments& f, u32 stage, int step) const {
    const u32 tile_a = stage;
    const u32 tile_b = stage + SMEM_B_OFFSET;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      const int m = first_m + i * 16;
      if constexpr (A_K_MAJOR) {
        ldmatrix_x4(f.a[i], tile_a + TileA::offset(m + (lane & 15), step * 2 + (lane >> 4)));
      } else if constexpr (kElementBytes == 2) {
        const int k = step * kStepK + (lane & 7) + ((lane >> 4) << 3);
        ldmatrix_x4_trans(f.a[i], tile_a + TileA::offset(k, m / 8 + ((lane >> 3) & 1)));
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          f.a[i][r] = word<TileA>(tile_a, step * 8 + (r / 2) * 4, m + (r % 2) * 8);
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) f.a[i][r] = round_tf32(f.a[i][r]);
    }
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      const int n = first_n + j * 16;
      if constexpr (B_K_MAJOR) {
        const int row = n + (lane & 7) + ((lane >> 4) << 3);
        ldmatrix_x4(f.b[j], tile_b + TileB::offset(row, step * 2 + ((lane >> 3) & 1)));
      } else if constexpr (kElementBytes == 2) {
        const int k = step * kStepK + (lane & 15);
        ldmatrix_x4_trans(f.b[j], tile_b + TileB::offset(k, n / 8 + (lane >> 4)));
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          f.b[j][r] = word<TileB>(tile_b, step * 8 + (r % 2) * 4, n + (r / 2) * 8);
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) f.b[j][r] = round_tf32(f.b[j][r]);
    }
  }

 private:
  // One tf32 element of an MN-major tile: ldmatrix transposes 16-bit elements only.
  template <typename T>
  __device__ __forceinline__ u32 word(u32 tile, int k, int position) const {
    const int p = position + lane / 4;
    return load_shared_4(tile + T::offset(k + lane % 4, p / 4) + (p % 4) * 4);
  }
};

__device__ __forceinline__ void multiply_all(float (&acc)[kTilesM][kTilesN][4],
                                             const Fragments& f) {
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int jj = 0; jj < kTilesN; ++jj) {
      const int j = i % 2 ? kTilesN - 1 - jj : jj;  // back and forth: a fragment is used twice
      multiply(acc[i][j], f.a[i], f.b[j / 2][(j % 2) * 2], f.b[j / 2][(j % 2) * 2 + 1]);
    }
  }
}

// alpha * acc + beta * C for one 16-row strip of the warp, into the warp's buffer.
__device__ __forceinline__ void stage_strip(WarpBuffer& buffer, const float (&acc)[kTilesN][4],
                                            const GemmArgs& args, i64 row0, int rows_left, i64 col0,
                                            int cols_left) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + half * 8;
      const int col = j * 8 + (lane % 4) * 2;
      float v[2] = {args.alpha * acc[j][half * 2], args.alpha * acc[j][half * 2 + 1]};
      if (HAS_BETA && row < rows_left) {
        const i64 index = (row0 + row) * args.ldc + col0 + col;
        if (col < cols_left) v[0] += args.beta * load_output(args.c, index);
        if (col + 1 < cols_left) v[1] += args.beta * load_output(args.c, index + 1);
      }
      u8* target = buffer.rows[row] + col * kOutBytes;
      if constexpr (kOutBytes == 2) {
        *reinterpret_cast<u32*>(target) = u32(to_half_bits(v[0])) | u32(to_half_bits(v[1])) << 16;
      } else {
        *reinterpret_cast<float2*>(target) = float2{v[0], v[1]};
      }
    }
  }
}

template <typename Vector>
__device__ __forceinline__ void store_pieces(char* target, const u8* source, int bytes) {
#pragma unroll
  for (int i = 0; i < 16; i += int(sizeof(Vector))) {
    if (i + int(sizeof(Vector)) <= bytes) {
      *reinterpret_cast<Vector*>(target + i) = *reinterpret_cast<const Vector*>(source + i);
    }
  }
}

// The warp's buffer to C, in pieces as wide as C's rows are aligned; ragged ends by element.
__device__ __forceinline__ void store_strip(const WarpBuffer& buffer, const GemmArgs& args,
                                            i64 row0, int rows_left, i64 col0, int cols_left) {
  constexpr int kPieces = kWarpN * kOutBytes / 16;  // per row
  constexpr int kPieceElements = 16 / kOutBytes;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int p = 0; p < 16 * kPieces; p += 32) {
    const int piece = p + lane;
    const int row = piece / kPieces;
    const int col = (piece % kPieces) * kPieceElements;
    if ((16 * kPieces % 32 == 0 || row < 16) && row < rows_left && col < cols_left) {
      const u8* source = buffer.rows[row] + col * kOutBytes;
      char* target =
          static_cast<char*>(args.c) + ((row0 + row) * args.ldc + col0 + col) * kOutBytes;
      const int bytes = min((cols_left - col) * kOutBytes, 16);
      if (ALIGN_C == 16 && bytes == 16) {
        store_pieces<uint4>(target, source, bytes);
      } else if (ALIGN_C == 8 && bytes == 16) {
        store_pieces<uint2>(target, source, bytes);
      } else if (kOutBytes == 4) {
        store_pieces<u32>(target, source, bytes);
      } else {
        store_pieces<u16>(target, source, bytes);
      }
    }
  }
}

__device__ __forceinline__ void compute_tile(const GemmArgs& args, TileIndex tile, u8* smem) {
  const int warp = threadIdx.x / 32;
  const i64 tile_row = i64(tile.m) * BLOCK_M;
  const i64 tile_col = i64(tile.n) * BLOCK_N;
  const int k_tiles = args.k / BLOCK_K + (args.k % BLOCK_K != 0);
  const u32 ring = shared_address(smem);

  Loader<A_K_MAJOR, BLOCK_M, ALIGN_A> load_a(args.a, args.lda, int(tile_row), args.m);
  Loader<B_K_MAJOR, BLOCK_N, ALIGN_B> load_b(args.b, args.ldb, int(tile_col), args.n);
  int k_left = args.k;  // of the next tile to load
  int write_stage = 0;

  // Starts loading the next k tile, if there is one; the group is committed either way so that
  // counting groups counts tiles.
  auto load_next = [&]() {
    if (k_left > 0) {
      const u32 stage = ring + write_stage * SMEM_STAGE_BYTES;
      load_a.load(stage, k_left);
      load_b.load(stage + SMEM_B_OFFSET, k_left);
      k_left -= BLOCK_K;
      write_stage = write_stage + 1 == STAGES ? 0 : write_stage + 1;
    }
    cp_async_commit();
  };

  float acc[kTilesM][kTilesN][4];
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) acc[i][j][r] = 0.0f;
    }
  }

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) load_next();
  cp_async_wait<STAGES - 2>();
  __syncthreads();

  const int warp_row = (warp / WARPS_N) * kWarpM;
  const int warp_col = (warp % WARPS_N) * kWarpN;
  const FragmentReader reader{int(threadIdx.x % 32), warp_row, warp_col};
  Fragments fragments[2];
  u32 read_stage = ring;
  reader.load(fragments[0], read_stage, 0);

  for (int tile_k = 0; tile_k < k_tiles; ++tile_k) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step == kSteps - 1) {
        // All reads of this stage are done and the next tile has arrived, for every warp.
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        read_stage += SMEM_STAGE_BYTES;
        if (read_stage == ring + STAGES * SMEM_STAGE_BYTES) read_stage = ring;
      }
      reader.load(fragments[(step + 1) % 2], read_stage, (step + 1) % kSteps);
      if (step == 0) load_next();
      multiply_all(acc, fragments[step % 2]);
    }
  }
  cp_async_wait<0>();
  __syncthreads();  // the ring becomes the epilogue's buffer

  WarpBuffer& buffer = reinterpret_cast<WarpBuffer*>(smem)[warp];
  const i64 row0 = tile_row + warp_row;
  const i64 col0 = tile_col + warp_col;
  const int cols_left = int(min(args.n - col0, i64(kWarpN)));
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
    const i64 strip = row0 + i * 16;
    const int rows_left = int(min(args.m - strip, i64(16)));
    stage_strip(buffer, acc[i], args, strip, rows_left, col0, cols_left);
    __syncwarp();
    store_strip(buffer, args, strip, rows_left, col0, cols_left);
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_mma(const __grid_constant__ GemmArgs args) {
  extern __shared__ __align__(128) u8 smem[];
  const u32 tiles = u32(args.tiles_m) * u32(args.tiles_n);
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    compute_tile(args, tile_of(id, args), smem);
    __syncthreads();  // before the next tile's loads overwrite the epilogue's buffer
  }
}
