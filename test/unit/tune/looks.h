// Trials that never ran, and looks at them that say what a test wants.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/tune/finalists.h"
#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune::tune {

inline Trial trial(double us, std::int64_t smem, int block_n = 16, int stages = 2) {
  Trial trial;
  const std::string text =
      "mma:block_m=16,block_n=" + std::to_string(block_n) + ",stages=" + std::to_string(stages);
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  trial.config = *config;
  trial.measurement.median_us = us;
  trial.predicted.smem_bytes = smem;
  return trial;
}

// What every look says: a time for each trial, told apart by its shared memory, and intervals of
// the given half width. Each look is noted.
struct Said {
  std::map<std::int64_t, double> us;
  double width = 0.0005;
};
struct Looked {
  std::vector<std::int64_t> smem;
  Look how;
};
inline Looking says(Said said, std::vector<Looked>* looks = nullptr) {
  return
      [said = std::move(said), looks](const std::vector<const Trial*>& trials,
                                      Look how) -> Expected<std::optional<worker::CompareReply>> {
        Looked looked{{}, how};
        worker::CompareReply reply;
        for (const Trial* trial : trials) {
          looked.smem.push_back(trial->predicted.smem_bytes);
          worker::Side& side = reply.sides.emplace_back();
          const auto known = said.us.find(trial->predicted.smem_bytes);
          if (known == said.us.end()) {
            side.outcome = Outcome::launch_failed;
            continue;
          }
          side.measurement.median_us = known->second;
          side.ratio = known->second / said.us.at(trials.front()->predicted.smem_bytes);
          side.ratio_lo = side.ratio - said.width;
          side.ratio_hi = side.ratio + said.width;
        }
        if (looks != nullptr) looks->push_back(std::move(looked));
        return reply;
      };
}

inline constexpr auto kNone = std::nullopt;

}  // namespace autotune::tune
