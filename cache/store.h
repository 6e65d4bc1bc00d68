// The SQLite store of runs, trials, winners and cubins. One file per user, many readers, few
// writers. Everything here is thread-compatible: one Store per thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"
#include "kernels/device_spec.h"
#include "kernels/trial.h"

namespace autotune::cache {

// $AUTOTUNE_CACHE, else $XDG_CACHE_HOME/autotune/cache.db, else $HOME/.cache/autotune/cache.db;
// without a HOME the passwd entry's folder. bad_input where none of these exists.
Expected<std::filesystem::path> default_path();

enum class Access : std::uint8_t {
  read_write,  // creates folder (0700) and file (0600) where missing
  read_only,   // answers what is there; a missing file is an empty store
};

struct RunInfo {
  std::string device_fingerprint;
  std::string device_name;
  std::string compiler;  // "nvrtc 13.0"
  std::string driver;    // "13.0" or ""
  std::string version;   // of this program
  std::string options;   // canonical JSON of what restricts or steers the run
  std::string host;
};

// What a trial is found again by: the whole problem, the device, the code and the compiler.
struct TrialKey {
  std::string problem_key;         // problem_key(problem)
  std::string device_fingerprint;  // fingerprint(device)
  std::string config;              // canonical string
  std::string source_hash;
  std::string compiler;

  friend bool operator==(const TrialKey&, const TrialKey&) = default;
};

struct TrialRecord {
  std::int64_t id = 0;  // assigned by the store
  std::int64_t run = 0;
  TrialKey key;
  Problem problem;  // stored in columns, so that nearest problems can be searched
  Outcome outcome = Outcome::ok;
  std::optional<Verdict> verdict;
  Resources predicted;
  ActualResources actual;
  Measurement measurement;
  double compile_seconds = 0;
  std::string log;
  std::int64_t time = 0;  // seconds since the epoch
};

struct WinnerRecord {
  TrialRecord trial;        // the winner itself
  double lead_percent = 0;  // over the second best; 0 where there was none
  bool tie = false;         // another finalist was as good
  double default_us = 0;    // what the default config took in the same run, 0 where it failed
  double seconds = 0;       // tuning time
};

// The part of a winner that answers a lookup.
struct KnownWinner {
  Problem problem;
  std::string device_fingerprint;
  std::string config;
  std::string source_hash;
  double median_us = 0;
};

struct CubinKey {
  std::string source_hash;
  std::string arch;      // "sm_90a"
  std::string compiler;  // "nvrtc 13.0"
};

struct CubinRecord {
  std::string image;  // the ELF bytes
  ActualResources actual;
};

struct Problems {                     // of `verify`
  std::vector<std::string> findings;  // empty: sound
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t cubins = 0;
};

struct Merged {  // rows that were new, or better than those they met
  std::int64_t runs = 0;
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t cubins = 0;
};

// Whether every word of `pattern` is one of a problem's key, whatever their order: "m=1" is not
// "m=16". A key's words also go by other names: "family=gemm", an MLP's dimensions by their own
// ("tokens=128"), dtype and layout by their values alone ("bf16", "tn"). The empty pattern names
// every problem, one of blanks none.
bool names_problem(std::string_view pattern, const std::string& problem_key);

// Whether `device`, a GPU's name or slug, is that of a fingerprint. The empty one is any.
bool names_device(const std::string& device, const std::string& fingerprint);

// Whether a trial was measured on what today's kernels compile to. An empty one: nobody can tell.
using IsCurrent = std::function<bool(const TrialRecord&)>;

class Store {
 public:
  // Creates or migrates the schema as needed. foreign_file for another application's database or a
  // newer schema (never overwritten); a corrupt file is moved aside by a writer and a fresh one
  // started, which `message()` tells; a reader gets corrupt_file. A read-only folder downgrades to
  // reading, told by `message()`; so is an older schema, whose content a reader does not give.
  static Expected<Store> open(const std::filesystem::path& path, Access access);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const std::filesystem::path& path() const;
  bool readable() const;  // false where there is no file yet, or none whose content can be used
  bool writable() const;
  const std::string& message() const;  // something the user should be told once, or empty
  bool gives_cubins() const;           // false where file or folder could be written by others

  // One tuning session.
  Expected<std::int64_t> begin_run(const RunInfo& info);
  Expected<void> end_run(std::int64_t run, const std::map<std::string, std::int64_t>& rejected);

  // Writing calls are one transaction each, durable when they return; io_failed where the store is
  // not writable() or the disk is full, and then nothing of the call is stored.

  // Fills id and, where 0, time. A second record under the same key replaces the first; a log is
  // cut after 16 KiB. NaN in a measurement is kept.
  Expected<void> record(TrialRecord& trial);
  Expected<std::optional<TrialRecord>> trial(const TrialKey& key) const;
  Expected<std::vector<TrialRecord>> trials(const std::string& problem_key,
                                            const std::string& device_fingerprint) const;
  // The problems of a family with trials on a device, whether they have a winner or not.
  Expected<std::vector<std::string>> problem_keys(const std::string& family,
                                                  const std::string& device_fingerprint) const;

  // The winner of a problem on a device. crown() replaces an existing one and refers to the trial
  // stored under the winner's key, which it stores where it is missing. A winner whose trial was
  // recorded again since and did not succeed is no longer found.
  Expected<void> crown(const WinnerRecord& winner);
  Expected<std::optional<WinnerRecord>> winner(const std::string& problem_key,
                                               const std::string& device_fingerprint) const;
  // All winners of a family, on one device or (empty fingerprint) on all.
  Expected<std::vector<WinnerRecord>> winners(const std::string& family,
                                              const std::string& device_fingerprint) const;
  // The same for programs that must not wait: less of each winner, by a statement that stays
  // prepared; all devices' in known_winners().
  Expected<std::optional<KnownWinner>> known_winner(const std::string& problem_key,
                                                    const std::string& device_fingerprint) const;
  Expected<std::vector<KnownWinner>> known_winners(const std::string& family) const;
  // Removes the winners and trials of the problems that `pattern` names on the GPUs that `device`
  // does (all, and all cubins, where both are empty). Returns the number of trials removed.
  Expected<std::int64_t> remove(const std::string& pattern, const std::string& device = "");

  // Cubins carry their SHA-256, checked on reading: a damaged one is a miss (nullopt) and removed.
  // A store that does not give cubins does not take them either (a silent success).
  Expected<void> put_cubin(const CubinKey& key, const CubinRecord& cubin);
  Expected<std::optional<CubinRecord>> cubin(const CubinKey& key) const;
  // The compilers whose cubins of a source are stored, the latest stored first.
  Expected<std::vector<std::string>> compilers(const std::string& source_hash,
                                               const std::string& arch) const;

  // Adds all that `others` hold: runs, trials, winners, and the cubins that they give. Of two
  // trials under one key the one with the better measured time stays, with the run that it came
  // from; of two winners likewise, but one that is current before one that is not. The result
  // depends neither on the order of the stores nor on how often they were merged. One transaction.
  Expected<Merged> merge(const std::vector<const Store*>& others, const IsCurrent& is_current = {});
  // The same with winners from elsewhere, as those of one run at `time` (seconds since the epoch);
  // `uid` tells that run from every other, the same one when the same winners come again.
  Expected<Merged> adopt(const std::string& uid, const RunInfo& info, std::int64_t time,
                         const std::vector<WinnerRecord>& winners,
                         const IsCurrent& is_current = {});

  // integrity_check, foreign keys, every trial's values, every cubin's hash.
  Expected<Problems> verify() const;

 private:
  friend class Bundle;
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::cache
