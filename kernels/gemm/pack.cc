#include "kernels/gemm/pack.h"

namespace autotune::gemm {
namespace {

// An operand's rows in memory, and the elements of each.
struct Rows {
  std::int64_t count;
  std::int64_t length;
};
Rows rows_of(bool k_major, std::int64_t extent, std::int64_t k) {
  return k_major ? Rows{extent, k} : Rows{k, extent};
}
Rows rows_of_a(const Problem& p) { return rows_of(a_is_k_major(p.layout), p.m, p.k); }
Rows rows_of_b(const Problem& p) { return rows_of(b_is_k_major(p.layout), p.n, p.k); }

PackedOperand copy_of(const void* from, std::int64_t leading, std::uint64_t to, std::int64_t pitch,
                      const Rows& rows, std::int64_t element) {
  PackedOperand operand{};
  operand.from = from;
  operand.to = reinterpret_cast<void*>(to);
  operand.from_pitch = leading * element;
  operand.to_pitch = pitch * element;
  operand.row_bytes = rows.length * element;
  operand.rows = static_cast<int>(rows.count);
  operand.strips =
      static_cast<int>(ceil_div(operand.row_bytes, std::int64_t{PackedOperand::kStripBytes}));
  operand.of_strips = reciprocal(operand.strips);
  return operand;
}

}  // namespace

Problem packed(const Problem& problem) {
  const auto pitch = [&](std::int64_t leading, const Rows& rows) {
    const std::int64_t line = kL2Line / storage_bytes(problem.dtype);
    const bool loadable = row_alignment(leading, problem.dtype) == 16;
    return loadable ? leading : ceil_div(rows.length, line) * line;
  };
  Problem lies = problem;
  lies.lda = pitch(problem.lda, rows_of_a(problem));
  lies.ldb = pitch(problem.ldb, rows_of_b(problem));
  return lies;
}

std::int64_t packed_bytes(const Problem& given, const Problem& lies) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const auto bytes = [&](std::int64_t leading, std::int64_t pitch, const Rows& rows) {
    if (leading == pitch) return std::int64_t{0};
    const std::int64_t row = pitch * storage_bytes(given.dtype);
    return rows.count > kMost / row ? kMost : rows.count * row;
  };
  return bytes(given.lda, lies.lda, rows_of_a(given)) +
         bytes(given.ldb, lies.ldb, rows_of_b(given));
}

PackArgs pack(const Problem& given, const Problem& lies, std::uint64_t workspace,
              std::int64_t sums_bytes, GemmArgs& args) {
  PackArgs pack{};
  std::uint64_t to = workspace + kWorkspaceMarkBytes;
  pack.mark = reinterpret_cast<unsigned*>(workspace + kTileMarks * sizeof(unsigned));
  to += static_cast<std::uint64_t>(sums_bytes);
  const auto copy = [&](const void*& address, std::int64_t leading, std::int64_t pitch,
                        const Rows& rows, PackedOperand& operand) {
    if (leading == pitch) return;
    operand = copy_of(address, leading, to, pitch, rows, storage_bytes(given.dtype));
    address = operand.to;
    to += static_cast<std::uint64_t>(rows.count * operand.to_pitch);
  };
  copy(args.a, given.lda, lies.lda, rows_of_a(given), pack.a);
  copy(args.b, given.ldb, lies.ldb, rows_of_b(given), pack.b);
  return pack;
}

}  // namespace autotune::gemm
