// Speed of generating and pruning on one core: every config of every built-in space for a problem
// of each dtype, through the same calls that a plan makes; a whole plan; the default config alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "autotune/io/builtin.h"
#include "search/request.h"

namespace {

using namespace autotune;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int run(const DeviceSpec& device, const Problem& problem) {
  const search::Space* space = io::default_space(problem.family);
  const search::Limits limits;
  const auto request = search::make_request(problem, device, *space, limits);
  if (!request) {
    fmt::print(stderr, "{}\n", request.error().message);
    return 1;
  }
  constexpr int kRuns = 7;
  std::int64_t generated = 0;
  std::int64_t survivors = 0;
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    generated = survivors = 0;
    best = std::min(best, seconds_of([&] {
                      search::for_each_checked(*request, [&](const search::CheckedCode& code) {
                        generated += code.configs;
                        survivors += code.verdict ? 0 : code.configs;
                      });
                    }));
  }
  double plan = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    plan = std::min(plan, seconds_of([&] { (void)search::make_plan(*request); }));
  }
  double choice = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    choice = std::min(choice, seconds_of([&] { (void)search::default_candidate(*request); }));
  }
  fmt::print(
      "{:<28} {:>8} configs {:>7} survivors  prune {:>11.0f} configs/s  whole plan {:>7.1f} ms  "
      "default {:>6.2f} ms\n",
      describe(request->problem), generated, survivors, static_cast<double>(generated) / best,
      plan * 1e3, choice * 1e3);
  return 0;
}

}  // namespace

int main() {
  const DeviceSpec* device = io::find_device("nvidia-h200");
  int status = 0;
  for (const DType dtype : {DType::bf16, DType::tf32, DType::fp32}) {
    Problem problem;
    problem.m = problem.n = problem.k = 4096;
    problem.dtype = dtype;
    problem.out_dtype = default_out_dtype(dtype);
    status |= run(*device, problem);
  }
  return status;
}
