#include "search/surrogate.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace autotune::search {
namespace {

// How far two values of a parameter may be apart, in doublings (or steps, of small numbers), to be
// still much alike.
constexpr double kReach = 2.5;
// Values of main, joint and rough that learn() chooses from, and how sure it is beforehand that the
// defaults are about right: a factor of so much is one standard deviation.
constexpr double kMains[] = {0.03, 0.06, 0.1, 0.17, 0.3};
constexpr double kJoints[] = {0.02, 0.04, 0.08, 0.15};
constexpr double kRoughs[] = {0.005, 0.01, 0.02, 0.04};
const double kSure = std::log(2.5);
// They are chosen anew up to so many samples, and hardly change then.
constexpr Eigen::Index kChosenUpTo = 100;

// Numbers of things go by their ratio, switches by their difference.
double position(const Parameter& parameter, std::int32_t value) {
  return parameter.lo >= 1 ? std::log2(static_cast<double>(value)) : value;
}

Eigen::MatrixXd log_correlations(const Parameter& parameter,
                                 const std::vector<std::int32_t>& values) {
  const auto count = static_cast<Eigen::Index>(values.size());
  Eigen::MatrixXd table(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      const double apart = (position(parameter, values[static_cast<std::size_t>(i)]) -
                            position(parameter, values[static_cast<std::size_t>(j)])) /
                           kReach;
      table(i, j) = -apart * apart / 2;
    }
  }
  return table;
}

double prior_log_density(const Spread& spread) {
  const Spread typical;
  const auto of = [](double value, double usual) {
    const double z = std::log(value / usual) / kSure;
    return -z * z / 2;
  };
  return of(spread.main, typical.main) + of(spread.joint, typical.joint) +
         of(spread.rough, typical.rough);
}

}  // namespace

Surrogate::Surrogate(std::span<const Candidate> candidates) {
  std::unordered_map<const HostTwin*, std::size_t> kernels;
  std::vector<const HostTwin*> twins;
  for (const Candidate& each : candidates) {
    const HostTwin* twin = each.config.kernel;
    const auto [found, fresh] = kernels.emplace(twin, axes_.size());
    if (fresh) {
      axes_.emplace_back(twin->parameters().size());
      twins.push_back(twin);
    }
    std::vector<Axis>& axes = axes_[found->second];
    for (std::size_t p = 0; p < axes.size(); ++p) {
      std::vector<std::int32_t>& values = axes[p].values;
      const auto at = std::lower_bound(values.begin(), values.end(), each.config.values[p]);
      if (at == values.end() || *at != each.config.values[p]) {
        values.insert(at, each.config.values[p]);
      }
    }
  }
  for (std::size_t kernel = 0; kernel < axes_.size(); ++kernel) {
    for (std::size_t p = 0; p < axes_[kernel].size(); ++p) {
      Axis& axis = axes_[kernel][p];
      axis.log_correlation = log_correlations(twins[kernel]->parameters()[p], axis.values);
    }
  }
  points_.reserve(candidates.size());
  log_predicted_.reserve(candidates.size());
  for (const Candidate& each : candidates) {
    Point point{kernels.at(each.config.kernel), {}};
    const std::vector<Axis>& axes = axes_[point.kernel];
    for (std::size_t p = 0; p < axes.size(); ++p) {
      const std::vector<std::int32_t>& values = axes[p].values;
      const auto at = std::lower_bound(values.begin(), values.end(), each.config.values[p]);
      point.at[p] = static_cast<std::uint16_t>(at - values.begin());
    }
    points_.push_back(point);
    log_predicted_.push_back(std::log(each.predicted_us));
  }
}

Surrogate::Likeness Surrogate::likeness(const Point& a, const Point& b) const {
  if (a.kernel != b.kernel) return {0, 0};
  const std::vector<Axis>& axes = axes_[a.kernel];
  double sum = 0;
  double together = 0;
  for (std::size_t p = 0; p < axes.size(); ++p) {
    const double log_correlation = axes[p].log_correlation(a.at[p], b.at[p]);
    sum += log_correlation == 0 ? 1 : std::exp(log_correlation);
    together += log_correlation;
  }
  return {axes.empty() ? 1 : sum / static_cast<double>(axes.size()), std::exp(together)};
}

double Surrogate::covariance(const Point& a, const Point& b) const {
  const double offset = spread_.offset * spread_.offset;
  if (a.kernel != b.kernel) return offset;
  const Likeness like = likeness(a, b);
  return offset + spread_.kernel * spread_.kernel + spread_.main * spread_.main * like.main +
         spread_.joint * spread_.joint * like.joint;
}

