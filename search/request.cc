#include "search/request.h"

#include <fmt/format.h>

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

std::vector<std::string> for_each_checked(const Request& request, const CheckedVisitor& visit) {
  std::vector<std::string> unsupported;
  for (const HostTwin* kernel : request.family->kernels) {
    std::string reason = kernel->unsupported(request.traits, *request.device);
    if (const std::int64_t most = kernel->most_rows(); most > 0 && request.problem.m > most) {
      reason = fmt::format("serves at most {} rows of C", most);
    }
    if (!reason.empty()) {
      unsupported.push_back(fmt::format("{}: {}", kernel->name(), reason));
      continue;
    }
    for (const KernelSpace& kernel_space : request.space->kernels) {
      if (kernel_space.kernel != kernel->name()) continue;
      for_each_config(*kernel, kernel_space, [&](const Config& config) {
        Resources resources;
        const auto verdict = check(config, request.problem, request.traits, *request.device,
                                   *request.limits, &resources);
        visit(config, resources, verdict);
      });
    }
  }
  return unsupported;
}

}  // namespace autotune::search
