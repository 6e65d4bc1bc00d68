// The measuring worker's own kernels: inputs, the trusted reference, the comparison with it, the L2
// flush and the hold that keeps a stream waiting. Compiled by bare NVRTC for the GPU at hand.
//
// An operand is a pointer, its storage type (0 bf16, 1 fp16, 2 fp32) and the strides in elements of
// a logical row and column, so that one kernel serves all layouts.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

enum Storage { kBf16 = 0, kFp16 = 1, kFp32 = 2 };

__device__ __forceinline__ float load_element(const void* data, i64 index, int storage) {
  if (storage == kFp32) return static_cast<const float*>(data)[index];
  const u16 bits = static_cast<const u16*>(data)[index];
  if (storage == kBf16) return __uint_as_float(u32(bits) << 16);
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Rounds to nearest even. bf16 is rounded by hand: the instruction needs sm_80.
__device__ __forceinline__ void store_element(void* data, i64 index, int storage, float value) {
  if (storage == kFp32) {
    static_cast<float*>(data)[index] = value;
    return;
  }
  u16 bits;
  if (storage == kBf16) {
    const u32 word = __float_as_uint(value);
    const bool nan = value != value;
    bits = nan ? u16(0x7fff) : u16((word + 0x7fff + (word >> 16 & 1)) >> 16);
  } else {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  }
  static_cast<u16*>(data)[index] = bits;
}

__device__ __forceinline__ u64 thread_index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 thread_count() { return u64(gridDim.x) * blockDim.x; }

// Philox 4x32 with 10 rounds (Salmon et al., SC11): four random words for a counter and a key.
__device__ uint4 philox(u64 counter, u64 key) {
  uint4 x = {u32(counter), u32(counter >> 32), 0, 0};
  u32 key0 = u32(key);
  u32 key1 = u32(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = u64(0xD2511F53u) * x.x;
    const u64 p1 = u64(0xCD9E8D57u) * x.z;
    x = {u32(p1 >> 32) ^ x.y ^ key0, u32(p1), u32(p0 >> 32) ^ x.w ^ key1, u32(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

// out[row, column] = scale * N(0, 1). The value depends on seed, row and column alone: every layout
// of an operand holds the same matrix.
extern "C" __global__ void __launch_bounds__(256)
    fill_normal(void* out, i64 rows, i64 columns, i64 row_stride, i64 column_stride, int storage,
                float scale, u64 seed) {
  const bool along_columns = column_stride == 1;
  const u64 inner_extent = along_columns ? columns : rows;
  const u64 total = u64(rows) * columns;
  for (u64 i = thread_index(); i < total; i += thread_count()) {
    const i64 outer = i / inner_extent;
    const i64 inner = i % inner_extent;
    const i64 row = along_columns ? outer : inner;
    const i64 column = along_columns ? inner : outer;
    const uint4 random = philox(u64(row) * columns + column, seed);
    const float uniform = (float(random.x) + 1.0f) * 2.3283064e-10f;  // (0, 1], 2^-32 apart
    const float angle = float(random.y) * 4.6566129e-10f;             // [0, 2), in units of pi
    const float value = sqrtf(-2.0f * logf(fminf(uniform, 1.0f))) * cospif(angle);
    store_element(out, row * row_stride + column * column_stride, storage, scale * value);
  }
}

// Reads `count` 16-byte words so that whatever the L2 held is evicted, without a dirty line. The
// store depends on the data, so the reads stay; it never happens for the bytes that the host set.
extern "C" __global__ void __launch_bounds__(512)
    flush_l2(const uint4* data, u64 count, u32* sink) {
  u32 mix = 0;
  const u64 step = thread_count();
#pragma unroll 8
  for (u64 i = thread_index(); i < count; i += step) {
    uint4 word;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(data + i));
    mix |= word.x ^ word.y ^ word.z ^ word.w;
  }
  if (mix != 0) *sink = mix;
}

// Keeps the stream waiting until the host stores `ticket` or a later one, at most limit_ns.
extern "C" __global__ void hold_stream(const volatile u32* flag, u32 ticket, u64 limit_ns) {
  u64 start;
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    if (int(*flag - ticket) >= 0) return;
    asm volatile("nanosleep.u32 100;");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < limit_ns);
}

// As enum class Activation numbers them.
enum Activation { kNone = -1, kGeluTanh = 0, kGeluErf = 1, kSilu = 2, kRelu = 3 };

// By the definitions. The kernels under test have code of their own.
__device__ double activated(double x, int activation) {
  switch (activation) {
    case kGeluTanh:
      return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case kGeluErf:
      return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case kSilu:
      return x / (1 + exp(-x));
    default:
      return x < 0 ? 0 : x;
  }
}

struct ReferenceArgs {
  const void* a;
  const void* b;
  const void* up;  // laid out as b; read where activation is not kNone
  const void* c;   // read where beta != 0
  void* out;       // m x n, tight, in the output's storage type
  i64 a_row_stride;
  i64 a_column_stride;
  i64 b_row_stride;
  i64 b_column_stride;
  i64 c_row_stride;
  i64 m;
  i64 n;
  i64 k;
  double alpha;
  double beta;
  int in_storage;
  int out_storage;
  int activation;
};

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kSide = 16;            // 16 x 16 threads
constexpr int kPer = kTile / kSide;  // 4 x 4 results each
constexpr int kPitch = kTile + 2;

// Loads a kTile x kDepth piece, zero outside the operand. `extent`: how many lines (rows of A,
// columns of B) and k there are from the piece's first on.
__device__ __forceinline__ void load_piece(double (*piece)[kPitch], const void* data, int storage,
                                           i64 line_stride, i64 k_stride, i64 first_line,
                                           i64 first_k, i64 lines, i64 depth) {
  const int thread = threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile * kDepth / (kSide * kSide); ++i) {
    const int flat = i * kSide * kSide + thread;
    const int line = k_stride == 1 ? flat / kDepth : flat % kTile;
    const int k = k_stride == 1 ? flat % kDepth : flat / kTile;
    const bool inside = line < lines && k < depth;
    const i64 index = (first_line + line) * line_stride + (first_k + k) * k_stride;
    piece[k][line] = inside ? double(load_element(data, index, storage)) : 0.0;
  }
}

// Adds a tile of A * weights, which are laid out as B.
__device__ __forceinline__ void add_products(double (&sum)[kPer][kPer], const ReferenceArgs& args,
                                             const void* weights, i64 first_m, i64 first_n) {
  __shared__ double a[kDepth][kPitch];
  __shared__ double b[kDepth][kPitch];
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  for (i64 k = 0; k < args.k; k += kDepth) {
    load_piece(a, args.a, args.in_storage, args.a_row_stride, args.a_column_stride, first_m, k,
               args.m - first_m, args.k - k);
    load_piece(b, weights, args.in_storage, args.b_column_stride, args.b_row_stride, first_n, k,
               args.n - first_n, args.k - k);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
#pragma unroll
        for (int j = 0; j < kPer; ++j) {
          sum[i][j] = fma(a[step][y + i * kSide], b[step][x + j * kSide], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }
}

// out = alpha * A * B + beta * C, or activation(A * B) .* (A * up), accumulated in double, rounded
// once to the output type. Plain on purpose: everything else is checked against it.
extern "C" __global__ void __launch_bounds__(kSide* kSide)
    reference_gemm(const ReferenceArgs args) {
  const i64 tiles_n = (args.n + kTile - 1) / kTile;
  const i64 first_m = blockIdx.x / tiles_n * kTile;
  const i64 first_n = blockIdx.x % tiles_n * kTile;
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  double sum[kPer][kPer] = {};
  double factor[kPer][kPer] = {};
  add_products(sum, args, args.b, first_m, first_n);
  if (args.activation != kNone) add_products(factor, args, args.up, first_m, first_n);
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const i64 row = first_m + y + i * kSide;
      const i64 column = first_n + x + j * kSide;
      if (row >= args.m || column >= args.n) continue;
      double value = args.alpha * sum[i][j];
      if (args.activation != kNone) value = activated(value, args.activation) * factor[i][j];
      if (args.beta != 0) {
        value +=
            args.beta * load_element(args.c, row * args.c_row_stride + column, args.out_storage);
      }
      store_element(args.out, row * args.n + column, args.out_storage, float(value));
    }
  }
}

struct Comparison {
  double error_squares;      // sum of (out - ref)^2 over finite pairs
  double reference_squares;  // sum of ref^2
  u64 bad;                   // other than the reference, and one of the two NaN or infinite
  u32 worst_bits;            // largest error / (absolute + relative * |ref|), as float bits
  u32 padding;
};

__device__ __forceinline__ bool finite(float value) { return fabsf(value) <= 3.402823466e38f; }

// Adds the comparison of out (row stride `stride`) with the tight reference to `result`, which the
// host zeroed. absolute = atol * rms(ref). With out = nullptr only the reference is summed.
extern "C" __global__ void __launch_bounds__(256)
    compare(const void* out, const void* reference, i64 m, i64 n, i64 stride, int storage,
            float absolute, float relative, Comparison* result) {
  double errors = 0;
  double squares = 0;
  u64 bad = 0;
  float worst = 0;
  const u64 total = u64(m) * n;
  for (u64 i = thread_index(); i < total; i += thread_count()) {
    const float expected = load_element(reference, i, storage);
    if (finite(expected)) squares += double(expected) * expected;
    if (out == nullptr) continue;
    const float value = load_element(out, i / n * stride + i % n, storage);
    if (value == expected) continue;
    if (!finite(value) || !finite(expected)) {
      ++bad;
      continue;
    }
    const double error = double(value) - expected;
    errors += error * error;
    worst = fmaxf(worst, float(fabs(error)) / (absolute + relative * fabsf(expected)));
  }
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    errors += __shfl_xor_sync(~0u, errors, lane);
    squares += __shfl_xor_sync(~0u, squares, lane);
    bad += __shfl_xor_sync(~0u, bad, lane);
    worst = fmaxf(worst, __shfl_xor_sync(~0u, worst, lane));
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&result->error_squares, errors);
    atomicAdd(&result->reference_squares, squares);
    if (bad != 0) atomicAdd(&result->bad, bad);
    atomicMax(&result->worst_bits, __float_as_uint(worst));  // ordered as floats are: none is < 0
  }
}

