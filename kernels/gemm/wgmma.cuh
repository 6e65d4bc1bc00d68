// C = alpha * A * B + beta * C on Hopper's warpgroup matrix instructions. One warpgroup feeds a
// ring of stages through the tensor copy engine; the others multiply and store. The grid is
// persistent.
//
//   full[s]    the bytes of stage s have arrived          (producer -> consumers)
//   empty[s]   every consumer that reads stage s is done  (consumers -> producers of the cluster)
//
// Constants of the host twin beside those of common.cuh and one per parameter:
//   WGMMA_SHAPE, WGMMA_REGISTERS, WGMMA_OPERANDS   the text of the instruction for this block_n
//   PRODUCER_REGISTERS, CONSUMER_REGISTERS         per thread; 0: as launched
//   CHUNK_N                                        columns of C that one store moves
//   SMEM_...                                       the layout of shared memory

constexpr int kCluster = CLUSTER_M * CLUSTER_N;
constexpr int kSlabElements = 128 / kElementBytes;  // one row of a swizzled slab: 128 bytes
constexpr int kStepK = 32 / kElementBytes;          // depth of one instruction
constexpr int kStepsK = BLOCK_K / kStepK;
constexpr int kConsumerRows = PINGPONG ? BLOCK_M : BLOCK_M / CONSUMERS;
constexpr int kTilesM = kConsumerRows / 64;  // instructions along m
constexpr int kAccumulators = BLOCK_N / 2;   // per thread and instruction
constexpr int kStageConsumers = PINGPONG ? 1 : CONSUMERS;

// An operand's tile in shared memory: slabs 128 bytes wide in the contiguous direction, each
// `kRows` rows deep in the other one, swizzled in groups of 8 rows.
template <bool kKMajor, int kExtent>
struct OperandTile {
  static constexpr int kRows = kKMajor ? kExtent : BLOCK_K;
  static constexpr int kWidth = kKMajor ? BLOCK_K : kExtent;
  static constexpr int kSlabs = (kWidth + kSlabElements - 1) / kSlabElements;
  static constexpr int kSlabBytes = kRows * 128;
  u8 bytes[kSlabs * kSlabBytes];

  // What the matrix instruction reads: swizzle of 128 bytes, 1024 bytes between groups of 8 rows,
  // and for an operand that is contiguous along m or n the bytes from slab to slab. An address has
  // 18 bits there: in a cluster, the higher ones name the block.
  static __device__ __forceinline__ u64 descriptor(u32 address) {
    return u64(1) << 62 | u64(1024 >> 4) << 32 | u64(kKMajor ? 0 : kSlabBytes >> 4) << 16 |
           (address & 0x3FFFF) >> 4;
  }
  // Byte offset of instruction `step` along k, `first` rows or columns into the tile.
  static __device__ __forceinline__ u32 offset(int first, int step) {
    if constexpr (kKMajor) {
      constexpr int kPerSlab = kSlabElements / kStepK;
      return u32((step / kPerSlab) * kSlabBytes + first * 128 + (step % kPerSlab) * 32);
    } else {
      return u32((first / kSlabElements) * kSlabBytes + step * kStepK * 128);
    }
  }
};

typedef OperandTile<A_K_MAJOR, BLOCK_M> TileA;
typedef OperandTile<B_K_MAJOR, BLOCK_N> TileB;

struct Stage {
  TileA a;
  TileB b;
};

constexpr int kChunkBytes = CHUNK_N * kOutBytes;  // of a row in the epilogue's buffers

struct StoreBuffer {
  u8 rows[16][kChunkBytes];
};

struct SharedMemory {
  Stage stages[STAGES];
  StoreBuffer stores[CONSUMERS * 4][2];  // two per warp: one is filled while the other is stored
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 turn[2];  // pingpong: the other consumer has all of its tile's stages
};

static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(sizeof(TileB) == SMEM_B_BYTES, "B tile");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(StoreBuffer) == SMEM_STORE_BYTES, "store buffer");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");

