#include "test/emulated/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "autotune/gpu/nvrtc.h"
#include "test/emulator/emulator.h"
#include "test/emulator/numbers.h"
#include "test/support/activations.h"

namespace autotune::test {

namespace {

// A matrix as a kernel finds it: its first byte aligned as an allocation is, its last one the last
// that may be read, NaN between its lines.
class Stored {
 public:
  Stored(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
         std::int64_t leading, bool along_columns, DType dtype)
      : element_(static_cast<std::size_t>(storage_bytes(dtype))), dtype_(dtype) {
    const std::int64_t lines = along_columns ? rows : columns;
    const std::int64_t length = along_columns ? columns : rows;
    bytes_ = static_cast<std::size_t>((lines - 1) * leading + length) * element_;
    memory_.assign(bytes_ + kAlignment, kUntouched);
    const auto address = reinterpret_cast<std::uint64_t>(memory_.data());
    begin_ = memory_.data() + (kAlignment - address % kAlignment) % kAlignment;
    row_ = along_columns ? leading : 1;
    column_ = along_columns ? 1 : leading;
    for (std::int64_t row = 0; row < rows && !values.empty(); ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::uint32_t bits =
            encode(values[static_cast<std::size_t>(row * columns + column)], dtype);
        std::memcpy(at(row, column), &bits, element_);
      }
    }
  }

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(begin_); }
  void give_to(emulator::GlobalMemory& memory, emulator::GlobalMemory::Use use) const {
    memory.add(address(), bytes_, use);
  }
  float value(std::int64_t row, std::int64_t column) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at(row, column), element_);
    if (dtype_ == DType::bf16) return emulator::from_bf16(static_cast<std::uint16_t>(bits));
    if (dtype_ == DType::fp16) return emulator::from_fp16(static_cast<std::uint16_t>(bits));
    return std::bit_cast<float>(bits);
  }

  bool untouched(std::int64_t row, std::int64_t column) const {
    return std::all_of(at(row, column), at(row, column) + element_,
                       [](std::byte each) { return each == kUntouched; });
  }

  static std::uint32_t encode(float value, DType dtype) {
    if (dtype == DType::bf16) return emulator::to_bf16(value);
    if (dtype == DType::fp16) return emulator::to_fp16(value);
    return std::bit_cast<std::uint32_t>(value);
  }

 private:
  static constexpr std::size_t kAlignment = 256;  // of cudaMalloc
  static constexpr std::byte kUntouched{0xff};    // NaN in every type
  std::byte* at(std::int64_t row, std::int64_t column) const {
    return begin_ + static_cast<std::size_t>(row * row_ + column * column_) * element_;
  }

  std::size_t element_;
  DType dtype_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
  std::int64_t row_;
  std::int64_t column_;
};

// PTX with that entry and no other.
std::string alone(std::string_view text, std::string_view entry) {
  constexpr std::string_view kEntry = ".visible .entry ";
  const std::size_t first = text.find(kEntry);
  const std::size_t begin = text.find(std::string(kEntry) + std::string(entry) + "(");
  if (begin == std::string_view::npos) throw emulator::Fault("no entry " + std::string(entry));
  const std::size_t end = std::min(text.find(kEntry, begin + 1), text.size());
  return std::string(text.substr(0, first)) + std::string(text.substr(begin, end - begin));
}

// A value as the type would store it.
float rounded(float value, DType dtype) {
  if (dtype == DType::bf16) return emulator::from_bf16(emulator::to_bf16(value));
  if (dtype == DType::fp16) return emulator::from_fp16(emulator::to_fp16(value));
  return value;
}

}  // namespace

emulator::Program program_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                             const std::vector<Replaced>& replaced) {
  std::string source(config.kernel->source().text);
  for (const Replaced& each : replaced) {
    const std::size_t at = source.find(each.from);
    if (at == std::string::npos || source.find(each.from, at + 1) != std::string::npos) {
      throw emulator::Fault("the source does not have once: " + each.from);
    }
    source.replace(at, each.from.size(), each.to);
  }
  const auto definitions = config.kernel->definitions(config, traits_of(problem), device);
  const auto compiler = gpu::nvrtc();
  if (!compiler) throw emulator::Fault(compiler.error().message);
  const auto text =
      (*compiler)->ptx({source, config.kernel->entry(), device.limits.arch, definitions});
  if (!text) throw emulator::Fault(text.error().message);
  return emulator::parse_ptx(alone(*text, config.kernel->entry()));
}

