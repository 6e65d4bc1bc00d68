// The epilogue: accumulators through shared memory of a warp's or a consumer's own to C, by the
// copy engine where C's rows permit it.

// The thread that starts a buffer's stores and waits for them.
__device__ __forceinline__ bool leads_store() { return threadIdx.x % (32 * kStoreWarps) == 0; }

// Between threads that share a store buffer.
__device__ __forceinline__ void meet_at_buffer() {
  if constexpr (TRANSPOSED) {
    warpgroup_wait<CONSUMERS>(int(threadIdx.x) / 128 - 1);
  } else {
    __syncwarp();
  }
}

// Rows of the product that other warps have in this one's buffer, before its own.
__device__ __forceinline__ int rows_before() {
  return TRANSPOSED ? int(threadIdx.x / 32 % 4) * 16 : 0;
}

// Columns of the product that a store moves, the last one of a row perhaps fewer than the others.
__device__ constexpr int chunk_columns(int chunk) { return chunk + 1 < kChunks ? CHUNK_N : REST_N; }

// Byte offset of a 16-byte piece in a store buffer of `kColumns` columns of the product. Rows of
// 128, 64 and 32 bytes are swizzled as the copy engine expects it; most others spread over the
// banks by themselves.
template <int kColumns>
__device__ __forceinline__ u32 store_offset(int row, int piece) {
  constexpr int kRowBytes = (TRANSPOSED ? kStoreColumns : kColumns) * kOutBytes;
  constexpr int kPieces = kRowBytes / 16;
  constexpr bool kSwizzled = kPieces == 8 || kPieces == 4 || kPieces == 2;
  const int swizzle = kSwizzled ? (row / (8 / kPieces)) & (kPieces - 1) : 0;
  return u32(row * kRowBytes + ((piece ^ swizzle) << 4));
}

// The product is C, or its transpose: then a row of it is a column of C.
__device__ __forceinline__ int rows_of_c(const GemmArgs& args) {
  return TRANSPOSED ? args.n : args.m;
}
__device__ __forceinline__ int columns_of_c(const GemmArgs& args) {
  return TRANSPOSED ? args.m : args.n;
}
// Where an element of the product is in memory, and how far it is to its next column.
__device__ __forceinline__ i64 index_of(const GemmArgs& args, int row, int col) {
  return TRANSPOSED ? col * args.ldc + row : row * args.ldc + col;
}
__device__ __forceinline__ i64 column_step(const GemmArgs& args) {
  return TRANSPOSED ? args.ldc : 1;
}

// Whether a row or column exists. One tile past 2^31 - 1 rows they turn negative.
__device__ __forceinline__ bool exists(int position, int extent) {
  return u32(position) < u32(extent);
}