// d += a * b on one 64 x BLOCK_N x kStepK tile; d = a * b where `accumulate` is 0. The operands
// stand first, as if written, so that their numbers do not depend on how many accumulators follow.
__device__ __forceinline__ void multiply(float (&d)[kAccumulators], u64 a, u64 b, int accumulate) {
#define AT_WGMMA(types, transposes)                                          \
  asm volatile(                                                              \
      "{\n"                                                                  \
      ".reg .pred p;\n"                                                      \
      "setp.ne.b32 p, %2, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned." WGMMA_SHAPE types " {" WGMMA_REGISTERS \
      "}, %0, %1, p, 1, 1" transposes                                        \
      ";\n"                                                                  \
      "}\n"                                                                  \
      : "+l"(a), "+l"(b), "+r"(accumulate), WGMMA_OPERANDS)
#if DTYPE == DTYPE_TF32
  AT_WGMMA(".f32.tf32.tf32", "");
#else
#if DTYPE == DTYPE_BF16
#define AT_TYPES ".f32.bf16.bf16"
#else
#define AT_TYPES ".f32.f16.f16"
#endif
#if A_K_MAJOR && B_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 0, 0");
#elif A_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 0, 1");
#elif B_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 1, 0");
#else
  AT_WGMMA(AT_TYPES, ", 1, 1");
#endif
#undef AT_TYPES
#endif
#undef AT_WGMMA
}

// Where in the ring a role stands, and the parity that its barriers have there.
struct RingPosition {
  u32 stage;
  u32 parity;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(u32 count) {
    stage += count;
    parity ^= stage / STAGES & 1;
    stage %= STAGES;
  }
};

// This block's place in its cluster.
struct ClusterPlace {
  int m;
  int n;

  __device__ __forceinline__ ClusterPlace() {
    const int rank = kCluster == 1 ? 0 : int(cluster_rank());
    m = rank % CLUSTER_M;
    n = rank / CLUSTER_M;
  }
};

// Loads this block's share of an operand's tile: `kSharers` blocks of the cluster need the same
// tile, each of them loads a part of its rows and sends it to all.
template <typename T, bool kKMajor, int kSharers>
__device__ __forceinline__ void load_operand(u32 tile, const TensorMapBytes& map, int first, int k,
                                             int share, u16 blocks, u32 barrier) {
  constexpr int kShareRows = T::kRows / kSharers;
  static_assert(kShareRows % 8 == 0, "shares are whole swizzle groups");
#pragma unroll
  for (int slab = 0; slab < T::kSlabs; ++slab) {
    const u32 target = tile + slab * T::kSlabBytes + share * kShareRows * 128;
    const int row = share * kShareRows;
    const int inner = (kKMajor ? k : first) + slab * kSlabElements;
    const int outer = (kKMajor ? first : k) + row;
    if constexpr (kSharers == 1) {
      tma_load(target, map, inner, outer, barrier);
    } else {
      tma_load_multicast(target, map, inner, outer, barrier, blocks);
    }
  }
}

// Starts the loads of k tile `step` of a tile of C into a stage whose readers are done.
__device__ __forceinline__ void load_stage(const WgmmaArgs& args, SharedMemory& shared,
                                           ClusterPlace place, u32 at, int first_m, int first_n,
                                           int step) {
  // A's tile is needed by the blocks of this row of the cluster, B's by those of this column.
  u16 row_blocks = 0;
  u16 column_blocks = 0;
#pragma unroll
  for (int n = 0; n < CLUSTER_N; ++n) row_blocks |= u16(1 << (n * CLUSTER_M + place.m));
#pragma unroll
  for (int m = 0; m < CLUSTER_M; ++m) column_blocks |= u16(1 << (place.n * CLUSTER_M + m));

  const u32 full = shared_address(&shared.full[at]);
  barrier_expect(full, sizeof(Stage));
  Stage& stage = shared.stages[at];
  load_operand<TileA, A_K_MAJOR, CLUSTER_N>(shared_address(&stage.a), args.map_a, first_m,
                                            step * BLOCK_K, place.n, row_blocks, full);
  load_operand<TileB, B_K_MAJOR, CLUSTER_M>(shared_address(&stage.b), args.map_b, first_n,
                                            step * BLOCK_K, place.m, column_blocks, full);
}

// The first loads of the block, in one straight line behind the kernel's entry: at cold caches the
// instructions come from DRAM as well, and every jump waits for them. More of them would be in the
// way of the first.
constexpr int kOpening = 2;
static_assert(STAGES >= kOpening, "the ring holds what opens it");

__device__ __forceinline__ void open_ring(const WgmmaArgs& args, SharedMemory& shared,
                                          ClusterPlace place, int k_tiles) {
  const TileIndex tile = tile_of(blockIdx.x / kCluster, args.gemm);
  const int first_m = (tile.m * CLUSTER_M + place.m) * BLOCK_M;
  const int first_n = (tile.n * CLUSTER_N + place.n) * BLOCK_N;
#pragma unroll
  for (int i = 0; i < kOpening; ++i) {
    if (i < k_tiles) load_stage(args, shared, place, u32(i), first_m, first_n, i);
  }
}

