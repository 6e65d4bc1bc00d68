#include "autotune/lookup/bundle_maker.h"

#include <optional>
#include <utility>

#include "autotune/lookup/cubin_source.h"
#include "autotune/lookup/kernel.h"
#include "kernels/stages.h"

namespace autotune::lookup {
namespace {

// A winner that came with the program, as if it had been tuned here.
std::optional<cache::WinnerRecord> builtin_winner(const Problem& problem,
                                                  const DeviceSpec& device) {
  Sources sources;
  sources.tuned = io::tuned_entries();
  const auto best = known_about(problem, device, sources, {}).exact;
  if (!best) return std::nullopt;
  const auto config = KernelMaker::config_of(*best, problem, device);
  if (!config) return std::nullopt;
  cache::WinnerRecord winner;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(device), best->config,
                      source_hash(*config, problem, device), ""};
  winner.trial.measurement.median_us = best->median_us;
  return winner;
}

Expected<void> put_winner(cache::Store& into, const Problem& problem, const DeviceSpec& device,
                          const cache::Store* cache) {
  std::optional<cache::WinnerRecord> winner;
  if (cache != nullptr) {
    auto found = cache->winner(problem_key(problem), fingerprint(device));
    if (!found) return tl::unexpected(found.error());
    winner = *std::move(found);
  }
  if (!winner) winner = builtin_winner(problem, device);
  if (!winner) return {};
  winner->trial.run = 0;  // runs stay in the cache
  return into.crown(*winner);
}

// The code of one kernel of row.best into the bundle; notes where it came from.
Expected<void> put_kernel(cache::Store& into, BundleRow& row, const Config& config,
                          const Problem& problem, const DeviceSpec& device,
                          const cache::Store* cache,
                          const std::function<void(const BestConfig&)>& compiling) {
  if (const auto there = stored_code(into, config, problem, device)) {
    row.compiler = there->key.compiler;
    return {};
  }
  auto code = cache != nullptr ? stored_code(*cache, config, problem, device) : std::nullopt;
  if (!code) {
    compiling(row.best);
    auto compiled = compiled_code(config, problem, device);
    if (!compiled) return tl::unexpected(compiled.error());
    code = *std::move(compiled);
    row.compiled = true;
  }
  row.compiler = code->key.compiler;
  return into.put_cubin(code->key, code->cubin);
}

Expected<void> put_code(cache::Store& into, BundleRow& row, const DeviceSpec& device,
                        const cache::Store* cache,
                        const std::function<void(const BestConfig&)>& compiling) {
  const Problem& problem = row.best.problem;
  const auto config = KernelMaker::config_of(row.best, problem, device);
  if (!config) return tl::unexpected(config.error());
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    auto put =
        put_kernel(into, row, stage_of(*config, i), stage_of(problem, i), device, cache, compiling);
    if (!put) return put;
  }
  return {};
}

}  // namespace

Expected<MadeBundle> make_bundle(const cache::BundleInfo& info,
                                 const std::vector<Problem>& problems, const DeviceSpec& device,
                                 const cache::Store* cache,
                                 const std::function<void(const BestConfig&)>& compiling) {
  auto bundle = cache::Bundle::create(info);
  if (!bundle) return tl::unexpected(bundle.error());
  MadeBundle made{*std::move(bundle), {}};
  cache::Store& store = made.bundle.store();
  for (const Problem& problem : problems) {
    if (auto put = put_winner(store, problem, device, cache); !put) {
      return tl::unexpected(put.error());
    }
  }
  // All winners are in: from here on the bundle answers as it will where it is used.
  Recollection recollection;
  Sources sources;
  sources.tuned = io::tuned_entries();
  sources.bundle = &store;
  sources.recollection = &recollection;
  Bounds bounds;
  bounds.tuned_only = true;
  for (const Problem& problem : problems) {
    auto best = answer(problem, device, sources, bounds);
    if (!best) {
      return fail(best.error().code, describe(problem) + ": " + best.error().message);
    }
    BundleRow& row = made.rows.emplace_back();
    row.best = *std::move(best);
    if (auto put = put_code(store, row, device, cache, compiling); !put) {
      return tl::unexpected(put.error());
    }
  }
  return made;
}

}  // namespace autotune::lookup
