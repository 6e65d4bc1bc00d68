#include "kernels/verdict.h"

#include <set>
#include <string>

#include "kernels/device_spec.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

TEST_CASE("every rule and outcome has a name of its own that reads back") {
  std::set<std::string_view> names;
  for (int i = 0; i < kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    CHECK(parse_rule(to_string(rule)) == rule);
    names.insert(to_string(rule));
  }
  CHECK(names.size() == kRuleCount);
  names.clear();
  for (int i = 0; i < kOutcomeCount; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    CHECK(parse_outcome(to_string(outcome)) == outcome);
    names.insert(to_string(outcome));
  }
  CHECK(names.size() == kOutcomeCount);
  CHECK(to_string(Rule::occupancy) == "occupancy");
  CHECK(to_string(Outcome::ok) == "ok");
  CHECK_FALSE(parse_rule("smem"));
  CHECK_FALSE(parse_outcome(""));
}

TEST_CASE("rules are hard, of quality, or neither") {
  for (int i = 0; i < kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    CHECK_FALSE((is_hard(rule) && is_quality(rule)));
  }
  CHECK_FALSE(is_hard(Rule::structure));
  CHECK_FALSE(is_hard(Rule::excluded));
  CHECK_FALSE(is_hard(Rule::rows));
  CHECK_FALSE(is_hard(Rule::co_residency));
  CHECK_FALSE(is_hard(Rule::user_cap));
  CHECK(is_hard(Rule::shared_memory));
  CHECK(is_hard(Rule::memory));
  CHECK(is_quality(Rule::predicted_spill));
  CHECK(is_quality(Rule::occupancy));
}

TEST_CASE("a verdict says what is short, by how much and where the limit comes from") {
  DeviceSpec device;
  device.name = "NVIDIA H200";
  device.limits.smem_optin_per_block = 232448;
  device.limits.static_smem_per_block = 49152;
  device.limits.threads_per_block = 1024;
  CHECK(describe({Rule::shared_memory, 526336, 232448}, device) ==
        "out of resource: shared memory, required 526336 bytes, limit 232448 bytes "
        "(NVIDIA H200, opt-in per block)");
  CHECK(describe({Rule::shared_memory, 49168, 49152}, device) ==
        "out of resource: static shared memory, required 49168 bytes, limit 49152 bytes "
        "(NVIDIA H200, per block)");
  CHECK(describe({Rule::user_cap, 65536, 32768}, device) ==
        "out of resource: shared memory, required 65536 bytes, limit 32768 bytes (--max-smem)");
  CHECK(describe({Rule::threads, 2048, 1024}, device) ==
        "out of resource: threads, required 2048, limit 1024 (NVIDIA H200, per block)");
  CHECK(describe({Rule::threads, 384, 256}, device)
            .rfind("out of resource: threads, required 384, limit 256 (", 0) == 0);
  CHECK(describe({Rule::threads, 384, 256}, device).find("compiled") != std::string::npos);
}

TEST_CASE("every verdict has a sentence of its own") {
  std::set<std::string> sentences;
  for (int i = 0; i < kRuleCount; ++i) {
    sentences.insert(describe({static_cast<Rule>(i), 2, 1, 0}, DeviceSpec{}));
  }
  CHECK(sentences.size() == kRuleCount);
  CHECK(sentences.count("") == 0);
}

}  // namespace
}  // namespace autotune
