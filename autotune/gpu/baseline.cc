#include "autotune/gpu/baseline.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "autotune/gpu/cublas_product.h"
#include "autotune/gpu/fastest.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

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
  Correctness result;
};

// The operands' places in turn.
Expected<Fastest> fastest_of(const Workbench& bench, const Baseline::Sampler& sample,
                             const std::vector<Subject>& subjects, std::size_t places) {
  std::vector<std::size_t> launched(subjects.size(), 0);
  Ways ways;
  ways.count = subjects.size();
  for (const Subject& subject : subjects) ways.runs = std::max(ways.runs, subject.runs);
  ways.sample = [&](std::span<const std::size_t> some) {
    std::vector<Turn> order;
    for (const std::size_t i : some) order.push_back({&subjects[i], launched[i]++ % places});
    return sample(order);
  };
  ways.lost = [&] { return bench.lost(); };
  return choose_fastest(ways);
}

}  // namespace

struct Baseline::Impl {
  Workbench& bench;
  Operands& operands;
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
  std::vector<Candidate> candidates;
  std::vector<Subject> subjects;  // of the candidates
  std::vector<Way> ways;
  std::size_t timed = 0;

  Expected<void> add_form(const Problem& product, std::vector<DevicePointers> launches,
                          const char* behind);
  Expected<void> add_gated_forms(const Problem& gate, const DevicePointers& at);
  Expected<void> add_mlp(Timer& timer, const Sampler& sample, const DevicePointers& at);
  Expected<std::optional<Subject>> in_mode(Timer& timer, Subject subject) const;
  Expected<void> run(const Candidate& candidate, void* stream, std::size_t place) const;
  Expected<void> add_candidate(Timer& timer, Candidate candidate);
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

// None where it cannot be timed so; only a lost GPU is an error.
Expected<std::optional<Subject>> Baseline::Impl::in_mode(Timer& timer, Subject subject) const {
  if (mode != TimingMode::hot) return subject;
  auto hot = timer.make_hot(subject);
  if (hot) return std::move(*hot);
  if (bench.lost()) return tl::unexpected(hot.error());
  return std::nullopt;
}

// Both products into an intermediate, and from there the fastest product down, found by itself.
Expected<void> Baseline::Impl::add_mlp(Timer& timer, const Sampler& sample,
                                       const DevicePointers& at) {
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
  std::vector<int> heuristics;
  std::vector<Subject> ways;
  for (int i = -1; i < down->heuristics(); ++i) {
    Subject way{[this, i](void* stream, std::size_t place) {
                  return down->run(handles, i, operands.moved(down_at, place), stream);
                },
                {},
                nullptr,
                1};
    if (!way.launch(bench.stream(), 0)) {
      if (auto alive = bench.synchronize(); !alive) return alive;
      continue;
    }
    auto ready = in_mode(timer, std::move(way));
    if (!ready) return tl::unexpected(ready.error());
    if (!*ready) continue;
    heuristics.push_back(i);
    ways.push_back(std::move(**ready));
  }
  const auto fastest = fastest_of(bench, sample, ways, operands.places());
  if (!fastest) return tl::unexpected(fastest.error());
  if (fastest->timed > 0) down_heuristic = heuristics[fastest->level.front()];
  return {};
}

Expected<void> Baseline::Impl::run(const Candidate& candidate, void* stream,
                                   std::size_t place) const {
  const Form& form = forms[candidate.form];
  for (const DevicePointers& pointers : form.launches) {
    auto state =
        form.product.run(handles, candidate.heuristic, operands.moved(pointers, place), stream);
    if (!state) return state;
  }
  if (!has_activation(problem)) return {};
  Matrix out = gated;
  out.address = operands.moved({0, 0, out.address}, place).c;
  auto state = bench.gate(form.gate, form.up, out, problem.activation, stream);
  if (!state || !down) return state;
  return down->run(handles, down_heuristic, operands.moved(down_at, place), stream);
}

// Where it runs and is right. Only a lost GPU is an error: a candidate that cuBLAS itself refuses
// is passed over.
Expected<void> Baseline::Impl::add_candidate(Timer& timer, Candidate candidate) {
  Subject subject{
      [this, candidate](void* stream, std::size_t place) { return run(candidate, stream, place); },
      [this](void*, std::size_t place) { return operands.restore(bench, place); }, nullptr, 1};
  auto state = operands.poison(bench);
  if (!state) return state;
  if (!subject.launch(bench.stream(), 0)) return bench.synchronize();
  auto result = operands.verify(bench);
  if (!result) return tl::unexpected(result.error());
  candidate.result = *result;
  const bool exact = problem.dtype != DType::fp32 || result->ok;
  if (!exact || !result->complete) return {};

  auto ready = in_mode(timer, std::move(subject));
  if (!ready) return tl::unexpected(ready.error());
  if (!*ready) return {};
  candidates.push_back(std::move(candidate));
  subjects.push_back(std::move(**ready));
  return {};
}

Expected<Baseline> Baseline::choose(Workbench& bench, Timer& timer, const Sampler& sample,
                                    Operands& operands, TimingMode mode) {
  auto handles = CublasHandles::create(bench.stream());
  if (!handles) return tl::unexpected(handles.error());
  auto impl = std::unique_ptr<Impl>(
      new Impl{bench, operands, operands.problem(), mode, std::move(*handles)});
  const DevicePointers at = operands.pointers();
  const Problem& problem = impl->problem;
  auto state = is_mlp(problem)     ? impl->add_mlp(timer, sample, at)
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
      state = impl->add_candidate(timer, {std::move(name), form, i, {}});
      if (!state) return tl::unexpected(state.error());
    }
  }
  const auto fastest = fastest_of(bench, sample, impl->subjects, operands.places());
  if (!fastest) return tl::unexpected(fastest.error());
  impl->timed = fastest->timed;
  for (const std::size_t place : fastest->level) {
    const Candidate& candidate = impl->candidates[place];
    impl->ways.push_back({candidate.name, candidate.result,
                          [impl = impl.get(), candidate](void* stream, std::size_t place) {
                            return impl->run(candidate, stream, place);
                          }});
  }
  impl->subjects.clear();
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

const std::vector<Baseline::Way>& Baseline::ways() const { return impl_->ways; }
int Baseline::candidates() const { return static_cast<int>(impl_->timed); }

}  // namespace autotune::gpu
