#include "autotune/gpu/operands.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/problem.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

constexpr unsigned char kPoison = 0xff;
// On either side of the output: more than a stray tile row of any kernel, less than it costs to
// check.
constexpr std::int64_t kGuardBytes = 256 * 1024;
// Of spread(): what all places may take together.
constexpr std::int64_t kPlacesBytes = 1 << 30;
constexpr std::int64_t kMostPlaces = 16;
// Where in a page they may begin.
constexpr std::size_t kPageBytes = 2 << 20;
constexpr std::size_t kGrainBytes = 512;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t a_bytes(const Problem& p) {
  return (a_is_k_major(p.layout) ? p.m : p.k) * p.lda * storage_bytes(p.dtype);
}
// Of one matrix of weights.
std::int64_t b_bytes(const Problem& p) {
  return (b_is_k_major(p.layout) ? p.n : p.k) * p.ldb * storage_bytes(p.dtype);
}
// From the first matrix of weights to the second: one behind the other, where rows permit it.
std::int64_t up_offset(const Problem& p) { return round_up(b_bytes(p), 16); }
std::int64_t weights_bytes(const Problem& p) {
  return b_bytes(p) + (has_activation(p) ? up_offset(p) : 0);
}
// Of the weights of the second stage.
std::int64_t down_bytes(const Problem& p) {
  return is_mlp(p) ? p.n * p.k * storage_bytes(p.dtype) : 0;
}
std::int64_t intermediate_bytes(const Problem& p) {
  return is_mlp(p) ? p.m * p.n * storage_bytes(default_out_dtype(p.dtype)) : 0;
}
std::int64_t columns(const Problem& p) {
  return stage_of(p, stage_count(p) - 1).n;
}  // of the output
std::int64_t c_bytes(const Problem& p) { return p.m * p.ldc * storage_bytes(p.out_dtype); }
std::int64_t reference_bytes(const Problem& p) {
  return p.m * columns(p) * storage_bytes(p.out_dtype);
}

Matrix matrix_a(const Problem& p, DeviceAddress address) {
  const bool k_major = a_is_k_major(p.layout);
  return {address, p.dtype, p.m, p.k, k_major ? p.lda : 1, k_major ? 1 : p.lda};
}
Matrix matrix_b(const Problem& p, DeviceAddress address) {
  const bool k_major = b_is_k_major(p.layout);
  return {address, p.dtype, p.k, p.n, k_major ? 1 : p.ldb, k_major ? p.ldb : 1};
}
Matrix matrix_c(const Problem& p, DeviceAddress address, std::int64_t row_stride) {
  return {address, p.out_dtype, p.m, columns(p), row_stride, 1};
}

// One thing after another; the first failure stops the rest.
struct Steps {
  Expected<void> state;
  template <class Step>
  Steps& then(Step step) {
    if (state) state = step();
    return *this;
  }
  Steps& allocate(DeviceMemory& memory, std::int64_t bytes) {  // nothing for 0
    return then([&]() -> Expected<void> {
      if (bytes == 0) return {};
      auto made = DeviceMemory::allocate(static_cast<std::size_t>(bytes));
      if (!made) return tl::unexpected(made.error());
      memory = std::move(*made);
      return {};
    });
  }
};

}  // namespace

std::int64_t Operands::bytes_for(const Problem& p) {
  const std::int64_t output = round_up(c_bytes(p), 256) + 2 * kGuardBytes;
  return a_bytes(p) + weights_bytes(p) + down_bytes(p) + output + reference_bytes(p) +
         intermediate_bytes(p) + (p.beta != 0 ? c_bytes(p) : 0);
}

