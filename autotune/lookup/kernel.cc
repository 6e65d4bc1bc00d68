#include "autotune/lookup/kernel.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "autotune/gpu/detect.h"
#include "autotune/gpu/launch.h"
#include "autotune/lookup/cubin_source.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "search/check.h"

namespace autotune {
namespace {

constexpr std::uint64_t kPointerAlignment = 16;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Expected<void> check_pointer(const char* name, std::uint64_t address) {
  if (address == 0) {
    return fail(ErrorCode::bad_input, fmt::format("launch: {} is a null pointer", name));
  }
  if (address % kPointerAlignment != 0) {
    return fail(ErrorCode::bad_input,
                fmt::format("launch: {} is not aligned to {} bytes", name, kPointerAlignment));
  }
  return {};
}

}  // namespace

struct Kernel::Impl {
  Problem problem;
  DeviceSpec device;
  Config config;
  std::int64_t workspace_bytes;
  gpu::LoadedKernel loaded;
};

namespace lookup {

Expected<Config> KernelMaker::config_of(const BestConfig& best, const Problem& problem,
                                        const DeviceSpec& device) {
  const Family* family = find_family(problem.family);
  if (family == nullptr) {
    return fail(ErrorCode::bad_input, "unknown kernel family '" + problem.family + "'");
  }
  const auto config = parse_config(best.config, *family);
  if (!config) return config;
  const KernelTraits traits = traits_of(problem);
  const std::string refusal = config->kernel->unsupported(traits, device);
  if (!refusal.empty()) {
    return fail(ErrorCode::nothing_fits,
                fmt::format("{} cannot run {}: {}", best.config, describe(problem), refusal));
  }
  search::Limits limits;
  limits.keep_slow = true;
  if (const auto verdict = search::check(*config, problem, traits, device, limits, nullptr)) {
    return fail(ErrorCode::nothing_fits, search::describe(*verdict, *config, device));
  }
  return config;
}

Expected<Kernel> KernelMaker::make(const std::string& image, const Config& config,
                                   const Problem& problem, const DeviceSpec& device) {
  auto loaded = gpu::LoadedKernel::load(image, config.kernel->entry());
  if (!loaded) return tl::unexpected(loaded.error());
  const auto verdict = loaded->prepare(config.kernel->launch_plan(config, problem, device, {}, 0));
  if (!verdict) return tl::unexpected(verdict.error());
  if (*verdict) return fail(ErrorCode::failed, search::describe(**verdict, config, device));
  const Resources resources = config.kernel->resources(config, problem, device, 0);
  return Kernel(std::make_unique<Kernel::Impl>(
      Kernel::Impl{problem, device, config, resources.workspace_bytes, *std::move(loaded)}));
}

}  // namespace lookup

Kernel::Kernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

Expected<Kernel> Kernel::load(const BestConfig& best, const BestOptions& options) {
  const auto problem = checked(best.problem);
  if (!problem) return tl::unexpected(problem.error());
  const auto gpu = gpu::detect_gpu(options.ordinal);
  if (!gpu) return tl::unexpected(gpu.error());
  const DeviceSpec& device = gpu->spec;
  if (device.name != best.device) {
    return fail(ErrorCode::bad_input,
                fmt::format("the config is for {}, but GPU {} is {}; ask best_config for this GPU",
                            best.device, options.ordinal, device.name));
  }
  const auto config = lookup::KernelMaker::config_of(best, *problem, device);
  if (!config) return tl::unexpected(config.error());

  auto cubin = lookup::cubin_of(options.cache, *config, *problem, device, false);
  if (!cubin) return tl::unexpected(cubin.error());
  auto kernel = lookup::KernelMaker::make(cubin->image, *config, *problem, device);
  if (kernel || !cubin->cached || kernel.error().code == ErrorCode::no_gpu) return kernel;
  // The driver refused what was stored.
  cubin = lookup::cubin_of(options.cache, *config, *problem, device, true);
  if (!cubin) return tl::unexpected(cubin.error());
  return lookup::KernelMaker::make(cubin->image, *config, *problem, device);
}

Expected<void> Kernel::launch(const void* a, const void* b, void* c, void* stream, void* workspace,
                              const void* up) const {
  const DevicePointers pointers{address_of(a), address_of(b), address_of(c), address_of(workspace),
                                address_of(up)};
  if (auto sound = check_pointer("a", pointers.a); !sound) return sound;
  if (auto sound = check_pointer("b", pointers.b); !sound) return sound;
  if (auto sound = check_pointer("c", pointers.c); !sound) return sound;
  if (is_gated(impl_->problem)) {
    if (auto sound = check_pointer("up", pointers.up); !sound) return sound;
  } else if (up != nullptr) {
    return fail(ErrorCode::bad_input,
                fmt::format("launch: up is for gated families, not for {}", impl_->problem.family));
  }
  if (impl_->workspace_bytes > 0) {
    if (auto sound = check_pointer("workspace", pointers.workspace); !sound) return sound;
  }
  return impl_->loaded.launch(
      impl_->config.kernel->launch_plan(impl_->config, impl_->problem, impl_->device, pointers, 0),
      stream);
}

std::int64_t Kernel::workspace_bytes() const { return impl_->workspace_bytes; }

}  // namespace autotune
