// Files of winners: what is accepted is written and read back as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/io/load.h"
#include "autotune/io/tuned_text.h"
#include "test/fuzz/edits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = io::parse_tuned(text, "fuzz.yaml");
  if (!file) return 0;
  const std::string written = io::tuned_text(*file);
  const auto back = io::parse_tuned(written, "back.yaml");
  fuzz::require(back && back->device == file->device);
  fuzz::require(back->entries.size() == file->entries.size());
  fuzz::require(io::tuned_text(*back) == written);
  return 0;
}
