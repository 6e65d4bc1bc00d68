#include "search/request.h"

#include <fmt/format.h>

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

void check_kernel(const Request& request, const HostTwin& kernel, const KernelSpace& space,
                  const Visit& visit) {
  const auto orders = std::make_shared<const TileOrders>(kernel, space);
  const auto in_all_orders = static_cast<std::int64_t>(orders->count());
  std::vector<std::size_t> all(orders->count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> some;  // that no exclude names
  CodeVisitor visitor;
  visitor.broken = [&](std::int16_t constraint, std::int64_t codes) {
    CheckedCode code;
    code.config.kernel = &kernel;
    code.configs = codes * in_all_orders;
    code.verdict = Verdict{Rule::structure, 1, 0, constraint};
    visit(code);
  };
  visitor.sound = [&](const Config& config) {
    CheckedCode code;
    code.orders = orders;
    code.allowed = all;
    if (!request.limits->excludes.empty()) {
      some.clear();
      for (const std::size_t i : all) {
        const Config each = orders->at(config, i);
        if (!is_excluded(each, *request.limits)) {
          some.push_back(i);
          continue;
        }
        CheckedCode excluded;
        excluded.config = each;
        excluded.verdict = Verdict{Rule::excluded, 1, 0};
        visit(excluded);
      }
      if (some.empty()) return;
      code.allowed = some;
    }
    code.config = orders->at(config, code.allowed.front());
    code.configs = static_cast<std::int64_t>(code.allowed.size());
    code.verdict = check_resources(code.config, request.problem, *request.device, *request.limits,
                                   code.resources);
    visit(code);
  };
  for_each_code(kernel, space, request.traits, visitor);
}

}  // namespace

std::vector<std::string> for_each_checked(const Request& request, const Visit& visit) {
  std::vector<std::string> unsupported;
  for (const HostTwin* kernel : request.family->kernels) {
    std::string reason = kernel->unsupported(request.traits, *request.device);
    if (!reason.empty()) {
      unsupported.push_back(fmt::format("{}: {}", kernel->name(), reason));
      continue;
    }
    for (const KernelSpace& kernel_space : request.space->kernels) {
      if (kernel_space.kernel == kernel->name()) {
        check_kernel(request, *kernel, kernel_space, visit);
      }
    }
  }
  return unsupported;
}

}  // namespace autotune::search
