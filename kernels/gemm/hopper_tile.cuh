// What every kernel that is fed by the copy engine has in shared memory: operands' tiles under the
// 128-byte swizzle, in a ring of stages.

constexpr int kSlabElements = 128 / kElementBytes;  // one row of a swizzled slab: 128 bytes

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
  static constexpr int kStepK = 32 / kElementBytes;  // depth of one instruction
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

// Loads the first `slabs` of an operand's tile, of which several matrices may share the slabs: `T`
// is the part of one of them then. `kShared`: for all of the `blocks` of the cluster.
template <typename T, bool kKMajor, bool kShared = false, int kSlabPitch = T::kSlabBytes,
          bool kHinted = false>
__device__ __forceinline__ void load_operand(u32 tile, const TensorMapBytes& map, int first, int k,
                                             u32 barrier, int slabs = T::kSlabs, u16 blocks = 0,
                                             L2Policy policy = L2Policy::kNormal) {
#pragma unroll
  for (int slab = 0; slab < T::kSlabs; ++slab) {
    if (slab >= slabs) break;
    const u32 target = tile + slab * kSlabPitch;
    const int inner = (kKMajor ? k : first) + slab * kSlabElements;
    const int outer = kKMajor ? first : k;
    if constexpr (kShared) {
      tma_load_multicast<kHinted>(target, map, inner, outer, barrier, blocks, policy);
    } else {
      tma_load<kHinted>(target, map, inner, outer, barrier, policy);
    }
  }
}

// Stages that a block fills before all else. More of them would be in the way of the first.
constexpr int kOpening = 2;
static_assert(STAGES >= kOpening, "the ring holds what opens it");

// Where in the ring a role stands, and the parity that its barriers have there.
template <u32 kStages>
struct Ring {
  u32 stage;
  u32 parity;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(u32 count) {
    stage += count;
    parity ^= stage / kStages & 1;
    stage %= kStages;
  }
};