Expected<Operands> Operands::create(Workbench& bench, const Problem& p, std::uint64_t seed) {
  Operands made;
  made.problem_ = p;
  made.seed_ = seed;
  made.bounds_ = bounds_for(p);
  const bool reads_c = p.beta != 0;
  // Seeds of the operands: any distinct ones will do.
  const std::uint64_t key = seed * 4;
  const double scale = 1.0 / std::sqrt(static_cast<double>(p.k));

  Steps steps;
  steps.allocate(made.first_.a.memory, a_bytes(p))
      .allocate(made.first_.b.memory, weights_bytes(p))
      .allocate(made.first_.down.memory, down_bytes(p))
      .allocate(made.first_.c.memory, round_up(c_bytes(p), 256) + 2 * kGuardBytes)
      .allocate(made.reference_, reference_bytes(p));
  if (reads_c) steps.allocate(made.pristine_, c_bytes(p));
  steps
      .then(
          [&] { return bench.fill_bytes(made.first_.a.address(), kPoison, made.first_.a.bytes()); })
      .then(
          [&] { return bench.fill_bytes(made.first_.b.address(), kPoison, made.first_.b.bytes()); })
      .then([&] { return bench.fill_normal(matrix_a(p, made.first_.a.address()), 1.0, key); })
      .then(
          [&] { return bench.fill_normal(matrix_b(p, made.first_.b.address()), scale, key + 1); });
  if (has_activation(p)) {
    steps.then([&] { return bench.fill_normal(matrix_b(p, made.pointers().up), scale, key + 3); });
  }
  if (is_mlp(p)) {
    const double down_scale = 1.0 / std::sqrt(static_cast<double>(p.n));
    steps.then([&] {
      return bench.fill_normal(matrix_b(stage_of(p, 1), made.first_.down.address()), down_scale,
                               key + 2);
    });
  }
  if (reads_c) {
    const DeviceAddress address = made.pristine_.address();
    steps.then([&] { return bench.fill_bytes(address, kPoison, made.pristine_.bytes()); })
        .then([&] { return bench.fill_normal(matrix_c(p, address, p.ldc), 1.0, key + 2); });
  }
  steps.then([&] { return made.compute_reference(bench); });
  steps.then([&]() -> Expected<void> {
    auto sums = bench.compare(matrix_c(p, 0, columns(p)), made.reference_.address(), 1, 1);
    if (!sums) return tl::unexpected(sums.error());
    const double elements = static_cast<double>(p.m) * static_cast<double>(columns(p));
    made.reference_rms_ = sums->reference_norm / std::sqrt(elements);
    return {};
  });
  if (!steps.state) return tl::unexpected(steps.state.error());
  return made;
}

// Stage by stage, each rounded as it is stored.
Expected<void> Operands::compute_reference(Workbench& bench) const {
  DeviceMemory intermediate;
  Steps steps;
  steps.allocate(intermediate, intermediate_bytes(problem_));
  const StageWorkspace where{};
  DevicePointers at = pointers();
  at.workspace = intermediate.address();
  at.c = reference_.address();
  for (std::size_t i = 0; i < stage_count(problem_); ++i) {
    const Problem stage = stage_of(problem_, i);
    const DevicePointers own = stage_pointers(problem_, i, at, where);
    steps.then([&] {
      return bench.reference({matrix_a(stage, own.a), matrix_b(stage, own.b),
                              matrix_c(stage, pristine_.address(), stage.ldc),
                              matrix_c(stage, own.c, stage.n), stage.alpha, stage.beta, own.up,
                              is_gated(stage) ? std::optional(stage.activation) : std::nullopt});
    });
  }
  // The intermediate goes when it has been read.
  return steps.then([&] { return bench.synchronize(); }).state;
}

bool Operands::serve(const Problem& checked, std::uint64_t seed) const {
  Problem same = checked;
  same.mode = problem_.mode;
  return same == problem_ && seed == seed_;
}

Matrix Operands::output() const {
  return matrix_c(problem_, first_.c.address() + kGuardBytes, problem_.ldc);
}

DevicePointers Operands::pointers(std::size_t place) const {
  const Place& at = place == 0 ? first_ : others_[place - 1];
  const std::uint64_t up = has_activation(problem_)
                               ? at.b.address() + static_cast<std::uint64_t>(up_offset(problem_))
                               : 0;
  return {at.a.address(),   at.b.address(), at.c.address() + kGuardBytes, workspace_.address(), up,
          at.down.address()};
}

DevicePointers Operands::moved(const DevicePointers& first, std::size_t place) const {
  const DevicePointers from = pointers();
  const DevicePointers to = pointers(place);
  constexpr std::array kOperands{&DevicePointers::a, &DevicePointers::b, &DevicePointers::c,
                                 &DevicePointers::up, &DevicePointers::down};
  DevicePointers moved = first;
  for (const auto pointer : kOperands) {
    for (const auto operand : kOperands) {
      if (first.*pointer == from.*operand) moved.*pointer = to.*operand;
    }
  }
  return moved;
}

Expected<Operands::Place> Operands::copy(Workbench& bench, std::mt19937_64& random) const {
  Place made;
  Steps steps;
  for (Piece Place::*part : {&Place::a, &Place::b, &Place::down, &Place::c}) {
    const Piece& from = first_.*part;
    Piece& to = made.*part;
    if (from.bytes() == 0) continue;
    to.skipped = random() % (kPageBytes / kGrainBytes) * kGrainBytes;
    steps.allocate(to.memory, static_cast<std::int64_t>(to.skipped + from.bytes()));
    steps.then([&] { return bench.copy(to.address(), from.address(), from.bytes()); });
  }
  if (!steps.state) return tl::unexpected(steps.state.error());
  return made;
}

