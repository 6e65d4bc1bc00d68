// One planning request inside search/: what stays the same while configs are generated and checked.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "search/codes.h"
#include "search/plan.h"

namespace autotune::search {

// All that it points to must outlive it.
struct Request {
  const Family* family;
  Problem problem;  // checked
  KernelTraits traits;
  const DeviceSpec* device;
  const Space* space;
  const Limits* limits;
};

// bad_input for an unknown family, a problem that is none, or a space that is not of this family.
Expected<Request> make_request(const Problem& problem, const DeviceSpec& device, const Space& space,
                               const Limits& limits);

// Configs that share a verdict: for a structural one all of a kernel that break this constraint
// first, for an exclude a single one, else one code in the allowed ones of its orders.
struct CheckedCode {
  const Config& config;  // the first of them; for a structural verdict the kernel alone
  std::int64_t configs;  // how many they are
  // Of a code:
  const std::shared_ptr<const TileOrders>& orders;
  std::span<const std::size_t> allowed;
  Resources resources;

  std::optional<Verdict> verdict;
};

// For survivors alone most of what does not fit is passed over, and what is broken is not counted
// whole.
enum class Wanted { all, survivors };

// Why a kernel is not exact enough for so short a k; empty where it is.
std::string short_of_k(const HostTwin& kernel, const KernelTraits& traits, std::int64_t k);

// Every config of every kernel of the space that serves the problem on the device, checked: the
// codes in the order of the space, then what is structurally unsound. Returns why the other kernels
// generated nothing: "simt: fp32 only".
std::vector<std::string> for_each_checked(const Request& request,
                                          const std::function<void(const CheckedCode&)>& visit,
                                          Wanted wanted = Wanted::all);

// The same as in plan.h for a request that is already made.
Expected<Plan> make_plan(const Request& request, Plan* counted = nullptr);
Expected<Candidate> default_candidate(const Request& request);

}  // namespace autotune::search
