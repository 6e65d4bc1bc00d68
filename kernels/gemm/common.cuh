// What the GEMM kernels share on the device: element types, tile order, and the PTX they are made
// of. Everything is compiled by bare NVRTC: no header is included.
//
// Constants that the host twin defines for every kernel:
//   DTYPE, OUT_DTYPE   0 bf16, 1 fp16, 2 tf32, 3 fp32
//   A_K_MAJOR, B_K_MAJOR          1 where k is the contiguous direction
//   HAS_BETA                      1 where C is read as well
//   ALIGN_A, ALIGN_B, ALIGN_C     bytes to which every row starts aligned

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DTYPE_BF16 0
#define DTYPE_FP16 1
#define DTYPE_TF32 2
#define DTYPE_FP32 3

#if __CUDA_ARCH__ >= 800
#define HAS_CP_ASYNC 1
#else
#define HAS_CP_ASYNC 0
#endif

constexpr int kElementBytes = (DTYPE == DTYPE_BF16 || DTYPE == DTYPE_FP16) ? 2 : 4;
constexpr int kOutBytes = (OUT_DTYPE == DTYPE_BF16 || OUT_DTYPE == DTYPE_FP16) ? 2 : 4;

struct TileIndex {
  int m;
  int n;
};

// A kernel may begin while the launch ahead of it still writes what it will read
// (LaunchPlan::follows). Whatever that launch does not write may be read before.
__device__ __forceinline__ void wait_for_launch_ahead() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A division by an unknown number costs a kernel's start hundreds of clocks.
__device__ __forceinline__ u32 divided(u32 value, Reciprocal divisor) {
  return divisor == 0 ? value : u32(__umul64hi(value, divisor));
}

// Output tile of the id-th block: groups of `swizzle` tiles in one direction, walked along the
// other, so that the tiles in flight share rows of A and columns of B in the L2.
__device__ __forceinline__ TileIndex tile_of(u32 id, const GemmArgs& args) {
  const bool along_n = args.flags & GemmArgs::kRasterAlongN;
  const u32 along = along_n ? args.tiles_n : args.tiles_m;
  const u32 across = along_n ? args.tiles_m : args.tiles_n;
  const u32 group = divided(id, args.of_group);
  const u32 first = group * args.swizzle;
  const bool whole = first + args.swizzle <= across;
  const u32 width = whole ? args.swizzle : across - first;
  const u32 in_group = id - first * along;
  const u32 walk = divided(in_group, whole ? args.of_step : args.of_last_step);
  const u32 step = first + in_group - walk * width;
  return along_n ? TileIndex{int(step), int(walk)} : TileIndex{int(walk), int(step)};
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return u32(__cvta_generic_to_shared(pointer));
}

// To be called where a block is about to end: the launch behind this one may begin once all are
// there. Sooner would be worse: its blocks would crowd on the few SMs that this launch leaves free.
__device__ __forceinline__ void admit_launch_behind(const GemmArgs& args) {
#if __CUDA_ARCH__ >= 900
  if (args.flags & GemmArgs::kAdmits) asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Copies kBytes (4, 8 or 16) to shared memory; bytes past `valid` become zero and are not read.
template <int kBytes>
__device__ __forceinline__ void cp_async(u32 shared, const void* global, int valid) {
#if HAS_CP_ASYNC
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared),
                 "l"(global), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(shared), "l"(global),
                 "n"(kBytes), "r"(valid)
                 : "memory");
  }
#endif
}

__device__ __forceinline__ void cp_async_commit() {
#if HAS_CP_ASYNC
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
#if HAS_CP_ASYNC
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
#endif
}

__device__ __forceinline__ void store_shared_16(u32 shared, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(shared), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

__device__ __forceinline__ u16 to_half_bits(float value) {
  u16 bits;
  if constexpr (OUT_DTYPE == DTYPE_BF16) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
#else
    bits = 0;  // the host twin offers no bf16 below sm_80
#endif
  } else {
    asm("cvt.rn.f16.f32 %0, %1;\n" : "=h"(bits) : "f"(value));
  }
  return bits;
}

__device__ __forceinline__ float from_half_bits(u16 bits) {
  float value;
  if constexpr (OUT_DTYPE == DTYPE_BF16) {
    value = __uint_as_float(u32(bits) << 16);
  } else {
    asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(bits));
  }
  return value;
}

// One element of C as fp32, and back to its storage type.
__device__ __forceinline__ float load_output(const void* c, i64 index) {
  if constexpr (kOutBytes == 2) {
    return from_half_bits(static_cast<const u16*>(c)[index]);
  } else {
    return static_cast<const float*>(c)[index];
  }
}

__device__ __forceinline__ void store_output(void* c, i64 index, float value) {
  if constexpr (kOutBytes == 2) {
    static_cast<u16*>(c)[index] = to_half_bits(value);
  } else {
    static_cast<float*>(c)[index] = value;
  }
}

template <int kBytes>
struct VectorOf {
  typedef u16 Type;
};
template <>
struct VectorOf<4> {
  typedef u32 Type;
};
template <>
struct VectorOf<8> {
  typedef uint2 Type;
};
template <>
struct VectorOf<16> {
  typedef uint4 Type;
};

// Of a row of C, in a piece of as many bytes as its rows are aligned to.
constexpr int kPieceElements = ALIGN_C / kOutBytes;

// Such a piece out of shared memory, or its first `left` elements where the row ends sooner.
__device__ __forceinline__ void store_piece(void* target, const u8* source, int left) {
  if (left >= kPieceElements) {
    typedef VectorOf<ALIGN_C>::Type Piece;
    *static_cast<Piece*>(target) = *reinterpret_cast<const Piece*>(source);
    return;
  }
  typedef VectorOf<kOutBytes>::Type Element;
#pragma unroll
  for (int i = 0; i < kPieceElements - 1; ++i) {
    if (i < left) static_cast<Element*>(target)[i] = reinterpret_cast<const Element*>(source)[i];
  }
}