void Operands::spread(Workbench& bench) {
  const std::int64_t each = a_bytes(problem_) + weights_bytes(problem_) + down_bytes(problem_) +
                            static_cast<std::int64_t>(first_.c.bytes());
  const std::int64_t wanted = std::clamp<std::int64_t>(kPlacesBytes / each, 1, kMostPlaces);
  // What stays free is for a baseline's products and workspace.
  std::mt19937_64 random(places());  // the same places in every process
  while (static_cast<std::int64_t>(places()) < wanted && bench.free_bytes() > 2 * kPlacesBytes) {
    auto made = copy(bench, random);
    if (!made) return;
    others_.push_back(std::move(*made));
  }
}

Expected<void> Operands::reserve_workspace(Workbench& bench, std::int64_t bytes) {
  if (bytes <= static_cast<std::int64_t>(workspace_.bytes())) return {};
  workspace_ = DeviceMemory();
  Steps steps;
  steps.allocate(workspace_, std::max(bytes, kWorkspaceMarkBytes));
  if (no_marks_.bytes() == 0) {
    steps.allocate(no_marks_, kWorkspaceMarkBytes).then([&] {
      return bench.fill_bytes(no_marks_.address(), 0, kWorkspaceMarkBytes);
    });
  }
  return steps.then([&] { return bench.fill_bytes(workspace_.address(), 0, kWorkspaceMarkBytes); })
      .state;
}

Expected<void> Operands::poison(Workbench& bench) {
  Steps steps;
  steps.then([&] { return bench.fill_bytes(first_.c.address(), kPoison, first_.c.bytes()); });
  if (workspace_.bytes() > 0) {
    steps.then([&] { return bench.fill_bytes(workspace_.address(), 0, kWorkspaceMarkBytes); })
        .then([&] {
          return bench.fill_bytes(workspace_.address() + kWorkspaceMarkBytes, kPoison,
                                  workspace_.bytes() - kWorkspaceMarkBytes);
        });
  }
  return steps.then([&] { return restore(bench); }).state;
}

Expected<void> Operands::restore(Workbench& bench, std::size_t place) {
  if (problem_.beta == 0) return {};
  return bench.copy(pointers(place).c, pristine_.address(), pristine_.bytes());
}

Expected<Correctness> Operands::verify(Workbench& bench) const {
  auto sums =
      bench.compare(output(), reference_.address(), bounds_.atol * reference_rms_, bounds_.rtol);
  if (!sums) return tl::unexpected(sums.error());
  const std::int64_t element = storage_bytes(problem_.out_dtype);
  const std::int64_t row = problem_.ldc * element;
  const std::int64_t inside = problem_.m * row;
  const auto whole = static_cast<std::int64_t>(first_.c.bytes());
  auto before = bench.count_touched(first_.c.address(), 1, 0, 0, kGuardBytes);
  auto after = bench.count_touched(first_.c.address(), 1, 0, kGuardBytes + inside, whole);
  auto gaps =
      bench.count_touched(output().address, problem_.m, row, columns(problem_) * element, row);
  for (const auto* counted : {&before, &after, &gaps}) {
    if (!*counted) return tl::unexpected(counted->error());
  }

  Expected<std::int64_t> marks = 0;
  if (workspace_.bytes() > 0) {
    marks = bench.count_differences(workspace_.address(), no_marks_.address(), kWorkspaceMarkBytes);
    if (!marks) return tl::unexpected(marks.error());
  }

  Correctness result;
  // A reference of zeros (alpha and beta 0) is met exactly or not at all.
  result.error = sums->reference_norm > 0 ? sums->error_norm / sums->reference_norm
                                          : (sums->error_norm > 0 ? 1.0 : 0.0);
  result.max_ratio = sums->worst_ratio;
  result.complete = sums->bad == 0;
  if (sums->bad > 0) {
    result.what = fmt::format("{} of {} elements are NaN, infinite or were never written",
                              sums->bad, problem_.m * columns(problem_));
  } else if (*before + *after > 0) {
    result.what =
        fmt::format("{} bytes before and {} behind the output were overwritten", *before, *after);
  } else if (*gaps > 0) {
    result.what = fmt::format("{} bytes between the output's rows were overwritten", *gaps);
  } else if (*marks > 0) {
    result.what = "the workspace's marks were not left zero";
  } else if (!(result.error <= bounds_.frobenius)) {
    result.what = fmt::format("relative error {:.2e}, at most {:.2e} is right", result.error,
                              bounds_.frobenius);
  } else if (!(result.max_ratio <= 1)) {
    result.what = fmt::format("one element is off by {:.1f} times its bound", result.max_ratio);
  }
  result.ok = result.what.empty();
  return result;
}

}  // namespace autotune::gpu
