#include "search/fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "search/check.h"
#include "search/model.h"

namespace autotune::search {
namespace {

constexpr std::size_t kMostPerProblem = 250;

// The model's own error: a residual of this size counts 1. Beyond kOutlier of them it counts by its
// size, not its square.
constexpr double kSpread = 0.15;
constexpr double kOutlier = 2;
// Trials of one problem share its error, so that many of them tell no more than so many
// independent ones.
constexpr double kInformationPerProblem = 40;
// Twice as slow counts 2^n times less: which configs win is decided among the fast ones.
constexpr double kNearTheBest = 4;
// A default is in doubt by this share of its bounds' range, in log space.
constexpr double kDoubtOfRange = 1.0 / 8;

constexpr int kMostSteps = 60;
constexpr double kDerivativeStep = 0.02;
constexpr double kEnough = 1e-4;  // relative gain of a step below which it ends

using Vector = Eigen::VectorXd;

// Where a coefficient stands, as the logarithm of its ratio to the default.
struct Axis {
  double lo;
  double hi;
  double doubt;
};

std::vector<Axis> axes() {
  std::vector<Axis> all;
  const ModelCoefficients defaults;
  for (const Coefficient& each : model_coefficients()) {
    const double usual = defaults.*each.member;
    all.push_back({std::log(each.lo / usual), std::log(each.hi / usual),
                   std::log(each.hi / each.lo) * kDoubtOfRange});
  }
  return all;
}

ModelCoefficients model_at(const Vector& point) {
  ModelCoefficients model;
  Eigen::Index i = 0;
  for (const Coefficient& each : model_coefficients()) {
    model.*each.member = std::clamp(model.*each.member * std::exp(point[i++]), each.lo, each.hi);
  }
  return model;
}

Vector point_of(const ModelCoefficients& model) {
  const ModelCoefficients defaults;
  const std::span<const Coefficient> all = model_coefficients();
  Vector point(static_cast<Eigen::Index>(all.size()));
  Eigen::Index i = 0;
  for (const Coefficient& each : all) {
    point[i++] = std::log(model.*each.member / (defaults.*each.member));
  }
  return point;
}

double loss(double residual) {
  const double size = std::abs(residual) / kSpread;
  return size <= kOutlier ? size * size : kOutlier * (2 * size - kOutlier);
}

// What a residual's square counts in a step, relative to one that is no outlier.
double slack(double residual) {
  const double size = std::abs(residual) / kSpread;
  return size <= kOutlier ? 1 : kOutlier / size;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(
                                          share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// `count` of them, evenly over the order.
std::vector<const MeasuredConfig*> thinned(std::vector<const MeasuredConfig*> sorted,
                                           std::size_t count) {
  if (sorted.size() <= count) return sorted;
  std::vector<const MeasuredConfig*> kept;
  for (std::size_t i = 0; i < count; ++i) {
    kept.push_back(sorted[i * (sorted.size() - 1) / (count - 1)]);
  }
  return kept;
}

}  // namespace

FitData::FitData(std::span<const MeasuredConfig> observations, const DeviceSpec& device)
    : device_(&device) {
  std::map<std::string, std::vector<const MeasuredConfig*>> by_problem;
  Limits limits;
  limits.keep_slow = true;
  for (const MeasuredConfig& each : observations) {
    const KernelTraits traits = traits_of(each.problem);
    if (!(each.us > 0) || !each.config.kernel->unsupported(traits, device).empty()) continue;
    if (check(each.config, each.problem, traits, device, limits, nullptr)) continue;
    by_problem[problem_key(each.problem)].push_back(&each);
  }
  for (auto& [key, all] : by_problem) {
    std::sort(all.begin(), all.end(),
              [](const MeasuredConfig* a, const MeasuredConfig* b) { return a->us < b->us; });
    const double fastest = all.front()->us;
    const auto kept = thinned(std::move(all), kMostPerProblem);
    const auto weight = [fastest](double us) { return std::pow(fastest / us, kNearTheBest); };
    double sum = 0;
    for (const MeasuredConfig* each : kept) sum += weight(each->us);
    const double information =
        std::min(kInformationPerProblem, static_cast<double>(kept.size())) / sum;
    for (const MeasuredConfig* each : kept) {
      Resources resources;
      check(each->config, each->problem, traits_of(each->problem), device, limits, &resources);
      samples_.push_back({problems_, each->problem,
                          each->config.kernel->work(each->config, each->problem, device), resources,
                          std::log(each->us), information * weight(each->us)});
    }
    ++problems_;
  }
}

std::vector<double> FitData::residuals(const ModelCoefficients& model) const {
  DeviceSpec device = *device_;
  device.model = model;
  std::vector<double> all;
  all.reserve(samples_.size());
  for (const Sample& each : samples_) {
    const double us = predict_us(each.work, each.dimensions, device, each.resources, 0);
    all.push_back(std::log(us) - each.log_us);
  }
  return all;
}

ModelError FitData::summary(const std::vector<double>& residuals) const {
  ModelError error;
  error.trials = static_cast<std::int64_t>(residuals.size());
  std::vector<double> sizes;
  struct Choice {
    double predicted = 0;  // logarithms, of what is predicted to be fastest
    double measured = 0;
    double fastest = 0;
  };
  std::map<std::size_t, Choice> choices;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    sizes.push_back(std::abs(std::expm1(residuals[i])));
    const double measured = samples_[i].log_us;
    const double predicted = measured + residuals[i];
    const auto [place, first] =
        choices.try_emplace(samples_[i].problem, Choice{predicted, measured, measured});
    Choice& choice = place->second;
    choice.fastest = std::min(choice.fastest, measured);
    if (predicted < choice.predicted) {
      choice.predicted = predicted;
      choice.measured = measured;
    }
  }
  error.median = quantile(sizes, 0.5);
  error.p90 = quantile(sizes, 0.9);
  double lost = 0;
  for (const auto& [problem, choice] : choices) lost += choice.measured - choice.fastest;
  if (!choices.empty()) error.first_choice = std::exp(lost / static_cast<double>(choices.size()));
  return error;
}

// Levenberg-Marquardt over the logarithms of the coefficients, with derivatives by differences.
Expected<ModelCoefficients> FitData::fit(const ModelCoefficients& start) const {
  if (samples_.empty()) {
    return fail(ErrorCode::bad_input,
                "nothing to fit the performance model to: no trial measured on " + device_->name +
                    "; tune problems there first ('autotune tune --suite gemm') and give that "
                    "cache, or the results of 'tune --json', as data");
  }
  const std::vector<Axis> all_axes = axes();
  const auto size = static_cast<Eigen::Index>(all_axes.size());
  const auto cost_of = [&](const Vector& point, const std::vector<double>& residuals) {
    double cost = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      cost += samples_[i].weight * loss(residuals[i]);
    }
    for (Eigen::Index a = 0; a < size; ++a) cost += std::pow(point[a] / all_axes[a].doubt, 2);
    return cost;
  };

