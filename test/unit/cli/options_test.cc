// Wrong usage: exit code 2, one sentence on stderr that names the option, nothing on stdout.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autotune/cli/command.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/support/tuning.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using test::contains;
using test::Ran;

namespace {

std::vector<std::string> plan_with(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"plan", "gemm", "--device", "nvidia-h200"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

void check_refused(const std::vector<std::string>& args, const std::string& part) {
  const Ran ran = test::run(args);
  INFO(ran.err);
  CHECK(ran.code == 2);
  CHECK(contains(ran.err, part));
  CHECK(ran.err.starts_with("autotune: "));
  CHECK(ran.out.empty());
}

}  // namespace

TEST_CASE("a result that cannot be written is a failure") {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"devices"},
                                               {"--version"},
                                               {"--help"},
                                               {"plan", "--help"},
                                               {"--man-page"},
                                               {"--bash-completion"}}) {
    std::ofstream full("/dev/full");
    std::ostringstream err;
    INFO(args.front());
    CHECK(cli::run_cli(args, {full, err, 0}) == cli::kExitFailed);
    CHECK(contains(err.str(), "could not be written to stdout"));
  }
}

TEST_CASE("dimensions are decimal numbers from 1 to 2^31-1") {
  for (const char* text : {"0", "-1", "1e3", "0x10", "4096.0", "2147483648", "1099511627776", "4k",
                           " 4", "+4", "99999999999999999999999999"}) {
    INFO(text);
    check_refused(plan_with({"--m", text, "--n", "64", "--k", "64"}), "--m");
  }
  check_refused(plan_with({"--m", "64", "--n", "64"}), "--k is missing");
  check_refused(plan_with({"--m", "64", "--n", "64", "--k", "64", "--lda", "0"}), "--lda");
}

TEST_CASE("a leading dimension shorter than its row is refused") {
  check_refused(plan_with({"--m", "64", "--n", "64", "--k", "64", "--lda", "63"}), "lda");
}

TEST_CASE("names that nobody knows are refused with what is known") {
  check_refused(plan_with({"--m", "1", "--n", "1", "--k", "1", "--dtype", "fp64"}), "bf16");
  check_refused(plan_with({"--m", "1", "--n", "1", "--k", "1", "--layout", "xx"}), "tn");
  check_refused(plan_with({"--m", "1", "--n", "1", "--k", "1", "--mode", "warm"}), "cold");
  check_refused(plan_with({"--m", "1", "--n", "1", "--k", "1", "--out-dtype", "int8"}),
                "--out-dtype");
  check_refused({"plan", "conv2d", "--m", "1", "--n", "1", "--k", "1"}, "gemm");
  check_refused({"plan", "--device", "nvidia-h200"}, "--suite");
  check_refused({"plan", "--device", "nvidia-h200", "--suite", "no_such_suite"}, "no_such_suite");
}

TEST_CASE("a ladder of m is several problems, for commands that take several") {
  check_refused(plan_with({"--m", "1..8", "--n", "64", "--k", "64"}),
                "--m: 1..8 is several problems");
  for (const char* range : {"8..1", "1..", "..8", "1...8", "0..8", "1..x"}) {
    check_refused({"bundle", "gemm", "--m", range, "--n", "64", "--k", "64", "--device",
                   "nvidia-h200", "-o", "/no/such/file"},
                  "--m");
  }
}

