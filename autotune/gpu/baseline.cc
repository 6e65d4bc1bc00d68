#include "autotune/gpu/baseline.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "autotune/gpu/cublas_product.h"
#include "autotune/gpu/statistics.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

constexpr std::size_t kProbes = 5;

// A way to compute the problem, or its first stage, by products of one shape, one after the other.
struct Form {
  CublasProduct product;
  std::vector<DevicePointers> launches;
  const char* behind = "";  // in the name: what becomes of the products
  // Where there is an activation: where the products of the first weights lie, and of the second.
  Matrix gate{};
  DeviceAddress up = 0;
};

struct Candidate {
  std::string name;
  std::size_t form = 0;
  int heuristic = -1;  // -1: cublasGemmEx
  double us = 0;
  Correctness result;
};

}  // namespace

struct Baseline::Impl {
  Workbench& bench;
  Problem problem;
  TimingMode mode;
  CublasHandles handles;
  Matrix gated;               // where the elementwise kernel writes
  DeviceMemory products;      // before the gate
  DeviceMemory intermediate;  // of an MLP
  // Of an MLP, from the intermediate to the output, and the candidate for it.
  std::optional<CublasProduct> down;
  DevicePointers down_at;
  int down_heuristic = -1;
  std::vector<Form> forms;
  Candidate chosen;
  int timed = 0;

  Expected<void> add_form(const Problem& product, std::vector<DevicePointers> launches,
                          const char* behind);
  Expected<void> add_gated_forms(const Problem& gate, const DevicePointers& at);
  Expected<void> add_mlp(Timer& timer, const DevicePointers& at);
  Expected<void> run(const Candidate& candidate, void* stream) const;
  Expected<void> try_candidate(Timer& timer, Operands& operands, Candidate candidate);
};

Expected<void> Baseline::Impl::add_form(const Problem& product,
                                        std::vector<DevicePointers> launches, const char* behind) {
  auto made = CublasProduct::create(handles, product);
  if (!made) return tl::unexpected(made.error());
  forms.push_back({std::move(*made), std::move(launches), behind, {}, 0});
  return {};
}

// Both products one after the other, or, where the weights lie one behind the other along n, as one
// of twice the columns. Then an elementwise kernel.
Expected<void> Baseline::Impl::add_gated_forms(const Problem& problem, const DevicePointers& at) {
  gated = {at.c, problem.out_dtype, problem.m, problem.n, problem.ldc, 1};
  const std::int64_t element = storage_bytes(problem.out_dtype);
  const std::int64_t one = (problem.m * problem.n * element + 255) / 256 * 256;
  auto memory = DeviceMemory::allocate(static_cast<std::size_t>(2 * one));
  if (!memory) return tl::unexpected(memory.error());
  products = std::move(*memory);
  const DeviceAddress first = products.address();
  const DeviceAddress second = first + static_cast<std::uint64_t>(one);

  Problem each = problem;
  each.ldc = each.n;
  auto state = add_form(each, {{at.a, at.b, first, 0}, {at.a, at.up, second, 0}},
                        " twice + elementwise kernel");
  if (!state) return state;
  forms.back().gate = {first, problem.out_dtype, problem.m, problem.n, problem.n, 1};
  forms.back().up = second;

  const std::int64_t row_bytes = problem.ldb * storage_bytes(problem.dtype);
  const bool adjacent = b_is_k_major(problem.layout) &&
                        at.up == at.b + static_cast<std::uint64_t>(problem.n * row_bytes) &&
                        2 * problem.n <= std::numeric_limits<std::int32_t>::max();
  if (!adjacent) return {};
  Problem both = problem;
  both.n = both.ldc = 2 * problem.n;
  state = add_form(both, {{at.a, at.b, first, 0}}, " of 2n columns + elementwise kernel");
  if (!state) return state;
  forms.back().gate = {first, problem.out_dtype, problem.m, problem.n, both.ldc, 1};
  forms.back().up = first + static_cast<std::uint64_t>(problem.n * element);
  return {};
}

// Both products into an intermediate, and from there the fastest product down, found by itself.
Expected<void> Baseline::Impl::add_mlp(Timer& timer, const DevicePointers& at) {
  const Problem first = stage_of(problem, 0);
  const Problem second = stage_of(problem, 1);
  const std::int64_t bytes = first.m * first.ldc * storage_bytes(first.out_dtype);
  auto memory = DeviceMemory::allocate(static_cast<std::size_t>(bytes));
  if (!memory) return tl::unexpected(memory.error());
  intermediate = std::move(*memory);
  DevicePointers gate_at = at;
  gate_at.c = intermediate.address();
  auto state = add_gated_forms(first, gate_at);
  if (!state) return state;
  // Numbers like those that will be there.
  state = bench.fill_normal(
      {intermediate.address(), first.out_dtype, first.m, first.n, first.ldc, 1}, 1.0, 0);
  if (!state) return state;

  down_at = {intermediate.address(), at.down, at.c, 0, 0, 0};
  auto product = CublasProduct::create(handles, second);
  if (!product) return tl::unexpected(product.error());
  down.emplace(std::move(*product));
  double best_us = 0;
  for (int i = -1; i < down->heuristics(); ++i) {
    const Subject subject{
        [this, i](void* stream) { return down->run(handles, i, down_at, stream); }, {}, nullptr, 1};
    if (!subject.launch(bench.stream())) {
      if (auto alive = bench.synchronize(); !alive) return alive;
      continue;
    }
    std::array<const Subject*, kProbes> order{};
    order.fill(&subject);
    const auto times = timer.sample(order);
    if (!times && bench.lost()) return tl::unexpected(times.error());
    if (!times) continue;
    const double us = median(*times);
    if (best_us == 0 || us < best_us) {
      best_us = us;
      down_heuristic = i;
    }
  }
  return {};
}

