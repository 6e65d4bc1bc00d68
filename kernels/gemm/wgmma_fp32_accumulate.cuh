// The consumer's main loop. Tensor cores truncate what they add up, so a chain of instructions ends
// with every k tile, and its sums are added, rounded to nearest, to those of the tiles before. With
// two chains, each for half of the columns, one multiplies while the other is added.

struct Accumulators {
  float chain[CHAINS][kChainRegisters];
  float sum[CHAINS][kChainRegisters];
};

// d += a * b, or d = a * b where not kAccumulate, on 64 rows and a chain's columns.
template <bool kAccumulate>
__device__ __forceinline__ void multiply(float (&d)[kChainRegisters], const u32 (&a)[4], u64 b) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, " WGMMA_ACCUMULATE
      ", 0;\n"
      "wgmma.mma_async.sync.aligned." WGMMA_SHAPE ".f32.bf16.bf16 {" WGMMA_REGISTERS
      "}, " WGMMA_SOURCES
      ", p, 1, 1, "
#if B_K_MAJOR
      "0"
#else
      "1"
#endif
      ";\n"
      "}\n"
      : WGMMA_OPERANDS
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(kAccumulate)));
}

// All six products of parts that count, over the k tile; the smallest first, so that they are not
// cut off against the largest.
template <int kChain>
__device__ __forceinline__ void multiply_chain(Accumulators& acc, const Fragments& a, u64 b) {
  constexpr int kPartOfA[] = {2, 0, 1, 1, 0, 0};
  constexpr int kPartOfB[] = {0, 2, 1, 0, 1, 0};
  wgmma_fence();
#pragma unroll
  for (int product = 0; product < 6; ++product) {
#pragma unroll
    for (int step = 0; step < kMultipliesK; ++step) {
      const u32 offset = kPartOfB[product] * u32(sizeof(CutTile)) + CutTile::offset(kChain, step);
      const u64 part = b + (offset >> 4);
      if (product == 0 && step == 0) {
        multiply<false>(acc.chain[kChain], a.parts[kPartOfA[product]][step], part);
      } else {
        multiply<true>(acc.chain[kChain], a.parts[kPartOfA[product]][step], part);
      }
    }
  }
  wgmma_commit();
}

// Waits for the chain, behind which kPending others are under way, and adds it up.
template <int kChain, int kPending>
__device__ __forceinline__ void promote_chain(Accumulators& acc) {
  wgmma_wait<kPending>();
#pragma unroll
  for (int r = 0; r < kChainRegisters; ++r) {
    asm volatile("" : "+f"(acc.chain[kChain][r])::"memory");
    acc.sum[kChain][r] += acc.chain[kChain][r];
  }
}

// A consumer's way through both rings.
struct Consumer {
  SharedMemory& shared;
  u32 fragment;  // byte offset of the thread's first element in A's tile
  Ring<STAGES> raw{0, 0};
  Ring<CUT_STAGES> cut{0, 0};

  __device__ __forceinline__ Consumer(SharedMemory& memory, int first_row)
      : shared(memory), fragment(fp32_fragment(A_K_MAJOR, first_row, int(threadIdx.x % 32))) {}

  __device__ __forceinline__ static void release(u64& empty) {
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&empty));
  }

  // The next k tile of A, into registers.
  __device__ __forceinline__ void take_a(Fragments& a, u32& lost) {
    barrier_wait(shared_address(&shared.full[raw.stage]), raw.parity);
    load_fragments(a, shared_address(&shared.stages[raw.stage].a) + fragment, lost);
    fence_async_proxy();  // the copy engine does not wait for loads under way
    __syncwarp();
    release(shared.empty[raw.stage]);
    raw.advance();
  }
};

// One k tile: multiplies `a` and B's parts, and meanwhile cuts the tile of A behind it into `next`.
__device__ __forceinline__ void multiply_k_tile(Consumer& at, Accumulators& acc, const Fragments& a,
                                                Fragments& next, bool has_next, u32 id, u32& lost) {
  SharedMemory& shared = at.shared;
  barrier_wait(shared_address(&shared.cut_full[at.cut.stage]), at.cut.parity);
  if (*static_cast<volatile u32*>(&shared.lost[at.cut.stage]) == id) lost = ~0u;
  const u64 b = CutTile::descriptor(shared_address(&shared.cuts[at.cut.stage]));
  multiply_chain<0>(acc, a, b);
  if constexpr (CHAINS == 2) {
    multiply_chain<1>(acc, a, b);
    // In front of the branch, across which ptxas does not put it off to the second wait.
    promote_chain<0, 1>(acc);
  }
  if (has_next) at.take_a(next, lost);
  promote_chain<CHAINS - 1, 0>(acc);
  Consumer::release(shared.cut_empty[at.cut.stage]);
  at.cut.advance();
}

// The sums of a tile of C. Returns whether an element of the thread's rows of A, or of B, was not
// the sum of its parts.
__device__ __forceinline__ bool accumulate_tile(Consumer& at, Accumulators& acc, int k_tiles,
                                                u32 id) {
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) {
#pragma unroll
    for (int r = 0; r < kChainRegisters; ++r) acc.sum[c][r] = 0.0f;
  }
  Fragments even;
  Fragments odd;
  u32 lost = 0;
  at.take_a(even, lost);
  for (int i = 0; i < k_tiles; i += 2) {
    multiply_k_tile(at, acc, even, odd, i + 1 < k_tiles, id, lost);
    if (i + 1 == k_tiles) break;
    multiply_k_tile(at, acc, odd, even, i + 2 < k_tiles, id, lost);
  }
  return any_lost(lost);
}