TEST_CASE("an MLP's dimensions are tokens, hidden and intermediate") {
  const auto mlp = [](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, "geglu_mlp", "--device", "nvidia-h200"});
    return more;
  };
  check_refused(mlp("plan", {"--tokens", "64", "--intermediate", "64"}),
                "--hidden is missing: a problem needs --tokens, --intermediate and --hidden");
  check_refused(mlp("plan", {"--tokens", "0", "--hidden", "64", "--intermediate", "64"}),
                "--tokens: '0'");
  for (const char* flag : {"--m", "--n", "--k"}) {
    check_refused(
        mlp("plan", {"--tokens", "64", "--hidden", "64", "--intermediate", "64", flag, "64"}),
        std::string(flag) +
            " does not go with the family geglu_mlp: its dimensions are --tokens, "
            "--intermediate and --hidden");
  }
  for (const char* flag : {"--tokens", "--hidden", "--intermediate"}) {
    check_refused(plan_with({"--m", "64", "--n", "64", "--k", "64", flag, "64"}),
                  std::string(flag) +
                      " does not go with the family gemm: its dimensions are --m, --n and --k");
    check_refused({"plan", "--suite", "geglu_mlp", flag, "64", "--device", "nvidia-h200"}, flag);
  }
  check_refused(mlp("plan", {"--tokens", "1..64", "--hidden", "64", "--intermediate", "64"}),
                "--tokens: 1..64 is several problems");
  check_refused(mlp("bundle", {"--tokens", "64..1", "--hidden", "64", "--intermediate", "64", "-o",
                               "/no/such/file"}),
                "--tokens: 64..1 is an empty range");
  check_refused(
      mlp("plan", {"--tokens", "64", "--hidden", "64", "--intermediate", "64", "--beta", "1"}),
      "beta = 1 does not go with the family geglu_mlp");
}

TEST_CASE("numbers of other options are checked too") {
  const std::vector<std::string> problem = {"--m", "64", "--n", "64", "--k", "64"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), problem.begin(), problem.end());
    return plan_with(more);
  };
  check_refused(with({"--max-smem", "32KiB"}), "--max-smem");
  check_refused(with({"--max-smem", "-1"}), "--max-smem");
  check_refused(with({"--alpha", "one"}), "--alpha");
  check_refused(with({"--beta", "nan"}), "--beta");
  check_refused(with({"--alpha", "inf"}), "--alpha");
  check_refused(with({"--exact-fp32"}), "exact_fp32 does not go with dtype bf16");
  check_refused(with({"--activation", "gelu"}), "gelu_tanh, gelu_erf, silu, relu");
  check_refused(with({"--activation", "silu"}), "does not go with the family gemm");
  check_refused(with({"--compile", "some"}), "--compile");
  check_refused(with({"--compile", "0"}), "--compile");
  check_refused(with({"--audit", "0"}), "--audit");
  check_refused(with({"--seed", "-1"}), "--seed");
  check_refused(with({"--exclude", "mma:no_such_parameter=1"}),
                "--exclude 'mma:no_such_parameter=1'");
  check_refused(with({"--max-sms", "0"}), "--max-sms: '0' is not a whole number");
  check_refused(with({"--space", "/no/such/space.yaml"}), "/no/such/space.yaml");
}

TEST_CASE("AUTOTUNE_MAX_SMEM is read like the option") {
  setenv("AUTOTUNE_MAX_SMEM", "lots", 1);
  check_refused(plan_with({"--m", "64", "--n", "64", "--k", "64"}), "AUTOTUNE_MAX_SMEM");
  CHECK(test::run(plan_with({"--m", "64", "--n", "64", "--k", "64", "--max-smem", "99999"})).code ==
        0);
  unsetenv("AUTOTUNE_MAX_SMEM");
}

TEST_CASE("an option that may be repeated takes one value each time") {
  const auto ran = test::run({"plan", "--exclude", "mma:stages=2", "gemm", "--m", "64", "--n", "64",
                              "--k", "64", "--device", "nvidia-h200", "--exclude", "simt", "-q"});
  CHECK(ran.code == 0);
  check_refused({"plan", "gemm", "--exclude", "mma:stages=2", "mma:stages=3", "--m", "64", "--n",
                 "64", "--k", "64", "--device", "nvidia-h200"},
                "mma:stages=3");
}

TEST_CASE("a suite and one problem's options exclude each other") {
  check_refused({"plan", "--suite", "gemm", "--m", "64", "--device", "nvidia-h200"}, "--m");
  check_refused({"plan", "--suite", "gemm", "--beta", "1", "--device", "nvidia-h200"}, "--beta");
  check_refused({"plan", "--suite", "gemm", "--exact-fp32", "--device", "nvidia-h200"},
                "--exact-fp32");
}

