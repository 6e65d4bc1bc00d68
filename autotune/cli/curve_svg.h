// Curves of best-so-far against measured configs as an SVG picture.
#pragma once

#include <string>
#include <vector>

#include "search/replay.h"

namespace autotune::cli {

struct NamedCurves {
  std::string name;      // in the legend
  search::Curve middle;  // drawn whole
  search::Curve worst;   // drawn dashed
};

// How far each is behind the best, in percent on a logarithmic scale from 0.1 to 1000, after 1, 2,
// ... configs. A self-contained document.
std::string curve_svg(const std::string& title, const std::vector<NamedCurves>& curves);

}  // namespace autotune::cli
