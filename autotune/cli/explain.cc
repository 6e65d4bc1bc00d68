// `autotune explain`: one config's resources term by term, what it breaks, and what would fit.
#include <fmt/format.h>

#include <string>

#include "autotune/cli/command.h"
#include "autotune/cli/config_choice.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/explanation.h"
#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "kernels/problem.h"
#include "search/plan.h"

namespace autotune::cli {
namespace {

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options);
  if (!request) return tl::unexpected(request.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());
  const auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  const Problem& problem = request->problems.front();

  // A config is explained also where nothing fits; then there is no nearest one to name.
  const auto plan = search::make_plan(problem, device->spec, *space, *limits);
  if (!plan && (plan.error().code != ErrorCode::nothing_fits || options.config.empty())) {
    return tl::unexpected(plan.error());
  }
  const search::Plan* found = plan ? &*plan : nullptr;
  const auto config = options.config.empty()
                          ? Expected<Config>(found->default_config().config)
                          : choose_config("--config", options.config, *request->family, found);
  if (!config) return tl::unexpected(config.error());
  const std::string refusal = config->kernel->unsupported(traits_of(problem), device->spec);
  if (!refusal.empty()) {
    return fail(ErrorCode::nothing_fits,
                fmt::format("{} cannot run {} on {}: {}", config->kernel->name(), describe(problem),
                            device->spec.name, refusal));
  }

  const Explanation e = explain(*config, problem, device->spec, *limits, found);
  output.text(
      fmt::format("{}\non {} for {}\n", to_string(e.config), e.device.name, titled(problem)));
  output.text(parameters_text(e.config));
  output.text(resources_text(e));
  output.text("\n");
  output.result(verdicts_text(e));
  output.text(time_text(e));
  output.text(nearest_text(e));
  if (const auto done = output.json(json_of(e)); !done) return tl::unexpected(done.error());
  return e.fits() ? kExitDone : kExitNothingFits;
}

}  // namespace

const Command kExplainCommand = {
    "explain",
    "Show what one config needs, what it breaks and what would fit",
    "  autotune explain gemm --m 4096 --n 4096 --k 4096 --device nvidia-h200 \\\n"
    "      --config mma:block_m=128,block_n=256\n"
    "  autotune explain gemm --m 100 --n 1524 --k 512 --device 'NVIDIA Thor' --json -",
    kFamily | kProblem | kConfig | kDevice | kSpace | kMaxSms | kOutput,
    run,
};

}  // namespace autotune::cli
