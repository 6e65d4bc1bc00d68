// The text of configs/tuned/<slug>.yaml: what parse_tuned() reads back as the same file.
#pragma once

#include <string>

#include "autotune/io/load.h"

namespace autotune::io {

// One line per winner, ordered by problem; what a problem has by default is left out. The entries'
// problems must be checked().
std::string tuned_text(const TunedFile& file);

}  // namespace autotune::io
