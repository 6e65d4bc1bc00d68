// What every command is: a name, its options and a function. To add one is to add a file that
// defines it, its declaration here and a line in app.cc.
#pragma once

#include <cstdint>

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/types.h"

namespace autotune::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitNothingFits = 3;
inline constexpr int kExitNoGpu = 4;
inline constexpr int kExitInterrupted = 130;

int exit_code_of(ErrorCode code);

struct Command {
  const char* name;
  const char* summary;                                           // one line
  const char* examples;                                          // lines under "Examples:"
  std::uint32_t sets;                                            // OptionSet bits
  Expected<int> (*run)(const Options& options, Output& output);  // the exit code
  bool hidden = false;
};

extern const Command kDevicesCommand;
extern const Command kPlanCommand;
extern const Command kExplainCommand;
extern const Command kTuneCommand;
extern const Command kBenchCommand;
extern const Command kBestCommand;
extern const Command kBundleCommand;
extern const Command kCalibrateCommand;
extern const Command kSweepCommand;
extern const Command kReplayCommand;
extern const Command kCacheCommand;
extern const Command kWorkerCommand;

}  // namespace autotune::cli
