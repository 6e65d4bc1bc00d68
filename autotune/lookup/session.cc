#include "autotune/session.h"

#include <fmt/format.h>

#include <utility>

#include "autotune/io/builtin.h"
#include "autotune/lookup/device.h"
#include "autotune/lookup/fork.h"
#include "autotune/lookup/kernel.h"
#include "autotune/lookup/libraries.h"
#include "autotune/lookup/memory.h"
#include "kernels/problem.h"
#include "kernels/stages.h"
#include "search/check.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

// A device that is named is taken as known: asking the driver costs more than all the rest.
Expected<DeviceSpec> device_of(const SessionOptions& options) {
  const DeviceSpec* known = options.device.empty() ? nullptr : io::find_device(options.device);
  if (known != nullptr) return *known;
  BestOptions asked;
  asked.device = options.device;
  asked.ordinal = options.ordinal;
  return lookup::device_for(asked);
}

Expected<void> check_bundle(const cache::BundleInfo* info, const fs::path& file,
                            const DeviceSpec& device) {
  if (info == nullptr || info->arch == device.limits.arch) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("bundle {} is for {} ({}) and does not run on {} ({}): make one for that "
                          "GPU ('autotune bundle --device {}')",
                          file.string(), info->device, info->arch, device.name, device.limits.arch,
                          device.slug));
}

// Whether more blocks wait for each other in clusters than run at once by the SMs' number alone.
bool needs_clusters_at_once(const Config& config, const Problem& problem,
                            const DeviceSpec& device) {
  DeviceSpec unknown = device;
  unknown.clustered_sms = 0;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    const Problem part = stage_of(problem, i);
    const Resources needed = search::resources_of(own, part, unknown, {});
    if (needed.cooperative && search::check_resources(needed, part, unknown, {})) return true;
  }
  return false;
}

}  // namespace

struct Session::Impl {
  Expected<BestConfig> answer(const Problem& whole, const DeviceSpec& on) const;
  bool has_code(const BestConfig& best, const DeviceSpec& on) const;
  Expected<Kernel> kernel(const Config& config, const Problem& problem) const;
  Expected<std::string> compiled(const Config& config, const Problem& problem) const;

  SessionOptions options;
  DeviceSpec device;
  fs::path cache;  // empty: none
  std::string message;
  std::unique_ptr<lookup::Libraries> libraries;
  lookup::Memory memory;
  lookup::AroundFork around_fork{[this] {
                                   libraries->lock();
                                   memory.lock();
                                 },
                                 [this] {
                                   memory.unlock();
                                   libraries->unlock();
                                 }};
};

// One that came with the library is no answer for a session that may not compile and has no code of
// it, where code of one that is like it is stored.
Expected<BestConfig> Session::Impl::answer(const Problem& whole, const DeviceSpec& on) const {
  lookup::Bounds bounds;
  bounds.tuned_only = !options.allow_compile || libraries->bundle_info() != nullptr;
  lookup::Known known = libraries->known(whole, on);
  const bool as_it_is = options.allow_compile || lookup::is_stored(known);
  auto best = lookup::answer_of(std::move(known), whole, on, bounds);
  if (as_it_is || !best || has_code(*best, on)) return best;
  lookup::Known stored = libraries->stored(whole, on);
  if (!lookup::is_stored(stored)) return best;
  auto runnable = lookup::answer_of(std::move(stored), whole, on, bounds);
  return runnable && has_code(*runnable, on) ? std::move(runnable) : std::move(best);
}

bool Session::Impl::has_code(const BestConfig& best, const DeviceSpec& on) const {
  const auto config = lookup::KernelMaker::config_of(best, best.problem, on);
  if (!config) return false;
  for (std::size_t i = 0; i < stage_count(best.problem); ++i) {
    if (!libraries->code(stage_of(*config, i), stage_of(best.problem, i), on)) return false;
  }
  return true;
}

