#include "test/emulator/matrix.h"

#include <cstring>

#include "test/emulator/numbers.h"
#include "test/emulator/swizzle.h"

namespace autotune::emulator {

namespace {

// A register of a lane.
std::uint32_t word(const Lanes& lanes, int lane, const Operand& operand) {
  return static_cast<std::uint32_t>(lanes[static_cast<std::size_t>(lane)][operand.slot]);
}

// Element `index` of a register.
float element(std::uint32_t bits, int index, Type type) {
  if (type == Type::tf32) return from_tf32(bits);
  const auto half = static_cast<std::uint16_t>(bits >> (16 * index));
  return type == Type::f16 ? from_fp16(half) : from_bf16(half);
}

// A warp's 16 rows and `depth` of A out of registers: those of rows lane / 4 and 8 further for the
// first half of the depth, then for the second.
void take_rows(const Operand* operands, int registers, const Lanes& lanes, Type type, int depth,
               float* a) {
  const int per_word = type == Type::tf32 ? 1 : 2;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < registers; ++r) {
      const int row = lane / 4 + r % 2 * 8;
      const int k = lane % 4 * per_word + r / 2 * 4 * per_word;
      for (int e = 0; e < per_word; ++e) {
        a[row * depth + k + e] = element(word(lanes, lane, operands[r]), e, type);
      }
    }
  }
}

// What a shared-memory descriptor says (PTX ISA, matrix descriptor format).
struct Descriptor {
  std::uint64_t begin;
  std::uint64_t leading;  // bytes between slabs of an operand that is contiguous along m or n
  std::uint64_t stride;   // bytes between groups of 8 rows
  int width;              // bytes of a swizzled row

  explicit Descriptor(std::uint64_t bits)
      : begin((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4) {
    constexpr int kWidths[] = {0, 128, 64, 32};
    width = kWidths[bits >> 62];
    if (width == 0) throw Fault("a matrix descriptor without a swizzle");
    if ((bits >> 49 & 7) != 0) throw Fault("a matrix descriptor with a base offset");
  }

  // Address of the piece that holds element `inner` (in bytes, contiguous) of `outer`.
  std::uint64_t piece(std::uint64_t outer, std::uint64_t inner, bool k_major) const {
    const auto bytes = static_cast<std::uint64_t>(width);
    const std::uint64_t slab = k_major ? 0 : inner / bytes;
    const std::uint64_t within = k_major ? inner : inner % bytes;
    const std::uint64_t linear =
        begin + slab * leading + outer / 8 * stride + outer % 8 * bytes + within;
    return swizzled(linear, bytes) & ~(kPiece - 1);
  }
};

constexpr int kPieceBytes = static_cast<int>(kPiece);

// `extent` rows of A, or columns of B, from `first` on, by `depth` elements of k, into
// `out[extent][depth]`.
void take_operand(const Descriptor& from, int first, int extent, int depth, bool k_major, Type type,
                  SharedMemory& shared, const Actor& actor, std::vector<std::uint64_t>& held,
                  float* out) {
  const int bytes = type == Type::tf32 ? 4 : 2;
  const int lines = k_major ? extent : depth;
  const int line_elements = k_major ? depth : extent;
  for (int line = 0; line < lines; ++line) {
    for (int e = 0; e < line_elements; e += kPieceBytes / bytes) {
      const int outer = k_major ? first + line : line;
      const int inner = (k_major ? e : first + e) * bytes;
      const std::uint64_t piece =
          from.piece(static_cast<std::uint64_t>(outer), static_cast<std::uint64_t>(inner), k_major);
      const std::byte* at = shared.begin_async_read(piece, kPiece, actor);
      held.push_back(piece);
      for (int i = 0; i < kPieceBytes / bytes; ++i) {
        const float value = operand_value(at + i * bytes, type);
        out[k_major ? line * depth + e + i : (e + i) * depth + line] = value;
      }
    }
  }
}

// d[16][columns] += a[16][depth] * b[columns][depth], where d is spread over the lanes as the
// matrix instructions do: a lane holds pairs of rows lane / 4 and 8 further, columns
// 2 x (lane % 4) of every 8.
void add_products(const Operand* d, const Operand* c, bool accumulate, int columns, int depth,
                  const float* a, const float* b, const Lanes& lanes) {
  for (int lane = 0; lane < 32; ++lane) {
    std::uint64_t* registers = lanes[static_cast<std::size_t>(lane)];
    for (int r = 0; r < columns / 2; ++r) {
      const float* row = a + (lane / 4 + r / 2 % 2 * 8) * depth;
      const float* column = b + (r / 4 * 8 + lane % 4 * 2 + r % 2) * depth;
      float sum = accumulate ? float_of(registers[c[r].slot]) : 0.0f;
      for (int k = 0; k < depth; ++k) sum += row[k] * column[k];
      registers[d[r].slot] = bits_of(sum);
    }
  }
}

}  // namespace

