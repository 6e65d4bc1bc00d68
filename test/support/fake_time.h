// The time that the fake measuring worker reports: a smooth function of the config's text with one
// best point, so that tests know the answer of a search.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

namespace autotune::test {

struct Ideal {
  std::string_view name;
  double value;
};
inline constexpr Ideal kIdeal[] = {{"block_m", 128}, {"block_n", 64}, {"block_k", 16},
                                   {"stages", 3},    {"warps_m", 2},  {"warps_n", 2}};

// 50 us at the ideal, 15 % more per factor of two in any parameter of the list, and some more for
// each of the others, so that two orders of tiles do not tie; of two stages what both take.
inline double fake_time_us(const std::string& config) {
  double penalty = 0;
  double weight = 0.01;
  std::size_t at = config.find(':');
  while (at != std::string::npos && at + 1 < config.size()) {
    const std::size_t equals = config.find('=', at + 1);
    if (equals == std::string::npos) break;
    const std::string_view name = std::string_view(config).substr(at + 1, equals - at - 1);
    const double value = std::atof(config.c_str() + equals + 1);
    double term = weight * value;
    for (const Ideal& ideal : kIdeal) {
      if (ideal.name == name) term = 0.15 * std::abs(std::log2(value / ideal.value));
    }
    penalty += term;
    weight *= 0.97;
    at = config.find_first_of(",:", equals);  // the next parameter's name, or the next stage's
  }
  return 50 * (1 + penalty);
}

}  // namespace autotune::test
