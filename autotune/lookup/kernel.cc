#include "autotune/lookup/kernel.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "autotune/gpu/detect.h"
#include "autotune/gpu/launch.h"
#include "autotune/lookup/cubin_source.h"
#include "kernels/kernel.h"
#include "kernels/stages.h"
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
  struct Stage {
    gpu::LoadedKernel kernel;
    gpu::ReadyLaunch launch;
  };
  Problem problem;
  std::int64_t workspace_bytes = 0;
  std::vector<Stage> stages;
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
  search::Limits limits;
  limits.keep_slow = true;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Problem stage = stage_of(problem, i);
    const Config own = stage_of(*config, i);
    const KernelTraits traits = traits_of(stage);
    const std::string refusal = own.kernel->unsupported(traits, device);
    if (!refusal.empty()) {
      return fail(ErrorCode::nothing_fits,
                  fmt::format("{} cannot run {}: {}", to_string(own), describe(stage), refusal));
    }
    if (const auto verdict = search::check(own, stage, traits, device, limits, nullptr)) {
      return fail(ErrorCode::nothing_fits, search::describe(*verdict, own, device));
    }
  }
  if (const auto verdict = search::check_memory(*config, problem, device, limits)) {
    return fail(ErrorCode::nothing_fits, describe(*verdict, device));
  }
  return config;
}

Expected<Kernel> KernelMaker::make(std::span<const std::string> images, const Config& config,
                                   const Problem& problem, const DeviceSpec& device) {
  const StageWorkspace workspace = workspace_of(config, problem, device, 0);
  std::vector<Kernel::Impl::Stage> stages;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    auto loaded = gpu::LoadedKernel::load(images[i], own.kernel->entry());
    if (!loaded) return tl::unexpected(loaded.error());
    const LaunchPlan plan = stage_launch(config, problem, i, device, {}, workspace, 0);
    const auto verdict = loaded->prepare(plan);
    if (!verdict) return tl::unexpected(verdict.error());
    if (*verdict) return fail(ErrorCode::failed, search::describe(**verdict, own, device));
    const DeviceSpec here = loaded->placed(device);
    auto ready = loaded->ready([&](const DevicePointers& at) {
      return stage_launch(config, problem, i, here, at, workspace, 0);
    });
    if (!ready) return tl::unexpected(ready.error());
    stages.push_back({*std::move(loaded), *std::move(ready)});
  }
  return Kernel(
      std::make_unique<Kernel::Impl>(Kernel::Impl{problem, workspace.bytes, std::move(stages)}));
}

Expected<Kernel> KernelMaker::make(const Config& config, const Problem& problem,
                                   const DeviceSpec& device, const CodeOf& code_of) {
  std::vector<std::string> images;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    auto image = code_of(stage_of(config, i), stage_of(problem, i));
    if (!image) return tl::unexpected(image.error());
    images.push_back(*std::move(image));
  }
  return make(images, config, problem, device);
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

  bool stored = false;
  const auto made = [&](bool afresh) {
    return lookup::KernelMaker::make(
        *config, *problem, device,
        [&](const Config& own, const Problem& stage) -> Expected<std::string> {
          auto cubin = lookup::cubin_of(options.cache, own, stage, device, afresh);
          if (!cubin) return tl::unexpected(cubin.error());
          stored = stored || cubin->cached;
          return std::move(cubin->image);
        });
  };
  auto kernel = made(false);
  // The driver may have refused what was stored.
  if (kernel || !stored || kernel.error().code == ErrorCode::no_gpu) return kernel;
  return made(true);
}

Expected<void> Kernel::launch(const void* a, const void* b, void* c, void* stream, void* workspace,
                              const void* up, const void* down) const {
  const DevicePointers at{address_of(a),         address_of(b),  address_of(c),
                          address_of(workspace), address_of(up), address_of(down)};
  const Problem& problem = impl_->problem;
  const struct {
    const char* name;
    std::uint64_t address;
    bool needed;
    bool refused;
  } pointers[] = {
      {"a", at.a, true, false},
      {"b", at.b, true, false},
      {"c", at.c, true, false},
      {"up", at.up, has_activation(problem), !has_activation(problem)},
      {"down", at.down, is_mlp(problem), !is_mlp(problem)},
      {"workspace", at.workspace, impl_->workspace_bytes > 0, false},
  };
  for (const auto& pointer : pointers) {
    if (pointer.refused && pointer.address != 0) {
      return fail(ErrorCode::bad_input, fmt::format("launch: {} does not go with the family {}",
                                                    pointer.name, problem.family));
    }
    if (!pointer.needed) continue;
    if (auto sound = check_pointer(pointer.name, pointer.address); !sound) return sound;
  }
  for (const Impl::Stage& stage : impl_->stages) {
    if (auto state = stage.kernel.launch(stage.launch, at, stream); !state) return state;
  }
  return {};
}

std::int64_t Kernel::workspace_bytes() const { return impl_->workspace_bytes; }

}  // namespace autotune