// Adds to *count the 2-byte words in which two buffers differ.
extern "C" __global__ void __launch_bounds__(256)
    count_differences(const u16* a, const u16* b, u64 words, u64* count) {
  u64 differences = 0;
  for (u64 i = thread_index(); i < words; i += thread_count()) differences += a[i] != b[i];
  if (differences != 0) atomicAdd(count, differences);
}

// Adds to *count the bytes in [first, last) of each of `rows` rows that are not 0xff any more.
extern "C" __global__ void __launch_bounds__(256)
    count_touched(const u8* base, i64 rows, i64 row_bytes, i64 first, i64 last, u64* count) {
  const u64 width = last - first;
  const u64 total = rows * width;
  u64 touched = 0;
  for (u64 i = thread_index(); i < total; i += thread_count()) {
    touched += base[i64(i / width) * row_bytes + first + i % width] != 0xff;
  }
  if (touched != 0) atomicAdd(count, touched);
}

// The activation as a fast elementwise kernel has it, for the baseline.
__device__ __forceinline__ float activated_fast(float x, int activation) {
  switch (activation) {
    case kGeluTanh:
      return __fdividef(x, 1 + __expf(-1.5957691216f * (x + 0.044715f * x * x * x)));
    case kGeluErf:
      return 0.5f * x * (1 + erff(x * 0.7071067812f));
    case kSilu:
      return __fdividef(x, 1 + __expf(-x));
    default:
      return x < 0 ? 0 : x;
  }
}

