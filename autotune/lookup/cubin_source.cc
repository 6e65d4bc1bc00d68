#include "autotune/lookup/cubin_source.h"

#include <optional>
#include <set>
#include <utility>

#include "autotune/gpu/nvrtc.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "search/check.h"

namespace autotune::lookup {
namespace {

using MaybeStore = std::optional<cache::Store>;

MaybeStore open(const std::filesystem::path& path) {
  const auto file = path.empty() ? cache::default_path() : Expected<std::filesystem::path>(path);
  if (!file) return std::nullopt;
  auto store = cache::Store::open(*file, cache::Access::read_write);
  if (!store) return std::nullopt;
  return *std::move(store);
}

// Code is stored per compiler version. Where NVRTC is absent, the versions that made this device's
// winners are the ones to ask for; asking for them first also saves opening NVRTC where it is
// there.
std::set<std::string> winners_compilers(const cache::Store& store, const Problem& problem,
                                        const DeviceSpec& device) {
  std::set<std::string> versions;
  const auto winners = store.winners(problem.family, fingerprint(device));
  if (!winners) return versions;
  for (const cache::WinnerRecord& winner : *winners) versions.insert(winner.trial.key.compiler);
  return versions;
}

std::optional<std::string> find(const cache::Store& store, const cache::CubinKey& key) {
  auto found = store.cubin(key);
  if (!found || !*found) return std::nullopt;
  return std::move((*found)->image);
}

Expected<gpu::CompiledCode> compile(const gpu::Nvrtc& compiler, const Config& config,
                                    const Problem& problem, const DeviceSpec& device) {
  const HostTwin& kernel = *config.kernel;
  const auto definitions = kernel.definitions(config, traits_of(problem), device);
  gpu::CompiledCode code =
      compiler.compile({kernel.source(), kernel.entry(), device.limits.arch, definitions});
  if (!code.ok) {
    return fail(ErrorCode::failed, to_string(config) + " does not compile for " +
                                       device.limits.arch + ": " + code.log);
  }
  const Resources wanted = kernel.resources(config, problem, device, 0);
  if (const auto verdict = search::check_compiled(wanted, code.actual, device)) {
    return fail(ErrorCode::failed, search::describe(*verdict, config, device));
  }
  return code;
}

}  // namespace

Expected<Cubin> cubin_of(const std::filesystem::path& cache, const Config& config,
                         const Problem& problem, const DeviceSpec& device, bool afresh) {
  MaybeStore store = open(cache);
  const bool ask = store && store->gives_cubins() && !afresh;
  cache::CubinKey key{source_hash(config, traits_of(problem), device), device.limits.arch, ""};
  if (ask) {
    for (const std::string& version : winners_compilers(*store, problem, device)) {
      key.compiler = version;
      if (auto image = find(*store, key)) return Cubin{*std::move(image), true};
    }
  }
  const auto compiler = gpu::nvrtc();
  if (!compiler) return tl::unexpected(compiler.error());
  key.compiler = (*compiler)->version();
  if (ask) {
    if (auto image = find(*store, key)) return Cubin{*std::move(image), true};
  }
  auto code = compile(**compiler, config, problem, device);
  if (!code) return tl::unexpected(code.error());
  if (store && store->writable()) {
    // The code runs whether or not it could be kept.
    static_cast<void>(store->put_cubin(key, {code->cubin, code->actual}));
  }
  return Cubin{std::move(code->cubin), false};
}

}  // namespace autotune::lookup
