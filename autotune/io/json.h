// The JSON documents that commands write with --json, as functions from plain structs to text.
// Every document starts with "schema": 1. Keys are stable, and each is always there: the members
// below, but where a comment says otherwise. A value that is not known or was not asked for is null
// where a comment says so, or an std::optional; NaN and infinity become null too. A `device` is the
// GPU's name, a `config` the canonical string, a `problem` an object with every field of
// autotune::Problem (leading dimensions filled in; `activation` only where there is one). The text
// ends with a newline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/types.h"
#include "kernels/device_spec.h"

namespace autotune::io {

inline constexpr int kJsonSchema = 1;

// What a user's caps leave of the GPU, as keys beside `device`.
struct CapsJson {
  std::int64_t max_sms = 0;   // of --max-sms; 0, all: null
  std::int64_t max_smem = 0;  // of --max-smem, in bytes; 0: null
};

using Counts = std::map<std::string, std::int64_t>;

// --- plan ---

// What follows predicted_us is in an object `resources`.
struct RankedJson {
  std::string config;
  double predicted_us = 0;
  std::int64_t smem_bytes = 0;  // dynamic + static
  int threads = 0;
  int registers = 0;
  int blocks_per_sm = 0;
};

struct CompileJson {
  std::int64_t compiled = 0;  // tried, failures included
  std::int64_t failed = 0;
  std::int64_t mismatches = 0;
  double seconds = 0;
};

struct AuditJson {
  std::int64_t sampled = 0;
  std::int64_t false_passes = 0;
  std::int64_t false_rejects = 0;
};

struct PlanRowJson {
  Problem problem;
  std::int64_t generated = 0;
  Counts rejected;  // rule -> count
  std::int64_t survivors = 0;
  std::string default_config;      // empty where nothing fits: null
  std::vector<RankedJson> ranked;  // each compiled code once, in its best order of tiles
  std::optional<CompileJson> compile;
  std::optional<AuditJson> audit;
  std::string error;  // empty: null. Why this row has no plan, or its problem's stages, of which it
                      // is the last, do not fit together
};

// {device, problem, generated, ...} for one problem; {device, suite, rows: [...]} with `suite`.
struct PlanJson {
  std::string device;
  std::optional<std::string> suite;  // its name; set: rows. Empty: null, the rows are stages
  std::vector<PlanRowJson> rows;     // exactly one without a suite
  CapsJson caps;
};
std::string to_json(const PlanJson& document);

// --- explain ---

struct TermJson {
  std::string label;
  std::string expression;
  std::int64_t value = 0;
};

struct TimeTermJson {
  std::string label;
  double us = 0;
};

struct VerdictJson {
  std::string rule;  // "shared_memory", "structure:warps_divide_block_m"
  std::int64_t required = 0;
  std::int64_t limit = 0;
  std::string text;  // the sentence that a person sees
};

// smem_bytes to workspace_bytes are in an object `resources`; the three lists of terms in one
// called `terms`, as `smem`, `threads` and `registers`.
struct ExplainJson {
  std::string device;
  CapsJson caps;
  Problem problem;
  std::string config;
  bool fits = false;
  std::int64_t smem_bytes = 0;  // dynamic + static
  std::int64_t static_smem_bytes = 0;
  int threads = 0;
  int registers = 0;
  int register_demand = 0;
  int barriers = 0;
  int cluster = 1;
  int blocks_per_sm = 0;
  std::int64_t grid = 0;
  bool cooperative = false;
  std::int64_t workspace_bytes = 0;
  std::vector<TermJson> smem_terms;
  std::vector<TermJson> thread_terms;
  std::vector<TermJson> register_terms;
  std::vector<VerdictJson> verdicts;
  std::string tried_instead;  // the config that launches the very same and is tried; empty: null
  double predicted_us = 0;    // 0: null
  std::vector<TimeTermJson> time_terms;
  std::string nearest;              // the nearest config that fits; empty: null
  double nearest_predicted_us = 0;  // 0: null
};
std::string to_json(const ExplainJson& document);

// {stages: [as above, ...], together} for a problem that takes several kernels.
struct ExplainStagesJson {
  std::vector<ExplainJson> stages;
  std::string together;  // why not all of them fit at once; empty: null
};
std::string to_json(const ExplainStagesJson& document);

// --- tune ---

struct FailureJson {
  std::string config;
  std::string outcome;
  std::string what;  // empty: null
};

struct TuneRowJson {
  Problem problem;
  std::string winner;    // empty where none was found: null
  double median_us = 0;  // 0: null
  double tflops = 0;     // 0: null
  Counts trials;         // outcome -> count
  std::vector<FailureJson> failures;
  double seconds = 0;
  std::string match;        // "exact"; empty: null
  double default_us = 0;    // the default config in the same run; 0: null
  double lead_percent = 0;  // 0, with `tie` false: also where there is no second
  bool tie = false;
  bool crowned = false;
  bool cancelled = false;
  std::int64_t reused = 0;    // trials answered by the cache
  std::int64_t compiled = 0;  // codes that no cache held
  std::string error;          // empty: null
};

struct TuneJson {
  std::string device;
  std::vector<TuneRowJson> rows;
  std::int64_t max_sms = 0;  // of --max-sms; 0, all: null
};
std::string to_json(const TuneJson& document);

// --- bench ---

struct BaselineJson {
  std::string name;  // "cublasLt #3"
  double median_us = 0;
  int candidates = 0;
};

struct BenchRowJson {
  Problem problem;              // its family is the row's `family`
  std::string config;           // empty where nothing fits: null
  std::string match;            // where the config comes from: "exact", ..., "given"; empty: null
  double median_us = 0;         // 0: null
  double median_rel_error = 0;  // standard error of the median / median
  double tflops = 0;            // 0: null
  double floor_percent = 0;     // 0: null
  bool floor_measured = false;  // measured read curve and rate; else the datasheet's numbers
  double rel_error = 0;         // of the result: |out - ref|_F / |ref|_F
  std::optional<BaselineJson> baseline;
  std::optional<double> speedup;  // baseline time / ours
  double speedup_lo = 0;          // with speedup_hi: `speedup_ci95`, the 95 % confidence interval
  double speedup_hi = 0;          // as [lo, hi]; null where speedup is
  std::string error;              // empty: null
};

struct BenchJson {
  std::string device;
  std::vector<BenchRowJson> rows;
  std::optional<double> geomean_speedup;
  std::optional<double> min_speedup;
  std::int64_t max_sms = 0;  // of --max-sms; 0, all: null
};
std::string to_json(const BenchJson& document);

// --- sweep ---

struct SweepRowJson {
  Problem problem;
  std::string file;
  Counts trials;       // outcome -> count, earlier runs' included
  std::string best;    // empty: null
  double best_us = 0;  // 0: null
  bool complete = false;
  double seconds = 0;
  std::string error;  // empty: null
};

struct SweepJson {
  std::string device;
  std::vector<SweepRowJson> rows;
};
std::string to_json(const SweepJson& document);

// --- replay ---

struct ReplayRowJson {
  Problem problem;
  std::string device;
  std::string strategy;
  std::int64_t configs = 0;    // in the data
  double best_us = 0;          // of the data
  double default_ratio = 0;    // the default config's time / the best; 0 where it failed: null
  std::vector<double> median;  // best so far / best after 1, 2, ... configs, of the median seed;
  std::vector<double> worst;   // null before a config ran
  // Configs until within 1 % and 3 % of the best, of the median seed; 0, never: null.
  std::int64_t within_1 = 0;
  std::int64_t within_3 = 0;
};

struct ReplayJson {
  std::vector<ReplayRowJson> rows;
};
std::string to_json(const ReplayJson& document);

// --- best ---

struct BestRowJson {
  Problem problem;
  std::string config;
  std::string match;         // "exact", "nearest_problem", "other_device", "default"
  std::string from_problem;  // empty: null
  double median_us = 0;      // of from_problem, where there is one; 0, never measured: null
  double all_sms_us = 0;     // in its place where it was measured with more SMs than asked for
  std::string error;         // empty: null
};

// {device, problem, config, ...} for one problem; {device, rows: [...]} with `suite`.
struct BestJson {
  std::string device;
  std::optional<std::string> suite;
  std::vector<BestRowJson> rows;
  CapsJson caps;
};
std::string to_json(const BestJson& document);

// --- bundle ---

struct BundleRowJson {
  Problem problem;
  std::string config;        // empty where nothing fits: null
  std::string match;         // "exact", ... : what the bundle answers; empty: null
  std::string from_problem;  // empty: null
  std::string compiler;      // "nvrtc 13.0": of the code in the bundle; empty: null
  bool compiled = false;     // for this row; else the cache or a row before had it
  std::string error;         // empty: null. Such rows are the last
};

struct BundleJson {
  std::string file;
  std::string device;
  std::string arch;
  std::int64_t bytes = 0;
  std::vector<BundleRowJson> rows;
};
std::string to_json(const BundleJson& document);

// --- calibrate ---

struct ModelErrorJson {
  std::string of;  // "fitted, each problem left out"
  std::int64_t trials = 0;
  double median = 0;  // of |predicted / measured - 1|
  double p90 = 0;
  double first_choice = 1;  // time of what is predicted to be fastest / the fastest measured
};

struct CalibrateJson {
  std::string device;
  std::int64_t problems = 0;  // that were fitted to
  std::int64_t trials = 0;
  std::int64_t read = 0;  // trials of problems that are not excluded, of which those were taken
  std::vector<ModelErrorJson> errors;
  ModelCoefficients model;
};
std::string to_json(const CalibrateJson& document);

// --- devices ---

struct PresentJson {
  int index = 0;
  DeviceSpec device;
};

struct DevicesJson {
  std::vector<PresentJson> present;
  std::string why_none;  // why no GPU can be asked here; empty: null
  std::vector<DeviceSpec> known;
};
std::string to_json(const DevicesJson& document);

// --- any command ---

// What a command leaves that failed before it had a document of its own.
struct ErrorJson {
  std::string error;
};
std::string to_json(const ErrorJson& document);

// --- cache ---

struct CachePathJson {
  std::string path;
  bool exists = false;
};
std::string to_json(const CachePathJson& document);

struct CachedTrialJson {
  std::string config;
  std::string outcome;
  double median_us = 0;  // 0: null
  std::string log;       // empty: null
};

struct CachedWinnerJson {
  std::string device;
  Problem problem;
  std::string config;
  double median_us = 0;
  double tflops = 0;
  double default_us = 0;    // 0: null
  double lead_percent = 0;  // 0, with `tie` false: also where not known, as of an imported winner
  bool tie = false;
  std::string compiler;
  std::string source_hash;
  std::int64_t time = 0;                // seconds since the epoch
  std::vector<CachedTrialJson> trials;  // only `show` writes them
};

// `list` and `show`: {path, winners: [...]}; only `show` has trials.
struct CacheListJson {
  std::string path;
  bool show = false;
  std::vector<CachedWinnerJson> winners;
};
std::string to_json(const CacheListJson& document);

struct CacheVerifyJson {
  std::string path;
  std::vector<std::string> findings;  // none: a further key `sound` is true
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t cubins = 0;
};
std::string to_json(const CacheVerifyJson& document);

struct CacheRemoveJson {
  std::string path;
  std::int64_t removed = 0;
};
std::string to_json(const CacheRemoveJson& document);

// A file's winner that this version cannot run on the file's GPU.
struct LeftOutJson {
  std::string file;
  Problem problem;
  std::string config;
};

// `merge` and `import`: what was new, or better than what was there.
struct CacheMergeJson {
  std::string path;
  std::vector<std::string> files;
  std::int64_t runs = 0;
  std::int64_t trials = 0;
  std::int64_t winners = 0;
  std::int64_t cubins = 0;
  std::vector<LeftOutJson> left_out;  // of `import`
};
std::string to_json(const CacheMergeJson& document);

// What the `options` of a run say that came from a file.
std::string import_options(const std::string& file);

struct ExportedFileJson {
  std::string device;
  std::string file;  // "-": stdout
  std::int64_t winners = 0;
};

// A winner of code that has changed since.
struct StaleWinnerJson {
  std::string device;
  Problem problem;
  std::string config;
};

struct CacheExportJson {
  std::string path;
  std::vector<ExportedFileJson> files;
  std::vector<StaleWinnerJson> left_out;
};
std::string to_json(const CacheExportJson& document);

}  // namespace autotune::io
