#include "search/request.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

namespace autotune::search {

Expected<Request> make_request(const Problem& problem, const DeviceSpec& device, const Space& space,
                               const Limits& limits) {
  const Family* family = find_family(problem.family);
  if (family == nullptr) {
    return fail(ErrorCode::bad_input, fmt::format("unknown kernel family '{}'", problem.family));
  }
  auto whole = checked(problem);
  if (!whole) return tl::unexpected(whole.error());
  if (auto valid = validate(space, *family); !valid) return tl::unexpected(valid.error());
  return Request{family, *whole, traits_of(*whole), &device, &space, &limits};
}

namespace {

using Visit = std::function<void(const CheckedCode&)>;

// The members are made where they lie: copies of what was just written would take longer than the
// check.
void visit_code(const Request& request, const Config& config,
                const std::shared_ptr<const TileOrders>& orders,
                std::span<const std::size_t> allowed, const Visit& visit) {
  const CheckedCode code{
      config,
      static_cast<std::int64_t>(allowed.size()),
      orders,
      allowed,
      resources_of(config, request.problem, *request.device, *request.limits),
      check_resources(code.resources, request.problem, *request.device, *request.limits)};
  visit(code);
}

void check_kernel(const Request& request, const HostTwin& kernel, const KernelSpace& space,
                  const Visit& visit, Wanted wanted) {
  const auto orders = std::make_shared<const TileOrders>(kernel, space);
  std::vector<std::size_t> all(orders->count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> some;  // that no exclude names
  const Config first = orders->at({&kernel, {}}, 0);
  const std::int64_t most_bytes = wanted == Wanted::all
                                      ? std::numeric_limits<std::int64_t>::max()
                                      : request.device->limits.smem_optin_per_block;
  const auto visit_orders = [&](const Config& config) {
    if (request.limits->excludes.empty()) return visit_code(request, config, orders, all, visit);
    some.clear();
    for (const std::size_t i : all) {
      const Config each = orders->at(config, i);
      if (is_excluded(each, *request.limits)) {
        visit({each, 1, orders, {}, {}, Verdict{Rule::excluded, 1, 0}});
      } else {
        some.push_back(i);
      }
    }
    if (some.empty()) return;
    visit_code(request, orders->at(config, some.front()), orders, some, visit);
  };
  const auto broken = for_each_sound_code(space, first, request.traits, visit_orders, most_bytes);
  for (std::size_t i = 0; i < broken.size(); ++i) {
    if (broken[i] == 0) continue;
    visit({first,
           broken[i] * static_cast<std::int64_t>(all.size()),
           orders,
           {},
           {},
           Verdict{Rule::structure, 1, 0, static_cast<std::int16_t>(i)}});
  }
}

}  // namespace

std::string short_of_k(const HostTwin& kernel, const KernelTraits& traits, std::int64_t k) {
  const std::int64_t least = kernel.least_k(traits);
  return k < least ? fmt::format("is exact enough from k = {} on", least) : "";
}

std::vector<std::string> for_each_checked(const Request& request, const Visit& visit,
                                          Wanted wanted) {
  std::vector<std::string> unsupported;
  const std::vector<KernelSpace>& spaces = request.space->kernels;
  for (const HostTwin* kernel : request.family->kernels) {
    const bool in_space =
        std::any_of(spaces.begin(), spaces.end(),
                    [kernel](const KernelSpace& each) { return each.kernel == kernel->name(); });
    if (!in_space) continue;
    std::string reason = kernel->unsupported(request.traits, *request.device);
    if (const std::int64_t most = kernel->most_rows(request.traits);
        reason.empty() && most > 0 && request.problem.m > most) {
      reason = fmt::format("serves at most {} rows of C", most);
    }
    if (reason.empty()) reason = short_of_k(*kernel, request.traits, request.problem.k);
    if (!reason.empty()) {
      unsupported.push_back(fmt::format("{}: {}", kernel->name(), reason));
      continue;
    }
    for (const KernelSpace& kernel_space : spaces) {
      if (kernel_space.kernel == kernel->name()) {
        check_kernel(request, *kernel, kernel_space, visit, wanted);
      }
    }
  }
  return unsupported;
}

}  // namespace autotune::search
