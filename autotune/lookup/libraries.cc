#include "autotune/lookup/libraries.h"

#include <atomic>
#include <utility>

#include "autotune/lookup/fork.h"

namespace autotune::lookup {

Expected<std::unique_ptr<Libraries>> Libraries::open(const std::filesystem::path& cache,
                                                     const std::filesystem::path& bundle) {
  std::unique_ptr<Libraries> made(new Libraries);
  if (!bundle.empty()) {
    auto opened = cache::Bundle::open(bundle);
    if (!opened) return tl::unexpected(opened.error());
    made->bundle_ = *std::move(opened);
  }
  made->cache_path_ = cache;
  made->message_ = made->open_cache();
  return made;
}

Libraries::~Libraries() {
  if (generation_ != fork_generation()) abandon_cache();
}

std::string Libraries::open_cache() {
  generation_ = fork_generation();
  if (cache_path_.empty()) return {};
  auto store = cache::Store::open(cache_path_, cache::Access::read_only);
  if (!store) return store.error().message + "; going on without it";
  cache_ = *std::move(store);
  return cache_->message();
}

// SQLite wants a connection neither used nor closed by a child of the process that opened it.
void Libraries::abandon_cache() {
  if (!cache_) return;
  // Reachable to the end, so that it is no leak to those who look for leaks.
  struct Abandoned {
    cache::Store store;
    Abandoned* next;
  };
  static std::atomic<Abandoned*> latest{nullptr};
  auto* const abandoned = new Abandoned{*std::move(cache_), latest};
  while (!latest.compare_exchange_weak(abandoned->next, abandoned)) {
  }
  cache_.reset();
}

const cache::Store* Libraries::cache() {
  if (generation_ != fork_generation()) {
    abandon_cache();
    open_cache();
  }
  return cache_ ? &*cache_ : nullptr;
}

Known Libraries::known(const Problem& problem, const DeviceSpec& device) {
  return known_by(io::tuned_entries(), problem, device);
}

Known Libraries::stored(const Problem& problem, const DeviceSpec& device) {
  return known_by({}, problem, device);
}

Known Libraries::known_by(std::span<const io::BuiltinTuned> tuned, const Problem& problem,
                          const DeviceSpec& device) {
  const std::lock_guard hold(mutex_);
  Sources sources;
  sources.store = cache();
  sources.tuned = tuned;
  sources.bundle = bundle_ ? &bundle_->store() : nullptr;
  sources.recollection = &recollection_;
  return known_about(problem, device, sources, {});
}

std::optional<Code> Libraries::code(const Config& config, const Problem& problem,
                                    const DeviceSpec& device) {
  const std::lock_guard hold(mutex_);
  for (const cache::Store* store :
       {cache(), bundle_ ? &std::as_const(bundle_->store()) : nullptr}) {
    if (store == nullptr) continue;
    if (auto code = stored_code(*store, config, problem, device)) return code;
  }
  return std::nullopt;
}

void Libraries::keep(const Code& code) {
  if (cache_path_.empty()) return;
  const std::lock_guard hold(mutex_);
  // To write into a damaged one would be to begin a new one, which nobody would be told.
  if (cache() == nullptr) return;
  keep_code(cache_path_, code);
  if (cache()->readable()) return;
  // There was no cache, or none of this version, until now.
  recollection_.forget_winners();
  open_cache();
}

}  // namespace autotune::lookup