  Vector point = point_of(start);
  std::vector<double> here = residuals(model_at(point));
  double cost = cost_of(point, here);
  double damping = 1e-2;
  for (int step = 0; step < kMostSteps; ++step) {
    Eigen::MatrixXd slopes(static_cast<Eigen::Index>(samples_.size()), size);
    for (Eigen::Index a = 0; a < size; ++a) {
      const double move =
          point[a] + kDerivativeStep <= all_axes[a].hi ? kDerivativeStep : -kDerivativeStep;
      Vector beside = point;
      beside[a] += move;
      const std::vector<double> there = residuals(model_at(beside));
      for (std::size_t i = 0; i < samples_.size(); ++i) {
        slopes(static_cast<Eigen::Index>(i), a) = (there[i] - here[i]) / move;
      }
    }
    Vector weights(static_cast<Eigen::Index>(samples_.size()));
    Vector errors(weights.size());
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      weights[row] = samples_[i].weight * slack(here[i]) / (kSpread * kSpread);
      errors[row] = here[i];
    }
    Eigen::MatrixXd normal = slopes.transpose() * weights.asDiagonal() * slopes;
    Vector gradient = slopes.transpose() * weights.cwiseProduct(errors);
    for (Eigen::Index a = 0; a < size; ++a) {
      const double doubt = all_axes[a].doubt;
      normal(a, a) += 1 / (doubt * doubt);
      gradient[a] += point[a] / (doubt * doubt);
    }

    double gained = 0;
    while (gained <= 0 && damping < 1e8) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() *= 1 + damping;
      Vector next = point - damped.ldlt().solve(gradient);
      for (Eigen::Index a = 0; a < size; ++a) {
        next[a] = std::clamp(next[a], all_axes[a].lo, all_axes[a].hi);
      }
      std::vector<double> there = residuals(model_at(next));
      const double next_cost = cost_of(next, there);
      if (next_cost < cost) {
        gained = (cost - next_cost) / cost;
        point = next;
        here = std::move(there);
        cost = next_cost;
        damping = std::max(1e-6, damping / 4);
      } else {
        damping *= 4;
      }
    }
    if (gained < kEnough) break;
  }
  return model_at(point);
}

ModelError FitData::error_of(const ModelCoefficients& model) const {
  return summary(residuals(model));
}

FitData FitData::without(std::size_t problem) const {
  FitData rest = *this;
  std::erase_if(rest.samples_, [&](const Sample& each) { return each.problem == problem; });
  return rest;
}

FitData FitData::only(std::size_t problem) const {
  FitData one = *this;
  std::erase_if(one.samples_, [&](const Sample& each) { return each.problem != problem; });
  return one;
}

Expected<ModelError> FitData::left_out_error(const ModelCoefficients& start) const {
  if (problems_ < 2) {
    return fail(ErrorCode::bad_input,
                "the error on problems that the model was not fitted to needs trials of at least "
                "two problems");
  }
  // Samples lie problem by problem.
  std::vector<double> all;
  for (std::size_t problem = 0; problem < problems_; ++problem) {
    const auto model = without(problem).fit(start);
    if (!model) return tl::unexpected(model.error());
    const std::vector<double> those = only(problem).residuals(*model);
    all.insert(all.end(), those.begin(), those.end());
  }
  return summary(all);
}

}  // namespace autotune::search
