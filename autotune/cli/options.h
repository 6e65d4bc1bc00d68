// Every option of every command: its spelling, its help and where its text goes. The texts are read
// by request.h with the same parsers as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace autotune::cli {

// As typed; empty or false where not given.
struct Options {
  std::string family, suite;
  std::string m, n, k, lda, ldb, ldc, tokens, hidden, intermediate;
  std::string dtype, out_dtype, layout, alpha, beta, mode, activation;
  bool exact_fp32 = false;
  std::string device, gpu_spec;
  std::string space, max_smem, max_sms;
  std::vector<std::string> excludes;
  bool keep_slow = false;
  std::string cache;
  std::string json;
  bool quiet = false;
  int verbose = 0;
  std::string compile, audit;
  std::string config;
  std::string budget, trials, patience, strategy, jobs, seed;
  bool resume = false;
  bool fresh = false;
  bool from_scratch = false;
  std::string baseline;
  std::string sustain;
  std::string action;
  std::vector<std::string> arguments;
  std::string yaml;
  bool all = false;
  std::string role;
  std::string bundle;
  bool left_out = false;
  std::vector<std::string> calibration_data, excluded_problems;
  std::string calibration;
  std::string sweep, pairs;
  std::string data, seeds, batch, svg;
  bool fit_others = false;
};

// Groups of options; a command takes some of them.
enum OptionSet : std::uint32_t {
  kFamily = 1u << 0,      // the positional FAMILY
  kSuite = 1u << 1,       // --suite in its place
  kProblem = 1u << 2,     // what is computed
  kDevice = 1u << 3,      // --device, --gpu-spec
  kSpace = 1u << 4,       // --space, --max-smem, --exclude, --keep-slow
  kMaxSms = 1u << 5,      // --max-sms
  kCache = 1u << 6,       // --cache
  kOutput = 1u << 7,      // --json, -q, -v
  kPlan = 1u << 8,        // --compile, --audit
  kConfig = 1u << 9,      // --config
  kTune = 1u << 10,       // --budget, --trials, ...
  kSeed = 1u << 11,       // --seed
  kJobs = 1u << 12,       // --jobs
  kBench = 1u << 13,      // --baseline, --sustain
  kCacheArgs = 1u << 14,  // ACTION, ARGUMENTS, --yaml, --all
  kWorker = 1u << 15,     // ROLE and --device of a worker
  kBundle = 1u << 16,     // --output
  kCalibrate = 1u << 19,  // --data, --exclude-problem, --output of a calibration
  kLeftOut = 1u << 20,    // --left-out
  kSweep = 1u << 17,      // --trials, --budget, --pairs, --output of a sweep
  kReplay = 1u << 18,     // --data, --strategy, --seeds, --batch, --trials, --fit-others, --svg
};

// Adds the options of `sets` (OptionSet bits) to a command; parsing it fills `options`, which must
// outlive it.
void add_options(CLI::App& command, std::uint32_t sets, Options& options);

}  // namespace autotune::cli