TEST_CASE("problems of a suite that keep their own dtype or layout are told") {
  const auto best = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"best",
                                     "--suite",
                                     "geglu",
                                     "--device",
                                     "nvidia-h200",
                                     "--cache",
                                     "/no/such/folder/cache.db"};
    args.insert(args.end(), more.begin(), more.end());
    const Ran ran = test::run(args);
    CHECK(ran.code == 0);
    return ran.err;
  };
  CHECK(contains(best({"--dtype", "fp16"}), "--dtype: 1 of 7 problems keeps its own dtype\n"));
  CHECK(contains(best({"--layout", "nn"}), "--layout: 1 of 7 problems keeps its own layout\n"));
  CHECK_FALSE(contains(best({"--layout", "tt"}), "own layout"));
  CHECK_FALSE(contains(best({"--dtype", "fp32"}), "own dtype"));
  CHECK_FALSE(contains(best({}), "own"));
}

TEST_CASE("a gated problem has an activation, and a suite gives its own") {
  const Ran ran = test::run({"plan", "geglu", "--m", "64", "--n", "256", "--k", "64",
                             "--activation", "silu", "--device", "nvidia-h200"});
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "geglu 64x256x64 bf16 tn activation=silu"));
  check_refused({"plan", "--suite", "geglu", "--activation", "silu", "--device", "nvidia-h200"},
                "--activation");
}

TEST_CASE("a suite of another family than the one named is refused") {
  const auto file = std::filesystem::temp_directory_path() / "autotune_cli_suite_test.yaml";
  std::ofstream(file) << "family: gemm\nproblems:\n  - {m: 64, n: 64, k: 64}\n";
  check_refused({"plan", "geglu_mlp", "--suite", file.string(), "--device", "nvidia-h200"}, "gemm");
  std::filesystem::remove(file);
}

TEST_CASE("options that do not exist, lack a value or come twice are wrong usage") {
  check_refused(plan_with({"--no-such-option"}), "autotune plan --help");
  check_refused(plan_with({"--m"}), "--m needs a value: --m N; see 'autotune plan --help'");
  check_refused(plan_with({"--exclude", "gemv", "--exclude"}),
                "--exclude needs a value: --exclude");
  check_refused(plan_with({"--m", "1", "--m", "2"}), "--m is given 2 times; give it once; see");
  check_refused(plan_with({"--exact-fp32=maybe"}), "--exact-fp32 takes no value");
  check_refused(plan_with({"--verbose=x"}), "--verbose takes no value");
  check_refused({}, "autotune --help");
  check_refused({}, "devices, plan, explain");
  check_refused({"dance"}, "unknown command 'dance'");
  check_refused({"--foo", "plan"}, "unknown option '--foo' before a command; a command's options");
  check_refused({"--json", "x", "plan", "gemm"}, "unknown option '--json' before a command");
  check_refused(plan_with({"--dtyp", "bf16"}), "unknown option '--dtyp'");
  check_refused(plan_with({"64"}), "unexpected argument '64'");
  check_refused({"plan", "gemm", "--m", "1", "--n", "1", "--k", "1", "--device", ""}, "--device");
}

TEST_CASE("what tune and bench are told is checked before a GPU is asked for") {
  const auto with = [](const std::string& command, const std::string& flag,
                       const std::string& value) {
    return std::vector<std::string>{command, "gemm", "--m", "64", "--n",
                                    "64",    "--k",  "64",  flag, value};
  };
  check_refused(with("tune", "--strategy", "luck"), "--strategy");
  check_refused(with("tune", "--patience", "0"), "--patience");
  check_refused({"tune", "gemm", "--m", "64", "--n", "64", "--k", "64", "--strategy", "random",
                 "--patience", "9"},
                "--patience");
  check_refused(with("tune", "--trials", "0"), "--trials");
  check_refused(with("tune", "--budget", "0"), "--budget");
  check_refused(with("bench", "--sustain", "2"), "--baseline");
  check_refused(with("bench", "--config", "mma:blok_m=64"), "--config");
  check_refused(with("bench", "--baseline", "cutlass"), "--baseline: 'cutlass' is not one of");
  check_refused(with("bench", "--baseline", "mma:blok_m=64"), "--baseline 'mma:blok_m=64'");
  check_refused(with("bench", "--baseline", "mna:block_m=64"), "no kernel 'mna'");
  CHECK(contains(test::run(with("bench", "--baseline", AUTOTUNE_BINARY)).err, "--baseline: "));
  for (const char* baseline : {"cublas", "none", "mma", "mma:block_m=64"}) {
    CHECK_FALSE(contains(test::run(with("bench", "--baseline", baseline)).err, "--baseline"));
  }
  const auto mlp = [](const std::string& flag, const std::string& value) {
    return std::vector<std::string>{"bench", "geglu_mlp",      "--tokens", "64", "--hidden",
                                    "64",    "--intermediate", "64",       flag, value};
  };
  for (const char* flag : {"--config", "--baseline"}) {
    check_refused(mlp(flag, "mma"), "a config of geglu_mlp is two");
    check_refused(mlp(flag, "mma + mma:blok_m=64"), std::string(flag) + " 'mma:blok_m=64'");
    CHECK_FALSE(contains(test::run(mlp(flag, "mma + mma")).err, flag));
  }
  for (const char* strategy : {"model", "random", "exhaustive", "evolution"}) {
    CHECK_FALSE(contains(test::run(with("tune", "--strategy", strategy)).err, "--strategy"));
  }
}

