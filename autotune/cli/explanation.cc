#include "autotune/cli/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "autotune/cli/plan_text.h"
#include "autotune/cli/request.h"
#include "kernels/problem.h"
#include "search/check.h"
#include "search/occupancy.h"

namespace autotune::cli {
namespace {

std::vector<io::TermJson> terms_json(const std::vector<Term>& terms) {
  std::vector<io::TermJson> rows;
  for (const Term& term : terms) rows.push_back({term.label, term.expression, term.value});
  return rows;
}

std::string rule_key(const Verdict& verdict, const Config& config) {
  std::string key(to_string(verdict.rule));
  if (verdict.rule == Rule::structure && verdict.constraint >= 0) {
    const auto index = static_cast<std::size_t>(verdict.constraint);
    key += fmt::format(":{}", config.kernel->constraints()[index].name);
  }
  return key;
}

// Of configs that launch the very same work a plan keeps one; nullopt where that is this one.
std::optional<Config> same_launch_in(const search::Plan& plan, const Config& config) {
  for (const search::Candidate& each : plan.survivors) {
    if (each.config == config) return std::nullopt;
    if (search::same_launch(each.config, config, plan.problem)) return each.config;
  }
  return std::nullopt;
}

}  // namespace

bool Explanation::fits() const {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& verdict) { return is_quality(verdict.rule); });
}

Explanation explain(const Config& config, const Problem& problem, const DeviceSpec& device,
                    const search::Limits& limits, const search::Plan* plan) {
  const KernelTraits traits = traits_of(problem);
  const HostTwin& kernel = *config.kernel;
  Explanation result{device, problem, limits, config};
  result.resources = search::resources_of(config, problem, device, limits);
  result.smem_terms = kernel.smem_terms(config, traits);
  result.thread_terms = kernel.thread_terms(config);
  result.register_terms = kernel.register_terms(config, traits);
  result.verdicts = search::check_all(config, problem, device, limits);
  result.blocks_per_sm = blocks_of(result.resources, device);
  if (result.fits()) {
    result.time_terms =
        search::predict_terms(config, problem, device, result.resources, limits.max_sms);
    result.predicted_us =
        search::predict_us(config, problem, device, result.resources, limits.max_sms);
  }
  if (plan == nullptr) return result;
  if (result.verdicts.empty()) {
    result.tried_instead = same_launch_in(*plan, config);
  } else {
    result.nearest = search::nearest_that_fits(config, *plan);
  }
  return result;
}

io::ExplainJson json_of(const Explanation& e) {
  io::ExplainJson json;
  json.device = e.device.name;
  json.caps = caps_json(e.limits);
  json.problem = e.problem;
  json.config = to_string(e.config);
  json.fits = e.fits();
  json.smem_bytes = smem_of(e.resources);
  json.static_smem_bytes = e.resources.static_smem_bytes;
  json.threads = e.resources.threads;
  json.registers = e.resources.registers;
  json.register_demand = e.resources.register_demand;
  json.barriers = e.resources.barriers;
  json.cluster = e.resources.cluster;
  json.blocks_per_sm = e.blocks_per_sm;
  json.grid = e.resources.grid;
  json.cooperative = e.resources.cooperative;
  json.workspace_bytes = e.resources.workspace_bytes;
  json.smem_terms = terms_json(e.smem_terms);
  json.thread_terms = terms_json(e.thread_terms);
  json.register_terms = terms_json(e.register_terms);
  for (const Verdict& verdict : e.verdicts) {
    json.verdicts.push_back({rule_key(verdict, e.config), verdict.required, verdict.limit,
                             search::describe(verdict, e.config, e.device)});
  }
  if (e.tried_instead) json.tried_instead = to_string(*e.tried_instead);
  json.predicted_us = e.predicted_us;
  for (const search::TimeTerm& term : e.time_terms)
    json.time_terms.push_back({term.label, term.us});
  if (e.nearest) {
    json.nearest = to_string(e.nearest->config);
    json.nearest_predicted_us = e.nearest->predicted_us;
  }
  return json;
}

}  // namespace autotune::cli
