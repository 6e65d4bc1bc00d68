// Everything that can be said about one config on one GPU for one problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune/io/json.h"
#include "kernels/kernel.h"
#include "kernels/verdict.h"
#include "search/model.h"
#include "search/plan.h"

namespace autotune::cli {

// What the text and the JSON are both made from. The references must outlive it.
struct Explanation {
  const DeviceSpec& device;
  const Problem& problem;
  const search::Limits& limits;
  Config config;
  Resources resources;
  std::vector<Term> smem_terms;
  std::vector<Term> thread_terms;
  std::vector<Term> register_terms;
  std::vector<Verdict> verdicts;             // every limit that it breaks
  std::vector<search::TimeTerm> time_terms;  // empty where it cannot run
  double predicted_us = 0;
  int blocks_per_sm = 0;
  std::optional<search::Candidate> nearest;  // of those that fit, where it breaks anything
  std::optional<Config> tried_instead;       // what launches the very same, where plans drop this

  // Quality rules say that a config would run badly, not that it cannot run.
  bool fits() const;
};

// `plan`: of the same problem, for the nearest config; null where nothing fits.
Explanation explain(const Config& config, const Problem& problem, const DeviceSpec& device,
                    const search::Limits& limits, const search::Plan* plan);

io::ExplainJson json_of(const Explanation& explanation);

// "Fits." and which config is tried in its place, or a line for each limit that it breaks.
std::string verdicts_text(const Explanation& explanation);

// The other parts of the text; each begins with an empty line or is empty.
std::string parameters_text(const Config& config);
std::string resources_text(const Explanation& explanation);
std::string time_text(const Explanation& explanation);
std::string nearest_text(const Explanation& explanation);

}  // namespace autotune::cli
