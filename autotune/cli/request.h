// From the text of options to problems, limits and spaces. Every error is bad_input and names the
// option.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/io/json.h"
#include "autotune/types.h"
#include "kernels/kernel.h"
#include "search/check.h"
#include "search/space.h"

namespace autotune::cli {

struct Request {
  const Family* family = nullptr;
  std::vector<Problem> problems;  // checked; one without a suite or a ladder
  std::string suite;              // its name; empty without one
};

// Whether --m (--tokens of an MLP) may be a range, 1..8192: a problem for each rung of
// lookup::ladder().
enum class Ladder : std::uint8_t { refused, taken };

// FAMILY with its dimensions, or --suite. Warns where problems of a suite keep their own dtype or
// layout beside --dtype or --layout.
Expected<Request> read_request(const Options& options, Output& output,
                               Ladder ladder = Ladder::refused);

// --max-smem, --exclude, --keep-slow, --max-sms.
Expected<search::Limits> read_limits(const Options& options, const Family& family);

// A cap of --max-sms that leaves out none of the device's is none.
void drop_idle_cap(search::Limits& limits, const DeviceSpec& device);

// Both caps as JSON, and as text behind a GPU's name: " with at most 8 SMs and 32,768 bytes of
// shared memory per block"; nothing without any.
io::CapsJson caps_json(const search::Limits& limits);
std::string caps_text(const search::Limits& limits);

// --space, else the family's built-in space.
Expected<search::Space> read_space(const Options& options, const Family& family);

// --seed, default 1.
Expected<std::uint64_t> read_seed(const Options& options);

// --jobs; 0 where not given: one per core.
Expected<int> read_jobs(const Options& options);

// Decimal digits only, lo to hi.
Expected<std::uint64_t> read_count(std::string_view flag, const std::string& text, std::uint64_t lo,
                                   std::uint64_t hi);

// A finite decimal number, lo or more.
Expected<double> read_real(std::string_view flag, const std::string& text, double lo);

}  // namespace autotune::cli
