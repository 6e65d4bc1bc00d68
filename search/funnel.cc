#include "search/funnel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace autotune::search {
namespace {

std::string structural_name(const Constraint& constraint) {
  return fmt::format("structure:{}", constraint.name);
}

}  // namespace

std::int64_t& Funnel::structural(const Config& config, std::int16_t constraint) {
  // Configs come kernel by kernel, so the last one is nearly always the right one.
  if (kernels_.empty() || kernels_.back().twin != config.kernel) {
    kernels_.push_back({config.kernel, {}});
    kernels_.back().constraints.resize(config.kernel->constraints().size());
  }
  return kernels_.back().constraints[static_cast<std::size_t>(constraint)];
}

void Funnel::reject(const Config& config, const Verdict& verdict, std::int64_t configs) {
  rules_[static_cast<std::size_t>(verdict.rule)] += configs;
  if (verdict.rule == Rule::structure) {
    structural(config, verdict.constraint) += configs;
    return;
  }
  if (verdict.rule == Rule::excluded) return;
  const auto over = [](const Verdict& limited) {
    return static_cast<double>(limited.required) /
           static_cast<double>(std::max<std::int64_t>(1, limited.limit));
  };
  const double ratio = over(verdict);
  // Operands take their memory whatever the config.
  const auto size_rank = [&over](const Verdict& of) {
    return std::pair(of.rule != Rule::memory, over(of));
  };
  const bool of_size = verdict.rule == Rule::memory || verdict.rule == Rule::grid;
  if (of_size && (!size_ || size_rank(verdict) < size_rank(*size_))) size_ = verdict;
  // What the user's own cap refuses can be had.
  const auto miss_rank = [](const Miss& of) {
    return std::pair(of.verdict.rule != Rule::user_cap, of.ratio);
  };
  const Miss miss{config, verdict, ratio};
  if (!closest_ || miss_rank(miss) < miss_rank(*closest_)) closest_ = miss;
}

std::map<std::string, std::int64_t> Funnel::rejected() const {
  std::map<std::string, std::int64_t> counts;
  for (const Kernel& kernel : kernels_) {
    for (std::size_t i = 0; i < kernel.constraints.size(); ++i) {
      if (kernel.constraints[i] == 0) continue;
      counts[structural_name(kernel.twin->constraints()[i])] += kernel.constraints[i];
    }
  }
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
    if (static_cast<Rule>(rule) == Rule::structure || rules_[rule] == 0) continue;
    counts[std::string(to_string(static_cast<Rule>(rule)))] = rules_[rule];
  }
  return counts;
}

std::string Funnel::constraint_text(std::string_view rejection) const {
  for (const Kernel& kernel : kernels_) {
    for (std::size_t i = 0; i < kernel.constraints.size(); ++i) {
      const Constraint& constraint = kernel.twin->constraints()[i];
      if (kernel.constraints[i] > 0 && rejection == structural_name(constraint)) {
        return std::string(constraint.text);
      }
    }
  }
  return {};
}

Error Funnel::nothing_fits(const Request& request,
                           const std::vector<std::string>& unsupported) const {
  const std::string what = fmt::format("no config of {} fits {} on {}", request.family->name,
                                       autotune::describe(request.problem), request.device->name);
  if (generated_ == 0) {
    const std::string why = unsupported.empty()
                                ? fmt::format("the space {} holds none", request.space->origin)
                                : fmt::format("{}", fmt::join(unsupported, "; "));
    return {ErrorCode::nothing_fits, fmt::format("{}: {}", what, why)};
  }
  // What passes every rule about the code fails here only for the size of the problem.
  if (size_) return too_large(request.problem, *request.device, *size_);
  // No GPU has room for what a structure rejects, so another rule says more, where there is one;
  // and the user's own cap says most.
  const auto counts = rejected();
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        const auto rank = [](const auto& each) {
          return std::tuple(each.first == to_string(Rule::user_cap),
                            !each.first.starts_with("structure:"), each.second);
        };
        return rank(a) < rank(b);
      });
  std::string message = fmt::format("{}: of {} configs, {} were rejected by {}", what, generated_,
                                    most->second, most->first);
  if (const std::string text = constraint_text(most->first); !text.empty()) {
    message += fmt::format(" ({})", text);
  }
  if (closest_) {
    message += fmt::format("; the closest miss is {}: {}", to_string(closest_->config),
                           describe(closest_->verdict, closest_->config, *request.device));
  }
  const Limits& limits = *request.limits;
  if (limits.max_smem > 0 || !limits.excludes.empty()) {
    message += "; lift the cap or the excludes to allow more";
  } else if (const auto rule = parse_rule(most->first); rule && is_quality(*rule)) {
    message += "; --keep-slow allows what would run badly";
  }
  return {ErrorCode::nothing_fits, std::move(message)};
}

}  // namespace autotune::search
