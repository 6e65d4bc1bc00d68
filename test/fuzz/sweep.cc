// Sweep files: random bytes are refused, and what is accepted is sound and can be written and read
// again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/io/sweep.h"
#include "kernels/problem.h"
#include "test/fuzz/edits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto sweep = io::parse_sweep(text, "fuzz.sweep");
  if (!sweep) return 0;
  fuzz::require(checked(sweep->problem) == sweep->problem);
  for (const io::SweepRow& row : sweep->rows) {
    const bool ok = row.outcome == Outcome::ok;
    fuzz::require(!ok || (std::isfinite(row.ratio) && row.ratio > 0));
    fuzz::require(!ok || (std::isfinite(row.reference_us) && row.reference_us > 0));
  }
  const auto again = io::parse_sweep(io::sweep_text(*sweep), "fuzz.sweep");
  fuzz::require(again.has_value());
  fuzz::require(again->problem == sweep->problem && again->reference == sweep->reference);
  fuzz::require(again->rows.size() == sweep->rows.size());
  for (std::size_t i = 0; i < again->rows.size(); ++i) {
    fuzz::require(again->rows[i].config == sweep->rows[i].config);
    fuzz::require(again->rows[i].outcome == sweep->rows[i].outcome);
  }
  return 0;
}
