#include "search/replay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "search/funnel.h"
#include "search/request.h"

namespace autotune::search {

Expected<Recording> make_recording(const Problem& problem, const DeviceSpec& device,
                                   const Limits& limits, std::span<const Recorded> recorded) {
  Recording recording;
  recording.plan.problem = problem;
  const KernelTraits traits = traits_of(problem);
  std::unordered_map<Config, Observation, ConfigHash> results;
  Funnel funnel;
  for (const Recorded& each : recorded) {
    const bool ok = each.outcome == Outcome::ok;
    if (ok && (recording.best_us == 0 || each.us < recording.best_us)) recording.best_us = each.us;
    funnel.generate(1);
    Candidate candidate{each.config, {}, 0};
    const auto verdict = check(each.config, problem, traits, device, limits, &candidate.resources);
    if (verdict) {
      funnel.reject(each.config, *verdict, 1);
      continue;
    }
    candidate.predicted_us =
        predict_us(each.config, problem, device, candidate.resources, limits.max_sms);
    results[each.config] = {0, each.outcome, ok ? each.us : 0};
    recording.plan.survivors.push_back(std::move(candidate));
  }
  if (recording.best_us == 0) {
    return fail(ErrorCode::failed, "none of the recorded configs of " + describe(problem) +
                                       " ran; there is nothing to find");
  }
  if (recording.plan.survivors.empty()) {
    return fail(ErrorCode::nothing_fits,
                "no recorded config of " + describe(problem) + " passes the check");
  }
  recording.plan.generated = funnel.generated();
  recording.plan.rejected = funnel.rejected();
  std::sort(recording.plan.survivors.begin(), recording.plan.survivors.end(), ranks_before);
  for (std::size_t i = 0; i < recording.plan.survivors.size(); ++i) {
    recording.results.push_back(results.at(recording.plan.survivors[i].config));
    recording.results.back().candidate = i;
  }
  return recording;
}

Curve replay(Strategy& strategy, const Recording& recording, std::size_t batch, std::size_t most) {
  Curve curve;
  std::vector<Observation> history;
  double best = std::numeric_limits<double>::infinity();
  while (history.size() < most) {
    const auto next = strategy.next(history, std::min(batch, most - history.size()));
    if (next.empty()) break;
    for (const std::size_t candidate : next) {
      const Observation& result = recording.results[candidate];
      history.push_back(result);
      if (result.outcome == Outcome::ok) best = std::min(best, result.median_us);
      curve.push_back(best / recording.best_us);
    }
  }
  return curve;
}

CurveBand band_of(std::span<const Curve> curves) {
  std::size_t length = 0;
  for (const Curve& curve : curves) length = std::max(length, curve.size());
  CurveBand band;
  for (std::size_t n = 0; n < length; ++n) {
    std::vector<double> values;
    for (const Curve& curve : curves) {
      if (!curve.empty()) values.push_back(curve[std::min(n, curve.size() - 1)]);
    }
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const bool odd = values.size() % 2 == 1;
    band.median.push_back(odd ? values[half] : (values[half - 1] + values[half]) / 2);
    band.worst.push_back(values.back());
  }
  return band;
}

std::size_t configs_until(const Curve& curve, double within) {
  const auto found = std::find_if(curve.begin(), curve.end(),
                                  [within](double ratio) { return ratio <= 1 + within; });
  return found == curve.end() ? 0 : static_cast<std::size_t>(found - curve.begin()) + 1;
}

}  // namespace autotune::search
