// The performance model's coefficients as a section of a GPU's YAML file.
#pragma once

#include <string>
#include <string_view>

#include "kernels/model_coefficients.h"

namespace autotune::io {

// "# comment" lines, `model:` and a line per coefficient. `comment` may have several lines.
std::string model_text(const ModelCoefficients& model, std::string_view comment);

// `file` with its model section, and the comment right above it, replaced by `section`; the section
// at its end where it has none.
std::string with_model(std::string_view file, std::string_view section);

}  // namespace autotune::io
