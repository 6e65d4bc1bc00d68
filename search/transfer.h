// From tuned problems to one that was never tuned: the performance model, corrected by what it got
// wrong nearby.
#pragma once

#include <vector>

#include "search/check.h"

namespace autotune::search {

// A problem that was tuned on the same device: its winner and what that took.
struct Tuned {
  Problem problem;      // checked
  Config config;        // runs there
  double us = 0;        // > 0
  double distance = 0;  // to the problem that is asked about, in doublings
};

class CorrectedModel {
 public:
  // `device` must outlive it. Without any `tuned` it is the model itself.
  CorrectedModel(std::vector<Tuned> tuned, const DeviceSpec& device, int max_sms);

  // Microseconds of a config that fits, with the check's `resources`. At each tuned problem the
  // config takes what the model says times what the model's ratio to the measured times is there,
  // but not less than the winner took, which was the fastest. What that differs by from the model
  // is averaged, the nearest problems counting most, and holds here too.
  double predict_us(const Config& config, const Problem& problem, const Resources& resources) const;

 private:
  // Mean of log(measured / predicted) over the winners, those of the same kernel where there are
  // any.
  double level_of(const HostTwin* kernel) const;

  struct Point {
    Tuned tuned;
    double weight;
    double log_ratio;  // of the winner: measured / predicted
  };
  std::vector<Point> points_;
  const DeviceSpec& device_;
  Limits limits_;
};

}  // namespace autotune::search
