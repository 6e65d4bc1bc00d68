// Matching a problem to what is known: the order of sources behind best_config().
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autotune/autotune.h"
#include "autotune/io/builtin.h"
#include "cache/store.h"
#include "kernels/device_spec.h"
#include "kernels/kernel.h"
#include "search/plan.h"
#include "search/space.h"

namespace autotune::lookup {

// What bounds an answer besides the device.
struct Bounds {
  const search::Space* space = nullptr;  // of the default config; null: the built-in one
  search::Limits limits;                 // the user's; every answer keeps them
  // The performance model's choice only where nothing like the problem was tuned: for programs that
  // can launch what is stored, and nothing else.
  bool tuned_only = false;
};

// What many answers for one device need only once: whole lists of winners, as they were when first
// asked for, and the hashes of configs' sources.
class Recollection {
 public:
  const std::vector<cache::KnownWinner>& winners(const cache::Store& store,
                                                 const std::string& family);
  // source_hash() of stages.h.
  std::string hash_of(const Config& config, const Problem& problem, const DeviceSpec& device);

  // For when a store is opened anew.
  void forget_winners() { winners_.clear(); }

  // What kept a store from being read, the first time.
  const std::optional<Error>& trouble() const { return trouble_; }
  void note(const Error& error) {
    if (!trouble_) trouble_ = error;
  }

 private:
  std::map<std::pair<const cache::Store*, std::string>, std::vector<cache::KnownWinner>> winners_;
  struct Hashed {
    KernelTraits traits;
    std::string hash;
  };
  const std::string& hash_of_kernel(const Config& config, const KernelTraits& traits,
                                    const DeviceSpec& device);
  std::unordered_multimap<Config, Hashed, ConfigHash> hashes_;
  std::optional<Error> trouble_;
};

// Where answers come from, best first. Any may be missing.
struct Sources {
  const cache::Store* store = nullptr;      // the user's cache
  std::span<const io::BuiltinTuned> tuned;  // winners that came with the program
  const cache::Store* bundle = nullptr;     // what was deployed; asked before `tuned`
  Recollection* recollection = nullptr;     // of this device, for callers with many problems
  bool left_out = false;  // as if nothing of the dimensions that are asked about had been tuned
};

// Where something was tuned, beside the device that is asked about.
enum class Where {
  here,
  sibling,  // a known GPU of the same compute capability with as many SMs: an H200 beside an H100
  elsewhere,
};

// Who holds a winner, and so whether its code may be there. Of one that several hold the last
// counts: what was imported into a cache brought no code with it.
enum class Holder {
  cache,    // a search here left its code there
  program,  // came with it, without code
  bundle,   // holds the code of all its winners
};

// A winner of another problem or device, as a guess for this one.
struct Guess {
  std::string device;  // name
  Problem problem;
  Config config;  // fits this problem and device
  double median_us = 0;
  double distance = 0;  // distance.h, and more on another device
  Where where = Where::elsewhere;
  Holder holder = Holder::program;
};

// The winner for exactly this problem on this device (cache, bundle, built-in). Else, among the
// winners of the nearest problems on this device, a nearer one of a sibling, and the performance
// model's choice, what the model, corrected by what was measured here, expects to be fastest; a
// sibling's for this very problem comes before farther ones, and before the model's choice unless
// that promises far more. Else the nearest winner of another device, likewise; else the model's
// choice. Every answer was checked to fit. `problem` must be checked(). Errors: nothing_fits.
Expected<BestConfig> answer(const Problem& problem, const DeviceSpec& device,
                            const Sources& sources, const Bounds& bounds = {});

// Its two halves: what the sources know (one of the two is empty), and what follows from it, for
// which they are no longer needed.
struct Known {
  std::optional<BestConfig> exact;
  std::vector<Guess> nearest;
  std::vector<Known> stages;  // of a problem with several that is not known as a whole
  bool came_along = false;    // the exact one, with the program
};
// Whether what follows from it was tuned here and is in a cache or bundle, so that its code may be.
bool is_stored(const Known& known);
Known known_about(const Problem& problem, const DeviceSpec& device, const Sources& sources,
                  const search::Limits& limits);
Expected<BestConfig> answer_of(Known known, const Problem& problem, const DeviceSpec& device,
                               const Bounds& bounds = {});

// The performance model's choice.
Expected<search::Candidate> default_candidate(const Problem& problem, const DeviceSpec& device,
                                              const Bounds& bounds);
Expected<BestConfig> default_answer(const Problem& problem, const DeviceSpec& device,
                                    const Bounds& bounds = {});

// The same with the cache at `path` (empty: the user's) and what came with the program. A cache
// that cannot be read is skipped.
Expected<BestConfig> answer_from(const std::filesystem::path& path, const Problem& problem,
                                 const DeviceSpec& device);

}  // namespace autotune::lookup
