// `autotune explain`: one config's resources term by term, what it breaks, and what would fit.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/config_choice.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/explanation.h"
#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "kernels/problem.h"
#include "kernels/stages.h"
#include "kernels/verdict.h"
#include "search/check.h"
#include "search/plan.h"
#include "search/request.h"

namespace autotune::cli {
namespace {

struct Explained {
  Config config;
  io::ExplainJson json;
};

// `text` empty: the default. `label`: what stands before the verdict where nothing else does.
Expected<Explained> explain_one(const std::string& text, const Problem& problem,
                                const std::string& label, const DeviceSpec& device,
                                const search::Space& space, const search::Limits& limits,
                                Output& output) {
  // A config is explained also where nothing fits; then there is no nearest one to name.
  const auto plan = search::make_plan(problem, device, space, limits);
  if (!plan && (plan.error().code != ErrorCode::nothing_fits || text.empty())) {
    return tl::unexpected(plan.error());
  }
  const search::Plan* found = plan ? &*plan : nullptr;
  const auto config = text.empty()
                          ? Expected<Config>(found->default_config().config)
                          : choose_config("--config", text, *find_family(problem.family), found);
  if (!config) return tl::unexpected(config.error());
  const KernelTraits traits = traits_of(problem);
  std::string refusal = config->kernel->unsupported(traits, device);
  if (refusal.empty()) refusal = search::short_of_k(*config->kernel, traits, problem.k);
  if (!refusal.empty()) {
    return fail(ErrorCode::nothing_fits,
                fmt::format("{} cannot run {} on {}: {}", config->kernel->name(), describe(problem),
                            device.name, refusal));
  }
  const Explanation e = explain(*config, problem, device, limits, found);
  output.text(fmt::format("{}\non {}{} for {}\n", to_string(e.config), e.device.name,
                          caps_text(limits), titled(problem)));
  output.text(parameters_text(e.config));
  output.text(resources_text(e));
  output.text("\n");
  output.result((output.quiet() ? label : "") + verdicts_text(e));
  output.text(time_text(e));
  output.text(nearest_text(e));
  return Explained{e.config, json_of(e)};
}

// What is to be explained of each stage: the parts of a joined config; one alone is the first's.
std::vector<std::string> parts_of(const std::string& config, std::size_t stages) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= config.size();) {
    const std::size_t joint = std::min(config.find(kJoint, begin), config.size());
    parts.push_back(config.substr(begin, joint - begin));
    begin = joint + kJoint.size();
  }
  if (config.empty()) parts.resize(stages);
  return parts;
}

Expected<int> run(const Options& options, Output& output) {
  if (options.family.empty()) {
    return fail(ErrorCode::bad_input, fmt::format("name a kernel family ({})", family_names()));
  }
  const auto request = read_request(options, output);
  if (!request) return tl::unexpected(request.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());
  auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  drop_idle_cap(*limits, device->spec);
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  const Problem& problem = request->problems.front();
  const std::vector<std::string> parts = parts_of(options.config, stage_count(problem));
  if (parts.size() > stage_count(problem)) {
    return fail(ErrorCode::bad_input,
                fmt::format("--config: {} configs for a problem that takes {}", parts.size(),
                            counted(static_cast<std::int64_t>(stage_count(problem)), "kernel")));
  }
  if (!options.config.empty() && std::find(parts.begin(), parts.end(), "") != parts.end()) {
    return fail(ErrorCode::bad_input,
                fmt::format("--config: '{}' leaves one of its configs empty", options.config));
  }

  if (parts.size() < stage_count(problem)) {
    output.warn(fmt::format("--config is of the first kernel alone; '{} + CONFIG' explains {} too",
                            options.config, titled(stage_of(problem, parts.size()))));
  }

  io::ExplainStagesJson document;
  std::vector<Config> configs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Problem stage = stage_of(problem, i);
    if (i > 0) output.text("\n");
    const auto explained =
        explain_one(parts[i], stage, stage_label(stage, stage_count(problem)), device->spec,
                    *io::space_for(stage.family, &*space), *limits, output);
    if (!explained) return tl::unexpected(explained.error());
    document.stages.push_back(explained->json);
    configs.push_back(explained->config);
  }
  bool fits = std::all_of(document.stages.begin(), document.stages.end(),
                          [](const io::ExplainJson& each) { return each.fits; });
  if (configs.size() > 1) {
    const auto verdict =
        search::check_memory(join(configs[0], configs[1]), problem, device->spec, *limits);
    if (verdict) {
      document.together = describe(*verdict, device->spec);
      output.result(fmt::format("{}{}: does not fit:\n  {}\n", output.quiet() ? "" : "\n",
                                describe(problem), document.together));
    }
    fits = fits && !verdict;
  }
  const auto done =
      stage_count(problem) == 1 ? output.json(document.stages.front()) : output.json(document);
  if (!done) return tl::unexpected(done.error());
  return fits ? kExitDone : kExitNothingFits;
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
