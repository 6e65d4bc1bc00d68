#include "autotune/cli/options.h"

#include <CLI/CLI.hpp>
#include <cstddef>

#include "kernels/problem.h"

namespace autotune::cli {
namespace {

struct TextOption {
  std::uint32_t set;
  const char* group;
  const char* flag;   // a positional has no dashes
  const char* value;  // what help calls it; nothing for a positional
  std::string Options::*member;
  const char* help;
};

constexpr const char* kGroupProblem = "Problem";
constexpr const char* kGroupDevice = "Device";
constexpr const char* kGroupSearch = "Search";
constexpr const char* kGroupRun = "Run";
constexpr const char* kGroupOutput = "Output";

const TextOption kTextOptions[] = {
    {kFamily, kGroupProblem, "FAMILY", "", &Options::family,
     "Kernel family: gemm; geglu: activation(A B) .* (A Up); geglu_mlp: geglu and a gemm behind "
     "it"},
    {kSuite, kGroupProblem, "--suite", "NAME|FILE", &Options::suite,
     "Problems of a suite in place of FAMILY and dimensions: a built-in name or a YAML file"},
    {kProblem, kGroupProblem, "--m", "N", &Options::m,
     "Rows of A and C. 1..8192 (tune, bench, bundle): a ladder of m, the powers of two and, from "
     "32 on, what is halfway between them; any m on it is then answered from the rungs beside it "
     "(in nn and nt where --lda is given)"},
    {kProblem, kGroupProblem, "--n", "N", &Options::n, "Columns of B and C"},
    {kProblem, kGroupProblem, "--k", "N", &Options::k, "Columns of A, rows of B"},
    {kProblem, kGroupProblem, "--tokens", "N", &Options::tokens,
     "Of geglu_mlp: rows of x and y; 1..8192 as for --m"},
    {kProblem, kGroupProblem, "--hidden", "N", &Options::hidden,
     "Of geglu_mlp: columns of x and y"},
    {kProblem, kGroupProblem, "--intermediate", "N", &Options::intermediate,
     "Of geglu_mlp: columns of the gate and up weights"},
    {kProblem, kGroupProblem, "--dtype", "TYPE", &Options::dtype,
     "Element type: bf16 (default), fp16, tf32, fp32. Of a suite, a problem's own is kept, and "
     "told"},
    {kProblem, kGroupProblem, "--layout", "AB", &Options::layout,
     "tn (default), tt, nn, nt: how A and B lie in memory; tn is a Linear layer, tt is x @ w. Of a "
     "suite, a problem's own is kept, and told"},
    {kProblem, kGroupProblem, "--out-dtype", "TYPE", &Options::out_dtype,
     "Type of C: bf16, fp16, fp32 (default: as --dtype, fp32 for tf32)"},
    {kProblem, kGroupProblem, "--alpha", "X", &Options::alpha,
     "C = alpha A B + beta C (default 1)"},
    {kProblem, kGroupProblem, "--beta", "X", &Options::beta, "See --alpha (default 0)"},
    {kProblem, kGroupProblem, "--activation", "NAME", &Options::activation,
     "Of geglu and geglu_mlp: gelu_tanh (default), gelu_erf, silu, relu"},
    {kProblem, kGroupProblem, "--lda", "N", &Options::lda,
     "Leading dimension of A in elements (default: tight)"},
    {kProblem, kGroupProblem, "--ldb", "N", &Options::ldb, "Leading dimension of B"},
    {kProblem, kGroupProblem, "--ldc", "N", &Options::ldc, "Leading dimension of C"},
    {kProblem, kGroupProblem, "--mode", "MODE", &Options::mode,
     "cold (default): the L2 holds no operand; hot: called in a loop"},
    {kConfig, kGroupSearch, "--config", "CONFIG", &Options::config,
     "One config, e.g. mma:block_m=128,block_n=256, of geglu_mlp two: 'wgmma + mma' (explain: or "
     "the first alone); omitted parameters take the default's values"},

    {kDevice, kGroupDevice, "--device", "NAME|SLUG|INDEX|auto", &Options::device,
     "GPU: 'NVIDIA H200', nvidia-h200, 0, or auto (default: the first one here; replay: that of "
     "the data)"},
    {kDevice, kGroupDevice, "--gpu-spec", "FILE", &Options::gpu_spec,
     "GPU described by a YAML file, in place of a known one"},
    {kSpace, kGroupSearch, "--space", "FILE", &Options::space,
     "Search space from a YAML file, in place of the built-in one (best: what the default config "
     "is taken from)"},
    {kSpace, kGroupSearch, "--max-smem", "BYTES", &Options::max_smem,
     "Cap on shared memory per block (default: $AUTOTUNE_MAX_SMEM, else none)"},
    {kMaxSms, kGroupSearch, "--max-sms", "N", &Options::max_sms, "Use at most N SMs"},

    {kPlan, kGroupRun, "--compile", "N|all", &Options::compile,
     "Compile N sampled survivors, or all, for that GPU and check the cubins; needs no GPU"},
    {kPlan, kGroupRun, "--audit", "N", &Options::audit,
     "Compile N sampled rejects too and look for false passes and false rejects"},
    {kTune, kGroupRun, "--budget", "SECONDS", &Options::budget, "Stop after so long per problem"},
    {kTune, kGroupRun, "--trials", "N", &Options::trials,
     "Stop after N configs per problem, of geglu_mlp per kernel; a winner that is already known is "
     "measured beside them"},
    {kTune, kGroupRun, "--patience", "N", &Options::patience,
     "Stop after N configs in a row that gain less than 1 % (default: the strategy's own)"},
    {kTune, kGroupRun, "--strategy", "NAME", &Options::strategy,
     "model (default): the best predicted, then what the measured ones say of the rest; "
     "exhaustive; "
     "random; evolution"},
    {kJobs, kGroupRun, "--jobs", "N", &Options::jobs, "Compile workers (default: one per core)"},
    {kSeed, kGroupRun, "--seed", "N", &Options::seed, "Seed of samples and inputs (default 1)"},
    {kBench, kGroupRun, "--baseline", "cublas|none|CONFIG|FILE", &Options::baseline,
     "Time this beside ours, interleaved: cublas, another config, or the winners of another "
     "cache's "
     "file; none (default)"},
    {kBench, kGroupRun, "--sustain", "SECONDS", &Options::sustain,
     "With --baseline: keep both busy by turns, without a pause, for so long per problem"},
    {kCacheArgs, kGroupRun, "ACTION", "", &Options::action,
     "path, list, show, verify, remove, merge, export or import"},
    {kCacheArgs, kGroupRun, "--yaml", "FILE|FOLDER|-", &Options::yaml,
     "export: write one GPU's winners there, or into a folder one file per GPU"},
    {kCacheArgs, kGroupRun, "--device", "NAME|SLUG", &Options::device,
     "list, show, remove, export: those of this GPU only"},

    {kSweep, kGroupRun, "--trials", "N", &Options::trials, "Configs per problem (default 2000)"},
    {kSweep, kGroupRun, "--budget", "SECONDS", &Options::budget,
     "Stop after so long in all; the same command goes on later"},
    {kSweep, kGroupRun, "--pairs", "N", &Options::pairs,
     "Time each config so often beside the reference (default 5)"},
    {kSweep, kGroupOutput, "-o,--output", "FOLDER", &Options::sweep,
     "Where each problem's *.sweep file is written, or continued"},
    {kReplay, kGroupRun, "--data", "FILE|FOLDER", &Options::data,
     "What 'autotune sweep' wrote: one problem's file, or a folder of them"},
    {kReplay, kGroupRun, "--strategy", "NAME,...", &Options::strategy,
     "Which to replay: model (default), exhaustive, random, evolution; several with commas"},
    {kReplay, kGroupRun, "--seeds", "A..B", &Options::seeds,
     "Each once per seed, from A to B (default 0..19)"},
    {kReplay, kGroupRun, "--batch", "N", &Options::batch,
     "Results a strategy gets at a time (default 8)"},
    {kReplay, kGroupRun, "--trials", "N", &Options::trials, "Stop after N configs (default 200)"},
    {kReplay, kGroupOutput, "--svg", "FILE", &Options::svg, "Draw the curves into a picture"},
    {kBundle, kGroupOutput, "-o,--output", "FILE", &Options::bundle, "The bundle to write"},
    {kCalibrate, kGroupOutput, "-o,--output", "FILE", &Options::calibration,
     "Where the model section is written (default: stdout); of a file that exists, such as the "
     "GPU's YAML file, the rest stays"},
    {kCache, kGroupOutput, "--cache", "FILE", &Options::cache,
     "Cache database (default: $AUTOTUNE_CACHE, else the user's; see 'autotune cache path')"},
    {kOutput, kGroupOutput, "--json", "FILE|-", &Options::json,
     "Write the result as JSON; with '-' to stdout, and text for people to stderr"},
    {kWorker, kGroupRun, "ROLE", "", &Options::role, "compile or measure"},
    {kWorker, kGroupRun, "--device", "INDEX", &Options::device, "GPU of a measuring worker"},
};

// Takes any number of texts.
struct ListOption {
  std::uint32_t set;
  const char* group;
  const char* flag;  // a positional has no dashes
  const char* value;
  std::vector<std::string> Options::*member;
  const char* help;
};

const ListOption kListOptions[] = {
    {kSpace, kGroupSearch, "--exclude", "PATTERN", &Options::excludes,
     "Leave out configs that match, e.g. mma:stages=2,block_m=*; repeatable"},
    {kCalibrate, kGroupRun, "--data", "FILE|FOLDER", &Options::calibration_data,
     "Measured trials: a cache, what 'autotune sweep' wrote, winners (YAML), or a result of 'tune "
     "--json' or 'bench --json'; repeatable"},
    {kCalibrate, kGroupRun, "--exclude-problem", "WORDS", &Options::excluded_problems,
     "Leave problems out of the fit, to see its error on them: whole words of a problem's key, "
     "e.g. "
     "'m=4096 n=4096'; repeatable"},
    {kCacheArgs, kGroupRun, "PATTERN|FILE", "", &Options::arguments,
     "list, show, remove, export: words that name problems, in any order, e.g. 'bf16 m=4096'; "
     "merge, import: files"},
};

struct FlagOption {
  std::uint32_t set;
  const char* group;
  const char* flag;
  bool Options::*member;
  const char* help;
};

const FlagOption kFlagOptions[] = {
    {kProblem, kGroupProblem, "--exact-fp32", &Options::exact_fp32,
     "dtype fp32 by fp32 multiply-adds alone; otherwise tensor cores may multiply it in parts"},
    {kSpace, kGroupSearch, "--keep-slow", &Options::keep_slow,
     "Keep configs that would run badly (predicted spills, low occupancy)"},
    {kLeftOut, kGroupSearch, "--left-out", &Options::left_out,
     "Answer each problem from the others alone, as if its dimensions had never been tuned"},
    {kTune, kGroupRun, "--resume", &Options::resume,
     "Take what the cache holds as measured (default)"},
    {kReplay, kGroupRun, "--fit-others", &Options::fit_others,
     "For each problem, fit the performance model to the rest of the data first"},
    {kTune, kGroupRun, "--fresh", &Options::fresh, "Measure again what the cache holds"},
    {kTune, kGroupRun, "--from-scratch", &Options::from_scratch,
     "Try no winners of other problems, nor any that came with the program"},
    {kCacheArgs, kGroupRun, "--all", &Options::all, "remove: everything"},
    {kOutput, kGroupOutput, "-q,--quiet", &Options::quiet, "Only the result, and errors"},
};

// With the column of names before it, a line stays below 100 columns.
constexpr std::size_t kHelpColumns = 62;

std::string wrapped(std::string text) {
  for (std::size_t begin = 0; text.size() - begin > kHelpColumns;) {
    const std::size_t blank = text.rfind(' ', begin + kHelpColumns);
    if (blank == std::string::npos || blank <= begin) break;
    text[blank] = '\n';
    begin = blank + 1;
  }
  return text;
}

// An empty value is a shell variable that was not set, not "as if the option were not there".
std::string check_given(const std::string& value) {
  return value.empty() ? "needs a value that is not empty" : "";
}

}  // namespace

void add_options(CLI::App& command, std::uint32_t sets, Options& options) {
  for (const TextOption& entry : kTextOptions) {
    if ((entry.set & sets) == 0) continue;
    CLI::Option* option =
        command.add_option(entry.flag, options.*entry.member, wrapped(entry.help));
    option->type_name(entry.value)->group(entry.group);
    option->check(check_given);
  }
  for (const ListOption& entry : kListOptions) {
    if ((entry.set & sets) == 0) continue;
    CLI::Option* option =
        command.add_option(entry.flag, options.*entry.member, wrapped(entry.help));
    option->type_name(entry.value)->group(entry.group)->check(check_given);
    // Given again for more: one value each time.
    if (entry.flag[0] == '-') {
      option->expected(1)->allow_extra_args(false)->multi_option_policy(
          CLI::MultiOptionPolicy::TakeAll);
    }
  }
  for (const FlagOption& entry : kFlagOptions) {
    if ((entry.set & sets) == 0) continue;
    command.add_flag(entry.flag, options.*entry.member, wrapped(entry.help))->group(entry.group);
  }
  if ((sets & kOutput) != 0) {
    command
        .add_flag(
            "-v,--verbose", options.verbose,
            wrapped("Say more: every config as tune and sweep try it, every problem's whole plan"))
        ->group(kGroupOutput);
  }
}

}  // namespace autotune::cli
