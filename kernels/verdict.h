// Why a config cannot (or should not) run, as plain numbers; and what became of one that was tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace autotune {

struct DeviceSpec;

// In the order in which they are checked: a rejected config counts under the first it breaks.
enum class Rule : std::uint8_t {
  structure,        // a structural constraint of the kernel (a tile its warps do not divide)
  excluded,         // --exclude
  rows,             // more rows of C than the config serves
  co_residency,     // more blocks that wait for each other than run at once, one on each SM
  user_cap,         // --max-smem
  shared_memory,    // hard: dynamic + static against the opt-in limit
  threads,          // hard: threads per block
  registers,        // hard: launch registers of all warps against the block's limit
  cluster,          // hard
  barriers,         // hard
  instruction,      // hard: a matrix instruction wider than there is
  grid,             // hard: blocks of the launch against 2^31-1
  memory,           // hard: operands and workspace against the device's memory
  predicted_spill,  // quality
  occupancy,        // quality: blocks per SM that registers were saved for and that cannot come
  wide_cluster,     // quality: more blocks that share loads than gain by it
};
inline constexpr int kRuleCount = 16;

std::string_view to_string(Rule rule);
std::optional<Rule> parse_rule(std::string_view text);
bool is_hard(Rule rule);     // audited: cannot run
bool is_quality(Rule rule);  // switched off by --keep-slow

struct Verdict {
  Rule rule = Rule::structure;
  std::int64_t required = 0;
  std::int64_t limit = 0;
  std::int16_t constraint = -1;  // index into the kernel's constraints for Rule::structure

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// "out of resource: shared memory, required 526336 bytes, limit 232448 bytes (NVIDIA H200, opt-in
// per block)". Structural verdicts need the kernel: see describe(Verdict, Config) in search.
std::string describe(const Verdict& verdict, const DeviceSpec& device);

enum class Outcome : std::uint8_t {
  pruned,
  compile_failed,
  compile_crashed,
  spilled,
  serialised,
  over_budget,
  launch_failed,
  timed_out,
  faulted,
  wrong_result,
  ok,
};
inline constexpr int kOutcomeCount = 11;
std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

}  // namespace autotune