// All loads but those that opened the ring.
__device__ __forceinline__ void produce(const WgmmaArgs& args, SharedMemory& shared,
                                        ClusterPlace place, u32 tiles, int k_tiles) {
  int step = min(k_tiles, kOpening);
  RingPosition at{0, 1};  // the first pass waits for nobody
  at.advance(u32(step));
  for (u32 id = blockIdx.x / kCluster; id < tiles; id += gridDim.x / kCluster) {
    const TileIndex tile = tile_of(id, args.gemm);
    const int first_m = (tile.m * CLUSTER_M + place.m) * BLOCK_M;
    const int first_n = (tile.n * CLUSTER_N + place.n) * BLOCK_N;
    for (; step < k_tiles; ++step) {
      barrier_wait(shared_address(&shared.empty[at.stage]), at.parity);
      load_stage(args, shared, place, at.stage, first_m, first_n, step);
      at.advance();
    }
    step = 0;
  }
}

// Tells every producer that writes to this block's stages that a stage has been read.
struct StageRelease {
  int thread;  // of the warpgroup
  u32 rank;    // that this thread tells

  __device__ __forceinline__ StageRelease(ClusterPlace place) {
    thread = int(threadIdx.x % 128);
    rank = thread < CLUSTER_M
               ? u32(place.n * CLUSTER_M + thread)
               : u32((thread - CLUSTER_M + (thread - CLUSTER_M >= place.n)) * CLUSTER_M + place.m);
  }
  __device__ __forceinline__ void operator()(u64& empty) const {
    if constexpr (kCluster == 1) {
      if (thread == 0) barrier_arrive(shared_address(&empty));
    } else {
      if (thread < CLUSTER_M + CLUSTER_N - 1) barrier_arrive_at(shared_address(&empty), rank);
    }
  }
};

__device__ __forceinline__ void accumulate_tile(float (&acc)[kTilesM][kAccumulators],
                                                SharedMemory& shared, RingPosition& at,
                                                int first_row, int k_tiles,
                                                const StageRelease& release, u64& next_turn) {
  u32 previous = 0;
  for (int i = 0; i < k_tiles; ++i) {
    barrier_wait(shared_address(&shared.full[at.stage]), at.parity);
    const u32 stage = shared_address(&shared.stages[at.stage]);
    const u64 a = TileA::descriptor(stage + TileA::offset(first_row, 0));
    const u64 b = TileB::descriptor(stage + SMEM_A_BYTES);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kStepsK; ++step) {
#pragma unroll
      for (int t = 0; t < kTilesM; ++t) {
        multiply(acc[t], a + (TileA::offset(t * 64, step) >> 4), b + (TileB::offset(0, step) >> 4),
                 i + step);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();  // the k tile before this one is done
    if (i > 0) release(shared.empty[previous]);
    previous = at.stage;
    at.advance();
  }
  if (PINGPONG && threadIdx.x % 128 == 0) barrier_arrive(shared_address(&next_turn));
  wgmma_wait<0>();
  release(shared.empty[previous]);
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
#pragma unroll
    for (int r = 0; r < kAccumulators; ++r) asm volatile("" : "+f"(acc[t][r])::"memory");
  }
}

// Byte offset of a 16-byte piece in a store buffer. Rows of 128, 64 and 32 bytes are swizzled as
// the copy engine expects it; most others spread over the banks by themselves.
__device__ __forceinline__ u32 store_offset(int row, int piece) {
  constexpr int kPieces = kChunkBytes / 16;
  constexpr bool kSwizzled = kPieces == 8 || kPieces == 4 || kPieces == 2;
  const int swizzle = kSwizzled ? (row / (8 / kPieces)) & (kPieces - 1) : 0;
  return u32(row * kChunkBytes + ((piece ^ swizzle) << 4));
}

// Whether a row or column exists. One tile past 2^31 - 1 rows they turn negative.
__device__ __forceinline__ bool exists(int position, int extent) {
  return u32(position) < u32(extent);
}

// alpha * acc + beta * C, two neighbours of a row.
__device__ __forceinline__ float2 scaled(const GemmArgs& args, float v0, float v1, int row,
                                         int col) {
  float2 v{args.alpha * v0, args.alpha * v1};
  if (HAS_BETA && exists(row, args.m)) {
    const i64 index = row * args.ldc + col;
    if (exists(col, args.n)) v.x += args.beta * load_output(args.c, index);
    if (exists(col + 1, args.n)) v.y += args.beta * load_output(args.c, index + 1);
  }
  return v;
}