// finished() acc + beta * C, two neighbours of a row, which accumulators `r` and the next hold.
template <int kCount>
__device__ __forceinline__ float2 scaled(const GemmArgs& args, const float (&acc)[kCount], int r,
                                         int row, int col) {
  float2 v{finished(args, acc[r], acc[r + kUpAccumulator]),
           finished(args, acc[r + 1], acc[r + 1 + kUpAccumulator])};
  if (HAS_BETA && exists(row, args.m)) {
    const i64 index = index_of(args, row, col);
    const i64 next = index + column_step(args);
    if (exists(col, args.n)) v.x += args.beta * load_output(args.c, index);
    if (exists(col + 1, args.n)) v.y += args.beta * load_output(args.c, next);
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

// Where a lane's row of two or four matrices of 8 by 8 goes. Matrices in the order: the product's
// rows 0..7 and 8..15 of 8 columns from `first` on, the same of the next 8.
template <int kColumns>
__device__ __forceinline__ u32 matrix_row(int first, int lane) {
  if constexpr (TRANSPOSED) {
    return store_offset<kColumns>(first + lane / 16 * 8 + lane % 8,
                                  rows_before() / 8 + lane / 8 % 2);
  }
  return store_offset<kColumns>(lane % 16, first / 8 + lane / 16);
}

// Fills a buffer with this warp's 16 rows and the columns of one store from the accumulators; `row`
// and `col` are the first. A thread holds pairs: rows lane / 4 and 8 further, columns
// 2 x (lane % 4) of every 8.
template <int kChunk>
__device__ __forceinline__ void fill_store_buffer(StoreBuffer& buffer,
                                                  const float (&acc)[kSliceAccumulators],
                                                  const GemmArgs& args, int row, int col) {
  constexpr int kColumns = chunk_columns(kChunk);
  const int lane = int(threadIdx.x % 32);
  const u32 base = shared_address(&buffer);
  u32 packs[2][2];
#pragma unroll
  for (int g = 0; g < kColumns / 8; ++g) {
    const int r = (kChunk * CHUNK_N / 8 + g) * 4;
    const int at_row = row + lane / 4;
    const int at_col = col + g * 8 + (lane % 4) * 2;
    const float2 upper = scaled(args, acc, r, at_row, at_col);
    const float2 lower = scaled(args, acc, r + 2, at_row + 8, at_col);
    if constexpr (kOutBytes == 2) {
      packs[g % 2][0] = packed(upper);
      packs[g % 2][1] = packed(lower);
      if (g % 2 == 1) {
        stmatrix_x4<TRANSPOSED>(base + matrix_row<kColumns>(g * 8 - 8, lane), packs[0][0],
                                packs[0][1], packs[1][0], packs[1][1]);
      } else if (g == kColumns / 8 - 1) {
        stmatrix_x2<TRANSPOSED>(base + matrix_row<kColumns>(g * 8, lane % 16), packs[0][0],
                                packs[0][1]);
      }
    } else {
      const int piece = g * 2 + lane % 4 / 2;
      const u32 within = (lane % 2) * 8;
      const u32 address = base + store_offset<kColumns>(lane / 4, piece) + within;
      const u32 below = base + store_offset<kColumns>(lane / 4 + 8, piece) + within;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(address), "f"(upper.x), "f"(upper.y)
                   : "memory");
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(below), "f"(lower.x), "f"(lower.y)
                   : "memory");
    }
  }
}

// A buffer of `kColumns` columns of the product to where the copy engine cannot write C's rows: in
// pieces as wide as these are aligned; `row` and `col` are of C.
template <int kColumns>
__device__ __forceinline__ void store_pieces(const StoreBuffer& buffer, const GemmArgs& args,
                                             int row, int col) {
  constexpr int kRows = TRANSPOSED ? kColumns : kStoreRows;
  constexpr int kPiecesOfRow = (TRANSPOSED ? kStoreColumns : kColumns) / kPieceElements;
  constexpr int kThreads = 32 * kStoreWarps;
  const int lane = int(threadIdx.x % kThreads);
  const u8* bytes = &buffer.rows[0][0];
#pragma unroll(ALIGN_C == 16 ? 1 : 4)  // more would spill where the copy engine does nearly all
  for (int i = lane; i < kRows * kPiecesOfRow; i += kThreads) {
    const int r = i / kPiecesOfRow;
    const int c = i % kPiecesOfRow * kPieceElements;
    if (!exists(row + r, rows_of_c(args)) || !exists(col + c, columns_of_c(args))) continue;
    const u32 at = store_offset<kColumns>(r, c * kOutBytes / 16) + c * kOutBytes % 16;
    store_piece(static_cast<char*>(args.c) + ((row + r) * args.ldc + col + c) * kOutBytes,
                bytes + at, columns_of_c(args) - (col + c));
  }
}

// The copy engine cannot end a row within 16 bytes.
template <int kColumns>
__device__ __forceinline__ bool ends_well(const GemmArgs& args, int col) {
  return u32(col) + (TRANSPOSED ? kStoreColumns : kColumns) <= u32(columns_of_c(args)) ||
         columns_of_c(args) % (16 / kOutBytes) == 0;
}