std::vector<float> emulate(const emulator::Program& program, const Config& config,
                           const Problem& problem, const DeviceSpec& device,
                           const GivenMatrices& given, std::uint64_t seed, int max_sms) {
  const Link link = seed % 2 == 0 ? Link::behind : Link::none;
  const Problem& p = problem;
  const Stored a(given.a, p.m, p.k, p.lda, a_is_k_major(p.layout), p.dtype);
  const Stored b(given.b, p.k, p.n, p.ldb, !b_is_k_major(p.layout), p.dtype);
  const Stored up(given.up, p.k, p.n, p.ldb, !b_is_k_major(p.layout), p.dtype);
  const Stored c(given.c, p.m, p.n, p.ldc, true, p.out_dtype);
  const std::int64_t needed =
      config.kernel->resources(config, problem, device, max_sms).workspace_bytes;
  const std::int64_t words = std::max(needed, kWorkspaceMarkBytes) / 4;
  const std::int64_t marks = kWorkspaceMarkBytes / 4;
  std::vector<float> zero_then_nan(static_cast<std::size_t>(words), NAN);
  std::fill_n(zero_then_nan.begin(), marks, 0.0F);
  const Stored workspace(zero_then_nan, 1, words, words, true, DType::fp32);

  emulator::GlobalMemory memory;
  using Use = emulator::GlobalMemory::Use;
  a.give_to(memory, Use{.from_launch_ahead = true});
  b.give_to(memory, Use{});
  if (is_gated(p)) up.give_to(memory, Use{});
  c.give_to(memory, Use{.written = true, .from_launch_ahead = true});
  if (needed > 0) workspace.give_to(memory, Use{.written = true, .from_launch_ahead = true});
  const LaunchPlan plan = config.kernel->launch_plan(
      config, problem, device,
      {a.address(), b.address(), c.address(), workspace.address(), up.address(), 0, link}, max_sms);
  emulator::run(program, plan, memory, seed);

  for (std::int64_t mark = 0; mark < marks; ++mark) {
    if (workspace.value(0, mark) != 0) throw emulator::Fault("a mark of the workspace is left");
  }
  std::vector<float> values;
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) values.push_back(c.value(row, column));
    for (std::int64_t gap = p.n; gap < p.ldc && row + 1 < p.m; ++gap) {
      if (!c.untouched(row, gap)) throw emulator::Fault("a gap between lines is written");
    }
  }
  return values;
}

namespace {

// Numbers that take all bits of an fp32, between -8 and 8.
std::vector<float> full_numbers(std::int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value =
        static_cast<float>(static_cast<std::int32_t>(random() % (1u << 25)) - (1 << 24)) * 0x1p-21F;
  }
  return values;
}

}  // namespace

GivenMatrices draw(const Problem& problem, std::uint64_t seed) {
  const Problem& p = problem;
  std::mt19937_64 random(seed);
  const bool full = p.dtype == DType::fp32;
  const auto numbers = [&](std::int64_t count) {
    return full ? full_numbers(count, random) : whole_numbers(count, random);
  };
  GivenMatrices given;
  given.a = numbers(p.m * p.k);
  given.b = numbers(p.k * p.n);
  if (p.beta != 0) given.c = whole_numbers(p.m * p.n, random);
  if (is_gated(p)) {
    for (float& value : given.b) value /= 64;  // gates where activations bend
    if (p.n > 1) given.b.back() = NAN;         // and in the last column none
    given.up = numbers(p.k * p.n);
    return given;
  }
  if (!full) return given;
  // Where parts of an fp32 do not hold all of it: a row of tiny numbers, which meet large ones in a
  // column, and an infinite one.
  for (std::int64_t i = 0; i < p.k && p.m > 1; ++i) {
    given.a[static_cast<std::size_t>(p.k + i)] *= 0x1p-122F;
    given.b[static_cast<std::size_t>(i * p.n)] *= 0x1p60F;
  }
  if (p.m > 2) given.a[static_cast<std::size_t>(2 * p.k + p.k / 2)] = INFINITY;
  return given;
}

std::string difference(const Problem& problem, const GivenMatrices& given,
                       const std::vector<float>& results) {
  const Sums product = sums_of(problem, given.a, given.b);
  const Sums ups = is_gated(problem) ? sums_of(problem, given.a, given.up) : product;
  constexpr double kLeastFp32 = 0x1p-149;
  // bf16 and fp16: their own rounding and as much again.
  const double small = problem.out_dtype == DType::bf16   ? 1.0 / 64
                       : problem.out_dtype == DType::fp16 ? 1.0 / 512
                                                          : 2e-5;
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < product.sums.size(); ++i) {
    double want = problem.alpha * product.sums[i];
    double permitted = 0;
    if (is_gated(problem)) {
      want = exact_activation(product.sums[i], problem.activation) * ups.sums[i];
      permitted = small * (std::abs(want) + std::abs(ups.sums[i]) / 8);
      if (problem.dtype == DType::fp32) {
        permitted += 2e-6 * (product.sizes[i] + 1) * (ups.sizes[i] + 1);
      }
    } else {
      if (problem.beta != 0) want += problem.beta * given.c[i];
      want = rounded(static_cast<float>(want), problem.out_dtype);
      if (problem.dtype == DType::fp32) {
        permitted = 1e-6 * std::abs(problem.alpha) * product.sizes[i] + kLeastFp32;
      }
    }
    const bool same = results[i] == want || (std::isnan(want) && std::isnan(results[i]));
    const bool close = std::isfinite(want) && std::abs(results[i] - want) <= permitted;
    if (same || close) continue;
    if (wrong++ > 0) continue;
    first = fmt::format("row {}, column {}: {}, not {}", i / static_cast<std::size_t>(problem.n),
                        i % static_cast<std::size_t>(problem.n), results[i], want);
  }
  return wrong == 0 ? "" : fmt::format("{} elements are wrong, the first in {}", wrong, first);
}

}  // namespace autotune::test