// Eight or four elements in 16 bytes.
template <int kStorage>
__device__ __forceinline__ uint4 gated_piece(uint4 gates, uint4 factors, int activation) {
  uint4 results;
#pragma unroll
  for (int e = 0; e < (kStorage == kFp32 ? 4 : 8); ++e) {
    const float first = activated_fast(load_element(&gates, e, kStorage), activation);
    store_element(&results, e, kStorage, first * load_element(&factors, e, kStorage));
  }
  return results;
}

// What stands behind two products of cuBLAS: out[m, n] = activation(gate) .* up, both m x n with
// `in_stride` from row to row, in 16-byte pieces where `wide`.
extern "C" __global__ void __launch_bounds__(256)
    gate_products(const void* gate, const void* up, void* out, i64 m, i64 n, i64 in_stride,
                  i64 out_stride, int storage, int activation, int wide) {
  const int size = storage == kFp32 ? 4 : 2;
  const int each = wide ? 16 / size : 1;
  const u64 columns = u64(n) / each;
  const u64 total = u64(m) * columns;
  for (u64 i = thread_index(); i < total; i += thread_count()) {
    const i64 row = i / columns;
    const i64 column = i % columns * each;
    const i64 from = row * in_stride + column;
    const i64 to = row * out_stride + column;
    if (!wide) {
      const float first = activated_fast(load_element(gate, from, storage), activation);
      store_element(out, to, storage, first * load_element(up, from, storage));
      continue;
    }
    const uint4 gates = *reinterpret_cast<const uint4*>(static_cast<const u8*>(gate) + from * size);
    const uint4 factors = *reinterpret_cast<const uint4*>(static_cast<const u8*>(up) + from * size);
    *reinterpret_cast<uint4*>(static_cast<u8*>(out) + to * size) =
        storage == kFp32   ? gated_piece<kFp32>(gates, factors, activation)
        : storage == kBf16 ? gated_piece<kBf16>(gates, factors, activation)
                           : gated_piece<kFp16>(gates, factors, activation);
  }
}