// Of code that is stored, or where it is refused or there is none, compiled now.
Expected<Kernel> Session::Impl::kernel(const Config& config, const Problem& problem) const {
  bool stored = false;
  auto kernel = lookup::KernelMaker::make(
      config, problem, device,
      [&](const Config& own, const Problem& stage) -> Expected<std::string> {
        auto found = libraries->code(own, stage, device);
        stored = stored || found;
        if (found) return std::move(found->cubin.image);
        return compiled(own, stage);
      });
  const bool refused = !kernel && kernel.error().code != ErrorCode::no_gpu;
  if (!refused || !stored || !options.allow_compile) return kernel;
  return lookup::KernelMaker::make(
      config, problem, device,
      [&](const Config& own, const Problem& stage) { return compiled(own, stage); });
}

// The image of a config that is stored nowhere, or in vain.
Expected<std::string> Session::Impl::compiled(const Config& config, const Problem& problem) const {
  if (!options.allow_compile) {
    const std::string bundle = options.bundle.empty() ? "none" : options.bundle.string();
    return fail(ErrorCode::no_compiler,
                fmt::format("{} for {} on {} is not compiled (cache: {}; bundle: {}), and this "
                            "session may not compile: tune it here, or make a bundle that has it "
                            "('autotune bundle')",
                            to_string(config), describe(problem), device.name,
                            cache.empty() ? "none" : cache.string(), bundle));
  }
  auto code = lookup::compiled_code(config, problem, device);
  if (!code) return tl::unexpected(code.error());
  libraries->keep(*code);
  return std::move(code->cubin.image);
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Expected<Session> Session::open(const SessionOptions& options) {
  auto device = device_of(options);
  if (!device) return tl::unexpected(device.error());
  std::string message;
  fs::path cache = options.cache;
  if (!options.use_cache) {
    cache.clear();
  } else if (cache.empty()) {
    auto path = cache::default_path();
    if (!path) message = path.error().message;
    cache = std::move(path).value_or(fs::path());
  }
  io::default_space({});  // made now, and not while another thread forks
  auto libraries = lookup::Libraries::open(cache, options.bundle);
  if (!libraries) return tl::unexpected(libraries.error());
  auto fits = check_bundle((*libraries)->bundle_info(), options.bundle, *device);
  if (!fits) return tl::unexpected(fits.error());
  if (message.empty()) message = (*libraries)->message();
  return Session(std::unique_ptr<Impl>(new Impl{options, *std::move(device), std::move(cache),
                                                std::move(message), *std::move(libraries)}));
}

Expected<BestConfig> Session::best_config(const Problem& problem) const {
  if (auto answer = impl_->memory.find(problem)) return *std::move(answer);
  const auto whole = checked(problem);
  if (!whole) return tl::unexpected(whole.error());
  return impl_->memory.keep(problem, impl_->answer(*whole, impl_->device));
}

Expected<Kernel> Session::kernel(const Problem& problem) const {
  const auto best = best_config(problem);
  if (!best) return tl::unexpected(best.error());
  const Problem& whole = best->problem;
  const auto config = lookup::KernelMaker::config_of(*best, whole, impl_->device);
  if (!config) return tl::unexpected(config.error());
  auto kernel = impl_->kernel(*config, whole);
  const bool refused = !kernel && kernel.error().code == ErrorCode::failed;
  if (!refused || !needs_clusters_at_once(*config, whole, impl_->device)) return kernel;
  // GPUs of one name need not hold the same number of clusters at once: do without.
  DeviceSpec unknown = impl_->device;
  unknown.clustered_sms = 0;
  const auto other = impl_->answer(whole, unknown);
  const auto without = other ? lookup::KernelMaker::config_of(*other, whole, unknown)
                             : Expected<Config>(tl::unexpected(other.error()));
  if (!without) return kernel;
  auto second = impl_->kernel(*without, whole);
  return second ? std::move(second) : std::move(kernel);
}

const std::string& Session::device() const { return impl_->device.name; }
const std::string& Session::message() const { return impl_->message; }

}  // namespace autotune
