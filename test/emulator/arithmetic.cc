#include "test/emulator/arithmetic.h"

#include <bit>
#include <cmath>

#include "test/emulator/numbers.h"

namespace autotune::emulator {

namespace {

// The bits that a register of the type keeps.
std::uint64_t kept(std::uint64_t value, Type type) {
  if (type == Type::pred) return value & 1;
  const int bytes = bytes_of(type);
  return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

bool is_float(Type type) { return type == Type::f32; }

template <typename T>
bool holds(Compare compare, T a, T b) {
  switch (compare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    default:
      return a >= b;
  }
}

bool compared(const Instruction& i, std::uint64_t a, std::uint64_t b) {
  if (is_float(i.type)) {
    const float x = float_of(a);
    const float y = float_of(b);
    if (std::isnan(x) || std::isnan(y)) return i.unordered;
    return holds(i.compare, x, y);
  }
  if (is_signed(i.type)) {
    return holds(i.compare, signed_value(a, i.type), signed_value(b, i.type));
  }
  return holds(i.compare, kept(a, i.type), kept(b, i.type));
}

std::uint64_t converted(const Instruction& i, const std::uint64_t* source) {
  const std::uint64_t a = source[0];
  switch (i.type) {
    case Type::bf16:
      return to_bf16(float_of(a));
    case Type::f16:
      return to_fp16(float_of(a));
    case Type::tf32:
      return to_tf32(static_cast<std::uint32_t>(a));
    case Type::bf16x2:
      return std::uint32_t{to_bf16(float_of(a))} << 16 | to_bf16(float_of(source[1]));
    case Type::f16x2:
      return std::uint32_t{to_fp16(float_of(a))} << 16 | to_fp16(float_of(source[1]));
    case Type::f32:
      if (i.from == Type::f16) return bits_of(from_fp16(static_cast<std::uint16_t>(a)));
      if (i.from == Type::bf16) return bits_of(from_bf16(static_cast<std::uint16_t>(a)));
      if (is_signed(i.from)) return bits_of(static_cast<float>(signed_value(a, i.from)));
      return bits_of(static_cast<float>(kept(a, i.from)));
    default:
      if (is_float(i.from)) throw Fault("a conversion from fp32 to whole numbers");
      return is_signed(i.from) ? static_cast<std::uint64_t>(signed_value(a, i.from))
                               : kept(a, i.from);
  }
}

std::uint64_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t pick = selector >> (4 * i) & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (pick & 7)) & 0xff);
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= byte << (8 * i);
  }
  return out;
}

// NaN as a GPU makes it.
std::uint64_t result_of(float value) { return std::isnan(value) ? 0x7fffffff : bits_of(value); }

std::uint64_t of_floats(Op op, float a, float b, float c) {
  switch (op) {
    case Op::add:
      return result_of(a + b);
    case Op::sub:
      return result_of(a - b);
    case Op::mul:
      return result_of(a * b);
    case Op::div:
      return result_of(a / b);
    case Op::fma:
      return result_of(std::fma(a, b, c));
    case Op::neg:
      return bits_of(-a);
    case Op::abs:
      return bits_of(std::fabs(a));
    case Op::copysign:  // of the first onto the second
      return bits_of(std::copysign(b, a));
    case Op::min:
      return result_of(std::fmin(a, b));
    case Op::max:
      return result_of(std::fmax(a, b));
    case Op::exp2:
      return result_of(std::exp2(a));
    case Op::reciprocal:
      return result_of(1.0f / a);
    case Op::tanh:
      return result_of(std::tanh(a));
    case Op::root:
      return result_of(std::sqrt(a));
    default:
      throw Fault("an instruction that fp32 does not have");
  }
}

std::uint64_t of_integers(const Instruction& i, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const bool with_sign = is_signed(i.type);
  const std::int64_t sa = signed_value(a, i.type);
  const std::int64_t sb = signed_value(b, i.type);
  const std::uint64_t ua = kept(a, i.type);
  const std::uint64_t ub = kept(b, i.type);
  const int bits = 8 * bytes_of(i.type);
  switch (i.op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::mul_hi: {
      __extension__ using Wide = unsigned __int128;
      __extension__ using SignedWide = __int128;
      if (with_sign) return static_cast<std::uint64_t>(SignedWide{sa} * sb >> bits);
      return static_cast<std::uint64_t>(Wide{ua} * ub >> bits);
    }
    case Op::mul_wide:
      return with_sign ? static_cast<std::uint64_t>(sa * sb) : ua * ub;
    case Op::mad:
      return a * b + c;
    case Op::mad_wide:
      return (with_sign ? static_cast<std::uint64_t>(sa * sb) : ua * ub) + c;
    case Op::neg:
      return 0 - a;
    case Op::abs:
      return static_cast<std::uint64_t>(sa < 0 ? -sa : sa);
    case Op::min:
      return with_sign ? static_cast<std::uint64_t>(std::min(sa, sb)) : std::min(ua, ub);
    case Op::max:
      return with_sign ? static_cast<std::uint64_t>(std::max(sa, sb)) : std::max(ua, ub);
    case Op::div:
      if (ub == 0) throw Fault("a division by zero");
      return with_sign ? static_cast<std::uint64_t>(sa / sb) : ua / ub;
    case Op::rem:
      if (ub == 0) throw Fault("a division by zero");
      return with_sign ? static_cast<std::uint64_t>(sa % sb) : ua % ub;
    case Op::and_:
      return a & b;
    case Op::or_:
      return a | b;
    case Op::xor_:
      return a ^ b;
    case Op::not_:
      return ~a;
    default:
      throw Fault("an instruction that whole numbers do not have");
  }
}

