// Results of tune and bench: random bytes are refused, and what is accepted has sound rows.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/io/results.h"
#include "kernels/problem.h"
#include "test/fuzz/edits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = io::parse_results(text, "fuzz.json");
  if (!file) return 0;
  for (const io::TunedEntry& entry : file->entries) {
    fuzz::require(entry.median_us > 0);
    fuzz::require(checked(entry.problem) == entry.problem);
    fuzz::require(parse_config(entry.config, *find_family(entry.problem.family)).has_value());
  }
  return 0;
}