TEST_CASE("a sweep needs a folder to be written to") {
  check_refused({"sweep", "--suite", "gemm"}, "--output");
  check_refused({"sweep", "--suite", "gemm", "-o", "data", "--pairs", "0"}, "--pairs");
}

TEST_CASE("a sweep is of single kernels") {
  check_refused({"sweep", "--suite", "geglu_mlp", "-o", "data"},
                "name geglu or gemm in place of geglu_mlp");
}

TEST_CASE("a completion offers every family") {
  const Ran ran = test::run({"--bash-completion"});
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "words=\"gemm geglu geglu_mlp\""));
}

TEST_CASE("a completion offers files and folders where they are asked for") {
  const test::TempFolder folder;
  std::ofstream(folder / "some.yaml");
  std::filesystem::create_directory(folder / "some.data");
  std::ofstream(folder / "completion") << test::run({"--bash-completion"}).out;
  const auto offered = [&](const std::string& words) {
    return test::run_command("cd " + folder.str() + " && bash -c '. ./completion; COMP_WORDS=(" +
                             words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _autotune; "
                             "echo ${COMPREPLY[@]}'")
        .out;
  };
  CHECK(offered("autotune sweep -o some") == "some.data\n");
  CHECK(offered("autotune sweep --space some") == "some.data some.yaml\n");
  CHECK(offered("autotune sweep --trials some") == "\n");
  CHECK(offered("autotune sweep --outp") == "--output\n");
}

TEST_CASE("a bundle needs a file to be written to") {
  const test::TempFolder folder;
  std::ofstream(folder / "letter") << "Dear Sir or Madam";
  const std::vector<std::string> bundle = {"bundle", "--suite", "gemm", "--device", "nvidia-h200"};
  const auto to = [&](const std::string& file) {
    std::vector<std::string> args = bundle;
    args.insert(args.end(), {"-o", file});
    return args;
  };
  check_refused(bundle, "--output");
  check_refused(to("/no/such/folder/x"), "cannot write '/no/such/folder/x': No such file");
  check_refused(to(folder / std::string(255, 'x')), "File name too long");
  check_refused(to(folder / "letter"), "letter exists and is no bundle; it was left alone");
  check_refused(to("/dev/null"), "/dev/null exists and is no bundle");
  CHECK(std::filesystem::file_size(folder / "letter") == 17);
}

