#include "autotune/lookup/cubin_source.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "autotune/gpu/nvrtc.h"
#include "kernels/problem.h"
#include "search/check.h"

namespace autotune::lookup {
namespace {

std::optional<cache::Store> open(const std::filesystem::path& path, cache::Access access) {
  const auto file = path.empty() ? cache::default_path() : Expected<std::filesystem::path>(path);
  if (!file) return std::nullopt;
  auto store = cache::Store::open(*file, access);
  if (!store) return std::nullopt;
  return *std::move(store);
}

// Of a compiler, the name under which its cubins are stored.
std::string name_of(const std::string& compiler, bool plainly) {
  return plainly ? fmt::format("{} {}", compiler, gpu::kPlainLevel) : compiler;
}
bool was_plainly(std::string_view name) { return name.ends_with(gpu::kPlainLevel); }

cache::CubinKey key_of(const Config& config, const Problem& problem, const DeviceSpec& device) {
  return {source_hash(config, traits_of(problem), device), device.limits.arch, ""};
}

}  // namespace

std::optional<Code> stored_code(const cache::Store& store, const Config& config,
                                const Problem& problem, const DeviceSpec& device) {
  if (!store.gives_cubins()) return std::nullopt;
  cache::CubinKey key = key_of(config, problem, device);
  const auto compilers = store.compilers(key.source_hash, key.arch);
  if (!compilers) return std::nullopt;
  for (const std::string& compiler : *compilers) {
    key.compiler = compiler;
    auto found = store.cubin(key);
    if (!found || !*found) continue;
    // Left by a search, which never ran it: it may be wrong (Nvrtc::compile_unchecked).
    if ((*found)->actual.spills() && !was_plainly(compiler)) continue;
    return Code{key, **std::move(found)};
  }
  return std::nullopt;
}

Expected<Code> compiled_code(const Config& config, const Problem& problem,
                             const DeviceSpec& device) {
  const auto compiler = gpu::nvrtc();
  if (!compiler) return tl::unexpected(compiler.error());
  const HostTwin& kernel = *config.kernel;
  const auto definitions = kernel.definitions(config, traits_of(problem), device);
  gpu::CompiledCode code = (*compiler)->compile_unchecked(
      {kernel.source().text, kernel.entry(), device.limits.arch, definitions});
  if (!code.ok) {
    return fail(ErrorCode::failed, to_string(config) + " does not compile for " +
                                       device.limits.arch + ": " + code.log);
  }
  const Resources wanted = kernel.resources(config, problem, device, 0);
  if (const auto verdict = search::check_compiled(wanted, code.actual, device)) {
    return fail(ErrorCode::failed, search::describe(*verdict, config, device));
  }
  cache::CubinKey key = key_of(config, problem, device);
  key.compiler = name_of((*compiler)->version(), code.plainly);
  return Code{std::move(key), {std::move(code.cubin), code.actual}};
}

void keep_code(const std::filesystem::path& cache, const Code& code) {
  auto store = open(cache, cache::Access::read_write);
  if (store && store->writable()) static_cast<void>(store->put_cubin(code.key, code.cubin));
}

Expected<Cubin> cubin_of(const std::filesystem::path& cache, const Config& config,
                         const Problem& problem, const DeviceSpec& device, bool afresh) {
  if (!afresh) {
    const auto store = open(cache, cache::Access::read_only);
    auto code = store ? stored_code(*store, config, problem, device) : std::nullopt;
    if (code) return Cubin{std::move(code->cubin.image), true};
  }
  auto code = compiled_code(config, problem, device);
  if (!code) return tl::unexpected(code.error());
  keep_code(cache, *code);
  return Cubin{std::move(code->cubin.image), false};
}

}  // namespace autotune::lookup