void Surrogate::learn(std::span<const Sample> samples) {
  const auto count = static_cast<Eigen::Index>(samples.size());
  seen_.clear();
  Eigen::VectorXd seen(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Sample& sample = samples[static_cast<std::size_t>(i)];
    seen_.push_back(sample.candidate);
    seen[i] = std::log(sample.us) - log_predicted_[sample.candidate];
  }
  if (count == 0) {
    spread_ = {};
    return;
  }

  Eigen::MatrixXd shared(count, count);
  Eigen::MatrixXd main(count, count);
  Eigen::MatrixXd joint(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      const Point& a = points_[seen_[static_cast<std::size_t>(i)]];
      const Point& b = points_[seen_[static_cast<std::size_t>(j)]];
      const Likeness like = likeness(a, b);
      shared(i, j) = spread_.offset * spread_.offset +
                     (a.kernel == b.kernel ? spread_.kernel * spread_.kernel : 0);
      main(i, j) = like.main;
      joint(i, j) = like.joint;
    }
  }
  double best = -std::numeric_limits<double>::infinity();
  const auto consider = [&](const Spread& spread) {
    Eigen::MatrixXd all =
        shared + spread.main * spread.main * main + spread.joint * spread.joint * joint;
    all.diagonal().array() += spread.rough * spread.rough;
    const Eigen::LLT<Eigen::MatrixXd> cholesky(all);
    Eigen::MatrixXd factor = cholesky.matrixL();
    Eigen::VectorXd weights = cholesky.solve(seen);
    const double log_likelihood =
        -seen.dot(weights) / 2 - factor.diagonal().array().log().sum() + prior_log_density(spread);
    if (!(log_likelihood > best)) return;
    best = log_likelihood;
    spread_ = spread;
    factor_ = std::move(factor);
    weights_ = std::move(weights);
  };
  if (count > kChosenUpTo) {
    consider(spread_);
    return;
  }
  for (const double of_main : kMains) {
    for (const double of_joint : kJoints) {
      for (const double of_rough : kRoughs) {
        Spread spread;
        spread.main = of_main;
        spread.joint = of_joint;
        spread.rough = of_rough;
        consider(spread);
      }
    }
  }
}

// What is added to the prediction of any config of a kernel, and by each value of each parameter:
// all but the joint part, which is left to be summed over pairs.
Surrogate::Parts Surrogate::parts_of(std::size_t kernel) const {
  const std::vector<Axis>& axes = axes_[kernel];
  Parts parts{spread_.offset * spread_.offset * weights_.sum(), {}, {}};
  for (const Axis& axis : axes) {
    parts.of_value.push_back(Eigen::VectorXd::Zero(axis.log_correlation.rows()));
  }
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const Point& point = points_[seen_[i]];
    if (point.kernel != kernel) continue;
    const double weight = weights_[static_cast<Eigen::Index>(i)];
    parts.of_kernel += weight * spread_.kernel * spread_.kernel;
    parts.joint.emplace_back(&point, weight * spread_.joint * spread_.joint);
    const double main = weight * spread_.main * spread_.main / static_cast<double>(axes.size());
    for (std::size_t p = 0; p < axes.size(); ++p) {
      parts.of_value[p] += main * axes[p].log_correlation.col(point.at[p]).array().exp().matrix();
    }
  }
  return parts;
}

std::vector<double> Surrogate::means() const {
  std::vector<double> means = log_predicted_;
  if (seen_.empty()) return means;
  std::vector<Parts> parts;
  for (std::size_t kernel = 0; kernel < axes_.size(); ++kernel) parts.push_back(parts_of(kernel));
  for (std::size_t c = 0; c < points_.size(); ++c) {
    const Point& point = points_[c];
    const std::vector<Axis>& axes = axes_[point.kernel];
    const Parts& of = parts[point.kernel];
    double sum = of.of_kernel;
    for (std::size_t p = 0; p < axes.size(); ++p) sum += of.of_value[p][point.at[p]];
    for (const auto& [other, weight] : of.joint) {
      double together = 0;
      for (std::size_t p = 0; p < axes.size(); ++p) {
        together += axes[p].log_correlation(point.at[p], other->at[p]);
      }
      sum += weight * std::exp(together);
    }
    means[c] += sum;
  }
  return means;
}

Surrogate::Shortlist Surrogate::shortlist(std::vector<std::size_t> candidates,
                                          const std::vector<double>& all_means,
                                          std::size_t assumed) const {
  const auto count = static_cast<Eigen::Index>(candidates.size());
  const auto known = static_cast<Eigen::Index>(seen_.size());
  Shortlist list;
  list.surrogate_ = this;
  list.rows_.resize(known + static_cast<Eigen::Index>(assumed), count);
  list.used_ = known;
  list.variances_.resize(count);
  for (Eigen::Index c = 0; c < count; ++c) {
    const std::size_t candidate = candidates[static_cast<std::size_t>(c)];
    const Point& point = points_[candidate];
    list.means_.push_back(all_means[candidate]);
    list.variances_[c] = covariance(point, point);
    for (Eigen::Index i = 0; i < known; ++i) {
      list.rows_(i, c) = covariance(point, points_[seen_[static_cast<std::size_t>(i)]]);
    }
  }
  if (known > 0) {
    auto rows = list.rows_.topRows(known);
    factor_.triangularView<Eigen::Lower>().solveInPlace(rows);
    list.variances_ -= rows.colwise().squaredNorm().transpose();
  }
  list.candidates_ = std::move(candidates);
  return list;
}

double Surrogate::Shortlist::deviation(std::size_t i) const {
  const double rough = surrogate_->spread_.rough;
  const double smooth = std::max(0.0, variances_[static_cast<Eigen::Index>(i)]);
  return std::sqrt(smooth + rough * rough);
}

void Surrogate::Shortlist::assume(std::size_t i) {
  assert(used_ < rows_.rows());
  const auto chosen = static_cast<Eigen::Index>(i);
  const Point& point = surrogate_->points_[candidates_[i]];
  const double deviation_of_chosen = deviation(i);
  Eigen::RowVectorXd row = -rows_.col(chosen).head(used_).transpose() * rows_.topRows(used_);
  for (Eigen::Index c = 0; c < row.size(); ++c) {
    row[c] += surrogate_->covariance(point,
                                     surrogate_->points_[candidates_[static_cast<std::size_t>(c)]]);
  }
  row /= deviation_of_chosen;
  rows_.row(used_++) = row;
  variances_ -= row.array().square().matrix().transpose();
}

}  // namespace autotune::search