TEST_CASE("what a command writes goes to a file each, which is seen before it begins") {
  const test::TempFolder folder;
  const std::string file = folder / "precious";
  const std::string again = folder / "./precious";
  std::ofstream(file) << "text";
  const std::vector<std::string> problem = {"gemm", "--m", "64", "--n", "64", "--k", "64"};
  const auto with = [&](const std::string& command, std::vector<std::string> more) {
    more.insert(more.begin(), problem.begin(), problem.end());
    more.insert(more.begin(), command);
    return more;
  };
  for (const std::vector<std::string>& args :
       {with("bundle", {"--device", "nvidia-h200", "-o", file, "--json", again}),
        with("bundle", {"--device", "nvidia-h200", "-o", file, "--cache", again}),
        with("sweep", {"-o", file, "--json", again}),
        with("tune", {"--cache", file, "--json", again}),
        {"calibrate", "--data", "x.db", "-o", file, "--json", again},
        {"replay", "--data", "x", "--svg", file, "--json", again},
        {"cache", "export", "--yaml", file, "--json", again}}) {
    check_refused(args, "precious' are the same file; give each its own");
  }
  // The cache that is opened where none is named, there yet or not, also by a command without one.
  const test::Setting cache("AUTOTUNE_CACHE", folder / "cache.db");
  for (const std::vector<std::string>& args :
       {with("tune", {"--json", folder / "./cache.db"}),
        with("plan", {"--json", folder / "cache.db"}),
        {"cache", "list", "--json", folder / "cache.db"},
        with("bundle", {"--device", "nvidia-h200", "-o", folder / "cache.db"})}) {
    check_refused(args, "the cache '");
  }
  CHECK_FALSE(std::filesystem::exists(folder / "cache.db"));
  CHECK(std::filesystem::file_size(file) == 4);
}

TEST_CASE("a command that fails leaves no older result") {
  const test::TempFolder folder;
  const std::string file = folder / "result.json";
  const std::vector<std::string> problem = {"gemm", "--m",      "64",       "--n",    "64", "--k",
                                            "64",   "--device", "Tesla T4", "--json", file};
  std::ofstream(file) << R"({"schema": 1, "of": "an hour ago"})";
  std::vector<std::string> args = problem;
  args.insert(args.begin(), "explain");
  args.insert(args.end(), {"--config", "wgmma:block_m=64"});
  const Ran ran = test::run(args);
  CHECK(ran.code == 3);
  std::ifstream stream(file);
  const std::string left{std::istreambuf_iterator<char>(stream), {}};
  CHECK(contains(left, "\"error\": \"wgmma cannot run"));
  CHECK_FALSE(contains(left, "an hour ago"));
}

TEST_CASE("an unknown GPU is bad input, a known one that is not here has its own code") {
  check_refused({"plan", "gemm", "--m", "1", "--n", "1", "--k", "1", "--device", "voodoo-3"},
                "voodoo-3");
  const Ran ran =
      test::run({"tune", "gemm", "--m", "64", "--n", "64", "--k", "64", "--device", "NVIDIA Thor"});
  CHECK(ran.code == 4);
  CHECK(contains(ran.err, "NVIDIA Thor"));
}

TEST_CASE("help and version are no errors") {
  for (const char* command : {"devices", "plan", "explain", "tune", "bench", "best", "bundle",
                              "cache", "sweep", "replay", "calibrate"}) {
    const Ran ran = test::run({command, "--help"});
    INFO(command);
    CHECK(ran.code == 0);
    CHECK(ran.err.empty());
    CHECK(contains(ran.out, "Examples:\n  autotune " + std::string(command)));
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
  const Ran help = test::run({"--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "plan"));
  CHECK_FALSE(contains(help.out, "worker"));
  const Ran version = test::run({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("autotune 0."));
}

TEST_CASE("help shows one value for an option that is given again for more") {
  CHECK(contains(test::run({"plan", "--help"}).out, "--exclude PATTERN  "));
  const std::string calibrate = test::run({"calibrate", "--help"}).out;
  CHECK(contains(calibrate, "--data FILE|FOLDER  "));
  CHECK(contains(calibrate, "--exclude-problem WORDS  "));
  CHECK(contains(test::run({"cache", "--help"}).out, "PATTERN|FILE ...  "));
}

TEST_CASE("every kind of error has its exit code") {
  CHECK(cli::exit_code_of(ErrorCode::bad_input) == 2);
  CHECK(cli::exit_code_of(ErrorCode::foreign_file) == 2);
  CHECK(cli::exit_code_of(ErrorCode::nothing_fits) == 3);
  CHECK(cli::exit_code_of(ErrorCode::no_gpu) == 4);
  CHECK(cli::exit_code_of(ErrorCode::no_compiler) == 4);
  CHECK(cli::exit_code_of(ErrorCode::cancelled) == 130);
  for (const ErrorCode code :
       {ErrorCode::io_failed, ErrorCode::corrupt_file, ErrorCode::busy, ErrorCode::failed}) {
    CHECK(cli::exit_code_of(code) == 1);
  }
}
