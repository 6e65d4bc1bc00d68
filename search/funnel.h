// Counts of what was generated and why it was rejected.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/request.h"

namespace autotune::search {

class Funnel {
 public:
  void generate(std::int64_t configs) { generated_ += configs; }
  // So many of the generated ones, of which `config` is the first.
  void reject(const Config& config, const Verdict& verdict, std::int64_t configs);

  std::int64_t generated() const { return generated_; }
  // Rule name, or structure:<constraint name>, to count. Kernels' equal names add up.
  std::map<std::string, std::int64_t> rejected() const;

  // For a request without survivors: that the problem is too large for the device, or what rejected
  // most and the config that missed by least.
  Error nothing_fits(const Request& request, const std::vector<std::string>& unsupported) const;

 private:
  struct Kernel {
    const HostTwin* twin;
    std::vector<std::int64_t> constraints;
  };
  std::int64_t& structural(const Config& config, std::int16_t constraint);
  // What a key of rejected() says must hold; empty where it is no constraint.
  std::string constraint_text(std::string_view rejection) const;

  std::int64_t generated_ = 0;
  std::array<std::int64_t, kRuleCount> rules_{};
  std::vector<Kernel> kernels_;
  struct Miss {
    Config config;
    Verdict verdict;
    double ratio;
  };
  std::optional<Miss> closest_;
  std::optional<Verdict> size_;  // of memory, else of blocks: the nearest that any config came
};

}  // namespace autotune::search