Expected<void> Baseline::Impl::run(const Candidate& candidate, void* stream) const {
  const Form& form = forms[candidate.form];
  for (const DevicePointers& pointers : form.launches) {
    auto state = form.product.run(handles, candidate.heuristic, pointers, stream);
    if (!state) return state;
  }
  if (!has_activation(problem)) return {};
  auto state = bench.gate(form.gate, form.up, gated, problem.activation, stream);
  if (!state || !down) return state;
  return down->run(handles, down_heuristic, down_at, stream);
}

// Takes the candidate as the chosen one where it runs, is right and is faster. Only a lost GPU is
// an error: a candidate that cuBLAS itself refuses is passed over.
Expected<void> Baseline::Impl::try_candidate(Timer& timer, Operands& operands,
                                             Candidate candidate) {
  Subject subject{[this, candidate](void* stream) { return run(candidate, stream); },
                  [&](void*) { return operands.restore(bench); }, nullptr, 1};
  auto state = operands.poison(bench);
  if (!state) return state;
  if (!subject.launch(bench.stream())) return bench.synchronize();
  auto result = operands.verify(bench);
  if (!result) return tl::unexpected(result.error());
  candidate.result = *result;
  const bool exact = problem.dtype != DType::fp32 || result->ok;
  if (!exact || !result->complete) return {};

  if (mode == TimingMode::hot) {
    auto hot = timer.make_hot(subject);
    if (!hot) return bench.lost() ? Expected<void>(tl::unexpected(hot.error())) : Expected<void>{};
    subject = std::move(*hot);
  }
  std::array<const Subject*, kProbes> order{};
  order.fill(&subject);
  auto times = timer.sample(order);
  if (!times) {
    return bench.lost() ? Expected<void>(tl::unexpected(times.error())) : Expected<void>{};
  }
  ++timed;
  candidate.us = median(*times);
  if (chosen.name.empty() || candidate.us < chosen.us) chosen = std::move(candidate);
  return {};
}

Expected<Baseline> Baseline::choose(Workbench& bench, Timer& timer, Operands& operands,
                                    TimingMode mode) {
  auto handles = CublasHandles::create(bench.stream());
  if (!handles) return tl::unexpected(handles.error());
  auto impl = std::unique_ptr<Impl>(new Impl{bench, operands.problem(), mode, std::move(*handles)});
  const DevicePointers at = operands.pointers();
  const Problem& problem = impl->problem;
  auto state = is_mlp(problem)     ? impl->add_mlp(timer, at)
               : is_gated(problem) ? impl->add_gated_forms(problem, at)
                                   : impl->add_form(problem, {at}, "");
  if (!state) return tl::unexpected(state.error());

  for (std::size_t form = 0; form < impl->forms.size(); ++form) {
    const int heuristics = impl->forms[form].product.heuristics();
    for (int i = -1; i < heuristics; ++i) {
      std::string name = i < 0 ? "cublasGemmEx" : fmt::format("cublasLt #{}", i);
      name += impl->forms[form].behind;
      if (impl->down) {
        name += impl->down_heuristic < 0 ? " + cublasGemmEx"
                                         : fmt::format(" + cublasLt #{}", impl->down_heuristic);
      }
      state = impl->try_candidate(timer, operands, {std::move(name), form, i, 0, {}});
      if (!state) return tl::unexpected(state.error());
    }
  }
  if (impl->timed == 0) {
    return fail(ErrorCode::failed,
                fmt::format("cuBLAS has nothing that computes {}", describe(operands.problem())));
  }
  return Baseline(std::move(impl));
}

Baseline::Baseline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Baseline::Baseline(Baseline&&) noexcept = default;
Baseline& Baseline::operator=(Baseline&&) noexcept = default;
Baseline::~Baseline() = default;

const std::string& Baseline::name() const { return impl_->chosen.name; }
int Baseline::candidates() const { return impl_->timed; }
const Correctness& Baseline::result() const { return impl_->chosen.result; }

Launch Baseline::launch() const {
  return [impl = impl_.get()](void* stream) { return impl->run(impl->chosen, stream); };
}

}  // namespace autotune::gpu