std::uint64_t shifted(const Instruction& i, std::uint64_t a, std::uint64_t by) {
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes_of(i.type));
  const std::uint64_t count = std::min(by & 0xffffffff, bits);
  if (i.op == Op::shl) return count == bits ? 0 : a << count;
  if (is_signed(i.type)) {
    return static_cast<std::uint64_t>(signed_value(a, i.type) >>
                                      std::min<std::uint64_t>(count, bits - 1));
  }
  return count == bits ? 0 : kept(a, i.type) >> count;
}

std::uint64_t inserted(std::uint32_t a, std::uint32_t b, std::uint32_t at, std::uint32_t count) {
  if (at >= 32) return b;
  const std::uint64_t mask = ((std::uint64_t{1} << std::min(count, 32u)) - 1) << at;
  return (b & ~mask) | ((std::uint64_t{a} << at) & mask);
}

std::uint32_t reversed(std::uint32_t value) {
  std::uint32_t out = 0;
  for (int i = 0; i < 32; ++i) out |= (value >> i & 1) << (31 - i);
  return out;
}

// Several registers into one, or one into several, the first in the lower bits.
void move_parts(const Instruction& i, const Operand* operands, std::uint64_t* registers) {
  const int parts = i.operands - 1;
  const int bits = 8 * bytes_of(i.type) / parts;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  if (i.unpacks) {
    const std::uint64_t whole = registers[operands[parts].slot];
    for (int k = 0; k < parts; ++k) {
      if (operands[k].slot >= 0) registers[operands[k].slot] = whole >> (k * bits) & mask;
    }
    return;
  }
  std::uint64_t whole = 0;
  for (int k = 0; k < parts; ++k) whole |= (registers[operands[1 + k].slot] & mask) << (k * bits);
  registers[operands[0].slot] = whole;
}

}  // namespace

std::int64_t signed_value(std::uint64_t value, Type type) {
  const int unused = 64 - 8 * bytes_of(type);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

bool calculate(const Instruction& i, const Operand* operands, std::uint64_t* registers) {
  const bool moves = i.op == Op::mov || i.op == Op::selp || i.op == Op::cvt;
  const bool is_half = i.type == Type::f16 || i.type == Type::bf16 || i.type == Type::f16x2 ||
                       i.type == Type::bf16x2 || i.type == Type::tf32;
  const bool only_32 = i.op == Op::funnel_left || i.op == Op::funnel_right || i.op == Op::permute ||
                       i.op == Op::insert || i.op == Op::find_leading ||
                       i.op == Op::count_leading || i.op == Op::count_ones || i.op == Op::reverse;
  if ((is_half && !moves) || (only_32 && bytes_of(i.type) != 4)) {
    throw Fault("an instruction on another type than it is known for");
  }
  if (i.op == Op::mov && i.operands > 2) {
    move_parts(i, operands, registers);
    return true;
  }
  std::uint64_t in[4] = {};
  for (int k = 1; k < i.operands && k <= 4; ++k) {
    in[k - 1] = registers[operands[k].slot] + static_cast<std::uint64_t>(operands[k].offset);
  }
  const auto [a, b, c, d] = in;
  const std::uint32_t word = static_cast<std::uint32_t>(a);
  std::uint64_t out = 0;
  Type type = i.type;
  switch (i.op) {
    case Op::mov:
      out = a;
      break;
    case Op::selp:
      out = (c & 1) != 0 ? a : b;
      break;
    case Op::setp:
      if (i.operands != 3) throw Fault("a comparison with more than two operands");
      out = compared(i, a, b) ? 1 : 0;
      type = Type::pred;
      break;
    case Op::cvt:
      out = converted(i, in);
      break;
    case Op::shl:
    case Op::shr:
      out = shifted(i, a, b);
      break;
    case Op::funnel_left:
      out = ((b & 0xffffffff) << 32 | (a & 0xffffffff)) << (c & 31) >> 32;
      break;
    case Op::funnel_right:
      out = ((b & 0xffffffff) << 32 | (a & 0xffffffff)) >> (c & 31);
      break;
    case Op::permute:
      out = permuted(word, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c));
      break;
    case Op::insert:
      out = inserted(word, static_cast<std::uint32_t>(b), c & 0xff, d & 0xff);
      break;
    case Op::find_leading:
      out = word == 0 ? ~0u : static_cast<std::uint32_t>(std::countl_zero(word));
      break;
    case Op::count_leading:
      out = static_cast<std::uint32_t>(std::countl_zero(word));
      break;
    case Op::count_ones:
      out = static_cast<std::uint32_t>(std::popcount(word));
      break;
    case Op::reverse:
      out = reversed(word);
      break;
    case Op::mul_wide:
    case Op::mad_wide:
      out = of_integers(i, a, b, c);
      type = bytes_of(i.type) == 4 ? Type::b64 : Type::b32;
      break;
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::mul_hi:
    case Op::mad:
    case Op::fma:
    case Op::neg:
    case Op::abs:
    case Op::copysign:
    case Op::min:
    case Op::max:
    case Op::div:
    case Op::rem:
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
    case Op::exp2:
    case Op::reciprocal:
    case Op::tanh:
    case Op::root:
      out = is_float(i.type) ? of_floats(i.op, float_of(a), float_of(b), float_of(c))
                             : of_integers(i, a, b, c);
      break;
    default:
      return false;
  }
  if (operands[0].slot >= 0) registers[operands[0].slot] = kept(out, type);
  return true;
}

}  // namespace autotune::emulator
