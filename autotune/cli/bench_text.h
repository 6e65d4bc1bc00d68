// Timed rows as a person and as JSON see them.
#pragma once

#include <string>

#include "autotune/io/json.h"
#include "autotune/tune/bench.h"

namespace autotune::cli {

// `match`: where the config comes from.
io::BenchRowJson bench_row(const tune::BenchRow& row, const std::string& match);

// Fills the geometric mean and the minimum of the speedups, where there are any.
void summarise(io::BenchJson& document);

std::string bench_text(const io::BenchJson& document);

}  // namespace autotune::cli
