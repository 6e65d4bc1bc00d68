// What the measured configs of a problem say about the others: a Gaussian process over the
// logarithm of measured / predicted time.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "search/plan.h"

namespace autotune::search {

// Standard deviations of log(measured / predicted): what the prediction is wrong by for all configs
// of the problem alike, for those of one kernel alike, by the value of each parameter alone, by
// values together, and by nothing that the parameters tell.
struct Spread {
  double offset = 0.5;
  double kernel = 0.2;
  double main = 0.1;
  double joint = 0.08;
  double rough = 0.01;
};

class Surrogate {
 public:
  explicit Surrogate(std::span<const Candidate> candidates);

  struct Sample {
    std::size_t candidate;  // index into the candidates, each at most once
    double us;
  };
  // Takes these as all that is known; main, joint and rough become those that explain them best.
  void learn(std::span<const Sample> samples);
  const Spread& spread() const { return spread_; }

  // Expected log(us) of every candidate; the prediction's where nothing is known.
  std::vector<double> means() const;

  // Some candidates whose uncertainty is known too, and which can be thought of as measured.
  class Shortlist {
   public:
    std::size_t size() const { return candidates_.size(); }
    std::size_t candidate(std::size_t i) const { return candidates_[i]; }
    double mean(std::size_t i) const { return means_[i]; }  // of log(us)
    double deviation(std::size_t i) const;                  // of what would be measured
    // As if the i-th were measured and took what is expected: the others grow more certain.
    void assume(std::size_t i);

   private:
    friend class Surrogate;
    const Surrogate* surrogate_ = nullptr;
    std::vector<std::size_t> candidates_;
    std::vector<double> means_;
    Eigen::MatrixXd rows_;   // a column per candidate: its covariances, whitened
    Eigen::Index used_ = 0;  // rows
    Eigen::VectorXd variances_;
  };
  // `all_means` are means(); room for `assumed` calls of assume().
  Shortlist shortlist(std::vector<std::size_t> candidates, const std::vector<double>& all_means,
                      std::size_t assumed) const;

 private:
  // Parameter values as positions in a table of correlations, one table per kernel's parameter.
  struct Axis {
    std::vector<std::int32_t> values;  // sorted
    Eigen::MatrixXd log_correlation;
  };
  struct Point {
    std::size_t kernel;
    std::array<std::uint16_t, kMaxParameters> at;  // in the axes' values
  };
  struct Likeness {
    double main;   // mean of the parameters' correlations
    double joint;  // their product
  };
  struct Parts {
    double of_kernel;
    std::vector<Eigen::VectorXd> of_value;               // by parameter
    std::vector<std::pair<const Point*, double>> joint;  // with their weights
  };
  Parts parts_of(std::size_t kernel) const;
  Likeness likeness(const Point& a, const Point& b) const;
  double covariance(const Point& a, const Point& b) const;

  std::vector<std::vector<Axis>> axes_;  // by kernel
  std::vector<Point> points_;            // by candidate
  std::vector<double> log_predicted_;
  Spread spread_;
  std::vector<std::size_t> seen_;
  Eigen::MatrixXd factor_;   // of the covariances of seen_, lower triangular
  Eigen::VectorXd weights_;  // covariances^-1 times what was seen
};

}  // namespace autotune::search
