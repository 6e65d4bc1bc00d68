// A kernel as a list of PTX instructions whose operands are slots of a thread's register file.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace autotune::emulator {

// What a kernel did that it must not do, or what the emulator does not know.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Op : std::uint8_t {
  // clang-format off
  nothing, mov, add, sub, mul, mul_hi, mul_wide, mad, mad_wide, fma, neg, abs, copysign, min, max,
  div, rem, and_, or_, xor_, not_, shl, shr, funnel_left, funnel_right, permute, insert, find_leading, reverse,
  count_ones, count_leading, selp, setp, cvt, exp2, reciprocal, tanh, root,
  load, store, add_atomic, branch, end,
  // A warp together.
  block_wait, block_arrive, block_any, warp_wait, shuffle, shuffle_xor, vote_all,
  vote_any,
  load_matrix, store_matrix, multiply,
  cluster_arrive, cluster_release, cluster_wait, group_fence, group_multiply, group_commit, group_wait,
  // One thread, asynchronously.
  copy, copy_commit, copy_wait,
  barrier_init, barrier_arrive, barrier_expect, barrier_arrive_there, barrier_try, barrier_test,
  launch_wait, barrier_fence, map_address, give, line_load, box_load, box_store, box_commit, box_wait, proxy_fence,
  global_proxy_fence,
  // clang-format on
};

// clang-format off
enum class Type : std::uint8_t {
  pred, b8, u8, s8, b16, u16, s16, f16, bf16, b32, u32, s32, f32, tf32, f16x2, bf16x2, b64, u64, s64
};
// clang-format on
inline int bytes_of(Type type) {
  constexpr int kBytes[] = {1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8};
  return kBytes[static_cast<int>(type)];
}
inline bool is_signed(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

enum class Space : std::uint8_t { global, shared, param, local };
enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };

// A register, or one that holds a constant. An address has an offset in bytes.
struct Operand {
  std::int32_t slot = -1;  // -1: `_`, written to nobody's use
  std::int32_t offset = 0;
};

struct Instruction {
  Op op = Op::nothing;
  Type type = Type::b32;
  Type from = Type::b32;  // cvt: of the source; of a product's operands
  Space space = Space::global;
  Compare compare = Compare::eq;
  bool unordered = false;   // a comparison with a NaN holds
  bool transposed = false;  // load_matrix, store_matrix
  bool multicast = false;   // box_load
  bool releases = false;    // add_atomic
  bool acquires = false;    // load
  bool constant = false;    // load, of what nobody writes while the kernel runs
  bool unpacks = false;     // mov, of one register into several
  std::uint8_t count = 1;   // elements of a vector, matrices of a load
  std::int32_t guard = -1;  // slot of a predicate; -1: always
  bool guard_not = false;
  std::int32_t target = -1;  // of a branch
  std::int32_t columns = 0;  // of a group_multiply
  std::int32_t first = 0;    // of its operands in Program::operands
  std::int32_t operands = 0;
  std::int32_t line = 0;  // of the text
};

// Slots that each thread finds filled.
enum Slot : std::int32_t {
  kThreadX,
  kThreadsX,
  kBlockX,
  kBlocksX,
  kClusterRank,
  kShared,  // address of the block's shared memory
  kParam,   // of the argument
  kLocal,   // of the thread's own memory
  kFirstFreeSlot
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Operand> operands;
  std::map<std::uint64_t, std::int32_t> constants;  // value -> slot
  std::int32_t slots = kFirstFreeSlot;
  std::int32_t local_bytes = 0;
  std::vector<std::string> lines;  // of the text
};

// The only entry of a module. Faults at what the emulator does not know.
Program parse_ptx(std::string_view text);

}  // namespace autotune::emulator
