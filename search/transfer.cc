#include "search/transfer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "search/model.h"

namespace autotune::search {
namespace {

// What the model says of a config at a tuned problem; nullopt where it cannot run there.
std::optional<double> predict_at(const Config& config, const Problem& problem,
                                 const DeviceSpec& device, const Limits& limits) {
  const KernelTraits traits = traits_of(problem);
  if (!config.kernel->unsupported(traits, device).empty()) return std::nullopt;
  Resources resources;
  if (check(config, problem, traits, device, limits, &resources)) return std::nullopt;
  return search::predict_us(config, problem, device, resources, limits.max_sms);
}

}  // namespace

CorrectedModel::CorrectedModel(std::vector<Tuned> tuned, const DeviceSpec& device, int max_sms)
    : device_(device) {
  limits_.keep_slow = true;
  limits_.max_sms = max_sms;
  for (Tuned& each : tuned) {
    const auto predicted = predict_at(each.config, each.problem, device_, limits_);
    if (!predicted) continue;
    const double log_ratio = std::log(each.us / *predicted);
    const double weight = std::exp2(-2 * each.distance);
    points_.push_back({std::move(each), weight, log_ratio});
  }
}

double CorrectedModel::level_of(const HostTwin* kernel) const {
  double sum[2] = {0, 0};  // all kernels; this one
  double weights[2] = {0, 0};
  for (const Point& point : points_) {
    const int last = point.tuned.config.kernel == kernel ? 1 : 0;
    for (int i = 0; i <= last; ++i) {
      sum[i] += point.weight * point.log_ratio;
      weights[i] += point.weight;
    }
  }
  const int used = weights[1] > 0 ? 1 : 0;
  return weights[used] > 0 ? sum[used] / weights[used] : 0;
}

double CorrectedModel::predict_us(const Config& config, const Problem& problem,
                                  const Resources& resources) const {
  const double level = level_of(config.kernel);
  double sum = 0;
  double weights = 0;
  for (const Point& point : points_) {
    double log_ratio = point.log_ratio;
    if (config != point.tuned.config) {
      const auto there = predict_at(config, point.tuned.problem, device_, limits_);
      if (!there) continue;
      log_ratio = std::max(level, std::log(point.tuned.us / *there));
    }
    sum += point.weight * log_ratio;
    weights += point.weight;
  }
  const double correction = weights > 0 ? sum / weights : level;
  return search::predict_us(config, problem, device_, resources, limits_.max_sms) *
         std::exp(correction);
}

}  // namespace autotune::search
