#include "autotune/worker/well_formed.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace autotune::worker {
namespace {

constexpr std::size_t kMaxDepth = 8;

enum Major : unsigned { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

// The number that follows an item's first byte; its width is in the low five bits.
std::optional<std::uint64_t> take_argument(std::string_view& rest, unsigned low) {
  if (low < 24) return low;
  if (low > 27) return std::nullopt;
  const std::size_t width = std::size_t{1} << (low - 24);
  if (rest.size() < width) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value = value << 8 | static_cast<unsigned char>(rest[i]);
  }
  rest.remove_prefix(width);
  return value;
}

bool simple_value_is_known(unsigned low) {
  return (low >= 20 && low <= 22) || (low >= 25 && low <= 27);  // false, true, null; floats
}

}  // namespace

bool well_formed(std::string_view bytes) {
  std::array<std::uint64_t, kMaxDepth> open{};  // items still to come at each level
  std::size_t depth = 0;
  std::string_view rest = bytes;
  do {
    if (rest.empty()) return false;
    const unsigned first = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    const unsigned major = first >> 5;
    const unsigned low = first & 31;
    if (major == kTag || (major == kSimple && !simple_value_is_known(low))) return false;
    const auto argument = take_argument(rest, low);
    if (!argument) return false;
    if (major == kBytes || major == kText) {
      if (*argument > rest.size()) return false;
      rest.remove_prefix(static_cast<std::size_t>(*argument));
    } else if (major == kArray || major == kMap) {
      if (*argument > rest.size() || depth == kMaxDepth) return false;
      open[depth++] = major == kMap ? 2 * *argument : *argument;
      if (*argument > 0) continue;
      --depth;
    }
    while (depth > 0 && --open[depth - 1] == 0) --depth;
  } while (depth > 0);
  return rest.empty();
}

}  // namespace autotune::worker