// Two neighbours in their storage type, the first in the lower half.
__device__ __forceinline__ u32 packed(float2 v) {
  u32 bits;
  if constexpr (OUT_DTYPE == DTYPE_BF16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(bits) : "f"(v.y), "f"(v.x));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(bits) : "f"(v.y), "f"(v.x));
  }
  return bits;
}

// Fills a warp's buffer with 16 rows and CHUNK_N columns of C from the accumulators of columns
// `chunk` x CHUNK_N on. A thread holds pairs: rows lane / 4 and 8 further, columns 2 x (lane % 4)
// of every 8.
template <int kChunk>
__device__ __forceinline__ void fill_store_buffer(StoreBuffer& buffer,
                                                  const float (&acc)[kAccumulators],
                                                  const GemmArgs& args, int row, int col) {
  const int lane = int(threadIdx.x % 32);
  const u32 base = shared_address(&buffer);
  u32 packs[2][2];
#pragma unroll
  for (int g = 0; g < CHUNK_N / 8; ++g) {
    const int r = (kChunk * (CHUNK_N / 8) + g) * 4;
    const int at_row = row + lane / 4;
    const int at_col = col + g * 8 + (lane % 4) * 2;
    const float2 upper = scaled(args, acc[r], acc[r + 1], at_row, at_col);
    const float2 lower = scaled(args, acc[r + 2], acc[r + 3], at_row + 8, at_col);
    if constexpr (kOutBytes == 2) {
      packs[g % 2][0] = packed(upper);
      packs[g % 2][1] = packed(lower);
      // Matrices in the order: rows 0..7 and rows 8..15 of 8 columns, the same of the next 8.
      if (g % 2 == 1) {
        stmatrix_x4(base + store_offset(lane % 16, g - 1 + lane / 16), packs[0][0], packs[0][1],
                    packs[1][0], packs[1][1]);
      } else if (g == CHUNK_N / 8 - 1) {
        stmatrix_x2(base + store_offset(lane % 16, g), packs[0][0], packs[0][1]);
      }
    } else {
      const int piece = g * 2 + lane % 4 / 2;
      const u32 within = (lane % 2) * 8;
      const u32 address = base + store_offset(lane / 4, piece) + within;
      const u32 below = base + store_offset(lane / 4 + 8, piece) + within;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(address), "f"(upper.x), "f"(upper.y)
                   : "memory");
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(below), "f"(lower.x), "f"(lower.y)
                   : "memory");
    }
  }
}

// A warp's buffer to C by element: rows that the copy engine cannot write.
__device__ __forceinline__ void store_elements(const StoreBuffer& buffer, const GemmArgs& args,
                                               int row, int col) {
  const int lane = int(threadIdx.x % 32);
  const u8* bytes = &buffer.rows[0][0];
  for (int i = lane; i < 16 * CHUNK_N; i += 32) {
    const int r = i / CHUNK_N;
    const int c = i % CHUNK_N;
    if (!exists(row + r, args.m) || !exists(col + c, args.n)) continue;
    const u32 at = store_offset(r, c * kOutBytes / 16) + c * kOutBytes % 16;
    const i64 index = (row + r) * args.ldc + col + c;
    if constexpr (kOutBytes == 2) {
      static_cast<u16*>(args.c)[index] = *reinterpret_cast<const u16*>(bytes + at);
    } else {
      static_cast<u32*>(args.c)[index] = *reinterpret_cast<const u32*>(bytes + at);
    }
  }
}

template <int kChunk>
__device__ __forceinline__ void store_chunks(StoreBuffer (&buffers)[2], u32& half,
                                             const float (&acc)[kAccumulators],
                                             const WgmmaArgs& args, int row, int col) {
  if constexpr (kChunk < BLOCK_N / CHUNK_N) {
    const bool first_lane = threadIdx.x % 32 == 0;
    StoreBuffer& buffer = buffers[half];
    half ^= 1;
    if (first_lane) tma_store_wait<1>();  // the group before the last has read this buffer
    __syncwarp();
    fill_store_buffer<kChunk>(buffer, acc, args.gemm, row, col);
    // The copy engine cannot end a row within 16 bytes.
    const bool whole =
        u32(col) + CHUNK_N <= u32(args.gemm.n) || args.gemm.n % (16 / kOutBytes) == 0;
    if (ALIGN_C == 16 && whole) {
      fence_async_proxy();
      __syncwarp();
      if (first_lane) tma_store(args.map_c, shared_address(&buffer), col, row);
    } else {
      __syncwarp();
      store_elements(buffer, args.gemm, row, col);
    }
    if (first_lane) tma_store_commit();
    store_chunks<kChunk + 1>(buffers, half, acc, args, row, col + CHUNK_N);
  }
}