void multiply(const Instruction& i, const Operand* operands, const Lanes& lanes) {
  // d, then a and b in as many registers as their depth takes, then c.
  const int rest = i.operands - 8;
  if (rest != 6 && rest != 3) throw Fault("a matrix instruction of another shape");
  const int of_a = rest / 3 * 2;
  const int of_b = rest / 3;
  const int depth = i.from == Type::tf32 ? 4 * of_b : 8 * of_b;
  const int per_word = i.from == Type::tf32 ? 1 : 2;
  float a[16 * 16];
  float b[8 * 16];
  take_rows(operands + 4, of_a, lanes, i.from, depth, a);
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < of_b; ++r) {
      for (int e = 0; e < per_word; ++e) {
        b[lane / 4 * depth + lane % 4 * per_word + r * 4 * per_word + e] =
            element(word(lanes, lane, operands[4 + of_a + r]), e, i.from);
      }
    }
  }
  add_products(operands, operands + 4 + rest, true, 8, depth, a, b, lanes);
}

void load_matrix(const Instruction& i, const Operand* operands, const Lanes& lanes,
                 const std::array<std::uint64_t, 32>& addresses, SharedMemory& shared,
                 const Actor& actor) {
  for (int m = 0; m < i.count; ++m) {
    std::uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) {
      const std::uint64_t from = addresses[static_cast<std::size_t>(m * 8 + row)];
      std::memcpy(matrix[row], shared.read(from, sizeof(matrix[row]), actor), sizeof(matrix[row]));
    }
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      const std::uint16_t low = i.transposed ? matrix[column][row] : matrix[row][column];
      const std::uint16_t high = i.transposed ? matrix[column + 1][row] : matrix[row][column + 1];
      lanes[static_cast<std::size_t>(lane)][operands[m].slot] = std::uint32_t{high} << 16 | low;
    }
  }
}

void store_matrix(const Instruction& i, const Operand* operands, const Lanes& lanes,
                  const std::array<std::uint64_t, 32>& addresses, SharedMemory& shared,
                  const Actor& actor) {
  for (int m = 0; m < i.count; ++m) {
    for (int row = 0; row < 8; ++row) {
      const std::uint64_t to = addresses[static_cast<std::size_t>(m * 8 + row)];
      // A row is written for the lanes that hold it; all of them must fence it.
      for (int column = 0; column < 8; ++column) {
        const int held_row = i.transposed ? column : row;
        const int held_column = i.transposed ? row : column;
        const int lane = held_row * 4 + held_column / 2;
        const auto bits =
            static_cast<std::uint16_t>(word(lanes, lane, operands[1 + m]) >> held_column % 2 * 16);
        shared.write(to + static_cast<std::uint64_t>(column) * 2, &bits, 2,
                     {actor.thread + lane, actor.warp, actor.clocks});
      }
    }
  }
}

void group_multiply(const Instruction& i, const Operand* operands, const Lanes& lanes, int warp,
                    SharedMemory& shared, const Actor& actor, std::vector<std::uint64_t>& held) {
  const int sums = i.columns / 2;
  const Type type = i.from;
  const int depth = type == Type::tf32 ? 8 : 16;
  const bool a_in_registers = reads_fragments(i);
  const Operand* b = operands + sums + (a_in_registers ? 4 : 1);
  const int behind = i.operands - sums - (a_in_registers ? 4 : 1) - 4;  // b, whether to add, signs
  if (behind < 0 || (type == Type::tf32) != (behind == 0)) {
    throw Fault("a warpgroup instruction of another form");
  }
  // All lanes agree on these.
  const std::uint64_t* first = lanes[0];
  const auto transposed = [&](int which) {
    return which < behind && (first[b[4 + which].slot] & 1) != 0;
  };
  for (const int sign : {2, 3}) {
    if (first[b[sign].slot] != 1) throw Fault("a warpgroup instruction that turns a sign");
  }
  const auto descriptor = [&](const Operand& operand) {
    for (const std::uint64_t* lane : lanes) {
      if (lane[operand.slot] != first[operand.slot]) {
        throw Fault("the threads of a warp give different matrix descriptors");
      }
    }
    return Descriptor(first[operand.slot]);
  };
  std::vector<float> rows(16 * 16);
  std::vector<float> columns(static_cast<std::size_t>(i.columns * depth));
  if (a_in_registers) {
    take_rows(operands + sums, 4, lanes, type, depth, rows.data());
  } else {
    take_operand(descriptor(operands[sums]), warp * 16, 16, depth, !transposed(0), type, shared,
                 actor, held, rows.data());
  }
  const bool b_transposed = transposed(a_in_registers ? 0 : 1);
  take_operand(descriptor(*b), 0, i.columns, depth, !b_transposed, type, shared, actor, held,
               columns.data());
  add_products(operands, operands, (first[b[1].slot] & 1) != 0, i.columns, depth, rows.data(),
               columns.data(), lanes);
}

}  // namespace autotune::emulator