// A filled buffer to C: by the copy engine or in pieces; `row` and `col` are of the product.
template <int kChunk>
__device__ __forceinline__ void store_buffer(const StoreBuffer& buffer, const WgmmaArgs& args,
                                             int row, int col) {
  constexpr int kColumns = chunk_columns(kChunk);
  const int row_of_c = TRANSPOSED ? col : row;
  const int col_of_c = TRANSPOSED ? row : col;
  if (ALIGN_C != 16 || !ends_well<kColumns>(args.gemm, col_of_c)) {
    store_pieces<kColumns>(buffer, args.gemm, row_of_c, col_of_c);
  } else if (leads_store()) {
    tma_store(kColumns == CHUNK_N ? args.map_c : args.map_c_rest, shared_address(&buffer), col_of_c,
              row_of_c);
  }
}

// `paced`: a store begins when the one before it has left shared memory. Where another consumer
// multiplies meanwhile nobody waits for this one, and the fewer stores are under way, the less they
// hold up its loads.
template <int kChunk>
__device__ __forceinline__ void store_chunks(StoreBuffers& buffers, u32& filled,
                                             const float (&acc)[kSliceAccumulators],
                                             const WgmmaArgs& args, int row, int slice,
                                             bool paced) {
  if constexpr (kChunk < kChunks) {
    const int col = slice + kChunk * CHUNK_N;
    const int first = row - rows_before();
    const bool leads = leads_store();
    StoreBuffer& buffer = buffers[filled % kStoreBuffers];
    if (!TRANSPOSED || filled >= kStoreBuffers) {
      if (leads) {
        if (paced) {
          tma_store_wait<0>();
        } else {
          tma_store_wait<1>();  // the group before the last has read this buffer
        }
      }
      meet_at_buffer();
    }
    ++filled;
    fill_store_buffer<kChunk>(buffer, acc, args.gemm, row, col);
    if constexpr (ALIGN_C == 16) fence_async_proxy();
    meet_at_buffer();
    store_buffer<kChunk>(buffer, args, first, col);
    if (leads) tma_store_commit();
    store_chunks<kChunk + 1>(buffers, filled, acc, args, row, slice, paced);
  }
}

// The same for threads that have two chunks in all: both are staged before the first leaves, which
// saves a fence. Where there are more, the way of one hides the filling of the next.
__device__ __forceinline__ void store_two_chunks(StoreBuffers& buffers, u32& filled,
                                                 const float (&acc)[kSliceAccumulators],
                                                 const WgmmaArgs& args, int row, int slice) {
  const int col = slice;
  const int last = slice + CHUNK_N;
  const int first = row - rows_before();
  const bool leads = leads_store();
  if (!TRANSPOSED || filled > 0) {
    if (leads) tma_store_wait<0>();
    meet_at_buffer();
  }
  filled = kStoreBuffers;
  fill_store_buffer<0>(buffers[0], acc, args.gemm, row, col);
  fill_store_buffer<1>(buffers[1], acc, args.gemm, row, last);
  fence_async_proxy();
  meet_at_buffer();
  store_buffer<0>(buffers[0], args, first, col);
  store_buffer<1>(buffers[1], args, first, last);
  if (leads) tma_store_commit();
}

// This warp's rows of the block's tile, or of its slice; `col`: its first column. Also of rows that
// C does not have: versions with a branch around those were slower (NOTES.md).
__device__ __forceinline__ void store_rows(StoreBuffers& buffers, u32& filled,
                                           const float (&acc)[kTilesM][kSliceAccumulators],
                                           const WgmmaArgs& args, int row, int col, bool paced) {
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    if constexpr (ALIGN_C == 16 && kTilesM == 1 && kChunks == 2) {
      store_two_chunks(buffers, filled, acc[t], args, row, col);
    } else {
      store_chunks<0>(buffers, filled, acc[t], args, row + t * 64, col, paced);
    }
  }
}