__device__ __forceinline__ void consume(const WgmmaArgs& args, SharedMemory& shared,
                                        ClusterPlace place, u32 tiles, int k_tiles, int consumer) {
  const int warp = int(threadIdx.x / 32 % 4);
  const int first_row = PINGPONG ? 0 : consumer * kConsumerRows;
  const StageRelease release(place);
  StoreBuffer(&buffers)[2] = shared.stores[consumer * 4 + warp];
  u32 half = 0;  // of the warp's store buffers
  RingPosition at{0, 0};
  u32 id = blockIdx.x / kCluster;
  const u32 stride = gridDim.x / kCluster;
  if (PINGPONG && consumer == 1) {  // the two take turns, tile by tile
    id += stride;
    at.advance(k_tiles);
  }
  // A wait tells a stage's pass from the one before only: the other consumer's passes must be over.
  u32 turn_parity = consumer == 0 ? 1 : 0;
  for (; id < tiles; id += PINGPONG ? 2 * stride : stride) {
    const TileIndex tile = tile_of(id, args.gemm);
    float acc[kTilesM][kAccumulators];
    if (PINGPONG) {
      barrier_wait(shared_address(&shared.turn[consumer]), turn_parity);
      turn_parity ^= 1;
    }
    accumulate_tile(acc, shared, at, first_row, k_tiles, release, shared.turn[1 - consumer]);
    if (PINGPONG) at.advance(k_tiles);

    const int row = (tile.m * CLUSTER_M + place.m) * BLOCK_M + first_row + warp * 16;
    const int col = (tile.n * CLUSTER_N + place.n) * BLOCK_N;
#pragma unroll
    for (int t = 0; t < kTilesM; ++t) {
      store_chunks<0>(buffers, half, acc[t], args, row + t * 64, col);
    }
  }
  if (threadIdx.x % 32 == 0) tma_store_wait<0>();
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
#if CLUSTER_M * CLUSTER_N > 1
    __cluster_dims__(CLUSTER_M* CLUSTER_N, 1, 1)
#endif
        gemm_wgmma(const __grid_constant__ WgmmaArgs args) {
  extern __shared__ __align__(1024) u8 smem[];
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(smem);
  const int warpgroup = int(__shfl_sync(0xffffffff, threadIdx.x / 128, 0));
  const ClusterPlace place;

  if (threadIdx.x == 32) {
    prefetch_map(args.map_a);
    prefetch_map(args.map_b);
    if (ALIGN_C == 16) prefetch_map(args.map_c);
  }
  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(shared_address(&shared.full[s]), 1);
      barrier_init(shared_address(&shared.empty[s]), kStageConsumers * (CLUSTER_M + CLUSTER_N - 1));
    }
    barrier_init(shared_address(&shared.turn[0]), 1);
    barrier_init(shared_address(&shared.turn[1]), 1);
    barrier_init_fence();
  }
  if constexpr (kCluster > 1) {  // copies arrive at the barriers of other blocks
    cluster_arrive();
    cluster_wait();
  }

  const u32 tiles = u32(args.gemm.tiles_m) * u32(args.gemm.tiles_n);
  const int k_tiles = args.gemm.k / BLOCK_K + (args.gemm.k % BLOCK_K != 0);
  if (threadIdx.x == 0) open_ring(args, shared, place, k_tiles);
  if (warpgroup == 0) {
    if constexpr (PRODUCER_REGISTERS > 0) give_registers<PRODUCER_REGISTERS>();
    if (kCluster == 1 && threadIdx.x < 32) {  // only the consumers wait for the barriers
      __syncwarp();
      block_arrive<32 + CONSUMERS * 128>();
    }
    if (threadIdx.x == 0) produce(args, shared, place, tiles, k_tiles);
  } else {
    if constexpr (CONSUMER_REGISTERS > 0) take_registers<CONSUMER_REGISTERS>();
    if constexpr (kCluster == 1) block_wait<32 + CONSUMERS * 128>();
    consume(args, shared, place, tiles, k_tiles, warpgroup - 1);
  }
  if constexpr (kCluster > 1) {  // no block leaves while another may still reach its barriers
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
}
