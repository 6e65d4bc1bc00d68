// Fits the performance model's coefficients to what a GPU measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel.h"

namespace autotune::search {

struct MeasuredConfig {
  Problem problem;  // checked
  Config config;
  double us = 0;  // measured
};

// How far predictions are from measured times.
struct ModelError {
  std::int64_t trials = 0;
  double median = 0;  // of |predicted / measured - 1|
  double p90 = 0;
  double first_choice = 1;  // time of the trial that is predicted to be the fastest of its problem
                            // / the fastest measured: geometric mean over the problems
};

// What a fit is made from: observations with everything about them that the coefficients do not
// change. Left out are configs that the device cannot run and times that are not positive, and of
// a problem with many trials all but a few hundred, evenly from the fastest to the slowest.
class FitData {
 public:
  // `device` must outlive it.
  FitData(std::span<const MeasuredConfig> observations, const DeviceSpec& device);

  std::size_t problems() const { return problems_; }
  std::size_t trials() const { return samples_.size(); }

  // The coefficients that make the sum of squares of log(predicted / measured) least. Slow configs
  // count far less than fast ones, outliers less than their squares, every problem about alike, and
  // departing from the defaults costs a little, so that what the data say nothing about stays as it
  // is. All are within their bounds. The search for them begins at `start`, and ends sooner near
  // by. bad_input without data.
  Expected<ModelCoefficients> fit(const ModelCoefficients& start = {}) const;

  // Of given coefficients on these trials.
  ModelError error_of(const ModelCoefficients& model) const;
  // Of each problem with the coefficients fitted to the others, from `start`: those of fit() are
  // near all of them. bad_input with fewer than two.
  Expected<ModelError> left_out_error(const ModelCoefficients& start) const;

 private:
  struct Sample {
    std::size_t problem;  // counted from 0
    Problem dimensions;
    Work work;
    Resources resources;
    double log_us;
    double weight;
  };
  std::vector<double> residuals(const ModelCoefficients& model) const;
  ModelError summary(const std::vector<double>& residuals) const;
  FitData without(std::size_t problem) const;
  FitData only(std::size_t problem) const;

  const DeviceSpec* device_;
  std::size_t problems_ = 0;
  std::vector<Sample> samples_;
};

}  // namespace autotune::search
