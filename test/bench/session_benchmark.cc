// How long a program waits for the library: answers of a session with a cache of 10,000 winners,
// from the start of a process to its first answer, and, where there is a GPU, from kernel() to the
// end of the first launch, for a kernel in clusters too, and what a launch costs above the driver's
// own call.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "autotune/gpu/detect.h"
#include "autotune/gpu/handles.h"
#include "autotune/io/builtin.h"
#include "autotune/session.h"
#include "cache/store.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "search/plan.h"
#include "test/bench/clock.h"
#include "test/bench/launch_overhead.h"

extern char** environ;

namespace {

using namespace autotune;
namespace fs = std::filesystem;
using bench::Clock;
using bench::median;
using bench::us_since;

constexpr int kWinners = 10'000;
constexpr const char* kAnswer = "--answer";
constexpr const char* kCompile = "--compile";

int die(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

// Whether everything was as fast as it has to be.
bool fast_enough = true;

void print(const char* what, double us, double limit_us) {
  const bool fast = us <= limit_us;
  fast_enough = fast_enough && fast;
  fmt::print("{:<52} {:>9.2f} us  (at most {:g} us){}\n", what, us, limit_us,
             fast ? "" : "  TOO SLOW");
}

Problem problem_of(std::int64_t m) {
  Problem problem;
  problem.m = m;
  problem.n = problem.k = 4096;
  return problem;
}

struct Setting {
  fs::path cache;
  DeviceSpec device;
  SessionOptions options() const {
    SessionOptions options;
    options.cache = cache;
    options.device = device.slug;
    options.allow_compile = false;
    return options;
  }
};

cache::WinnerRecord winner_of(const Problem& problem, const Config& config,
                              const DeviceSpec& device) {
  cache::WinnerRecord winner;
  cache::TrialRecord& trial = winner.trial;
  trial.problem = problem;
  trial.key = {problem_key(problem), fingerprint(device), to_string(config),
               source_hash(config, traits_of(problem), device), "nvrtc 13.0"};
  trial.measurement.median_us = 100;
  return winner;
}

Expected<void> keep(const fs::path& file, const DeviceSpec& device,
                    const std::vector<cache::WinnerRecord>& winners) {
  auto store = cache::Store::open(file, cache::Access::read_write);
  if (!store) return tl::unexpected(store.error());
  const cache::RunInfo info{fingerprint(device), device.name, "nvrtc 13.0", "", "0", "{}",
                            "benchmark"};
  const auto adopted = store->adopt("benchmark", info, 1, winners);
  if (!adopted) return tl::unexpected(adopted.error());
  return {};
}

// A winner for each m from 1 on, of some hundred configs in turn.
Expected<void> fill(const Setting& setting) {
  const auto plan =
      search::make_plan(*checked(problem_of(4096)), setting.device, *io::default_space("gemm"), {});
  if (!plan) return tl::unexpected(plan.error());
  std::vector<cache::WinnerRecord> winners;
  for (int i = 0; i < kWinners; ++i) {
    winners.push_back(winner_of(*checked(problem_of(i + 1)), plan->survivors[i * 31 % 100].config,
                                setting.device));
  }
  return keep(setting.cache, setting.device, winners);
}

Expected<void> ask(const Session& session, std::int64_t m) {
  const auto best = session.best_config(problem_of(m));
  if (!best) return tl::unexpected(best.error());
  if (best->match == Match::exact) return {};
  return fail(ErrorCode::failed, "the benchmark's winner is not exact");
}

Expected<void> time_lookups(const Setting& setting) {
  const auto session = Session::open(setting.options());
  if (!session) return tl::unexpected(session.error());
  if (auto first = ask(*session, 1); !first) return first;
  std::vector<double> fresh;
  for (std::int64_t i = 1; i <= 1000; ++i) {
    const std::int64_t m = i * 7919 % kWinners + 1;
    const auto begin = Clock::now();
    if (auto asked = ask(*session, m); !asked) return asked;
    fresh.push_back(us_since(begin));
  }
  std::vector<double> repeated;
  for (int i = 0; i < 1000; ++i) {
    constexpr int kTimes = 100;
    const auto begin = Clock::now();
    for (int j = 0; j < kTimes; ++j) {
      if (auto asked = ask(*session, 1); !asked) return asked;
    }
    repeated.push_back(us_since(begin) / kTimes);
  }
  // m beyond the tuned ones. The first such question reads all winners.
  std::vector<double> nearest;
  for (std::int64_t i = 0; i <= 100; ++i) {
    const Problem beside = problem_of(kWinners + 1 + i);
    const auto begin = Clock::now();
    const auto best = session->best_config(beside);
    nearest.push_back(us_since(begin));
    if (!best) return tl::unexpected(best.error());
    if (best->match != Match::nearest_problem) {
      return fail(ErrorCode::failed, "the benchmark's winners do not answer for their neighbours");
    }
  }
  print("a first answer from the nearest problems, median", median(nearest), 5000);
  print("a repeated problem, median", median(repeated), 1);
  print("a first exact lookup in an open session, median", median(fresh), 20);
  return {};
}

// This program once more, which answers and ends.
int answer(const fs::path& cache, const std::string& device) {
  SessionOptions options;
  options.cache = cache;
  options.device = device;
  const auto session = Session::open(options);
  const auto asked = session ? ask(*session, 4096) : tl::unexpected(session.error());
  if (!asked) return die(asked.error());
  return write(STDOUT_FILENO, "!", 1) == 1 ? 0 : 1;
}

// How long such a child takes until it says so.
Expected<double> time_child(std::string flag, std::string cache, std::string device) {
  int ends[2];
  if (pipe(ends) != 0) return fail(ErrorCode::failed, "no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::array<char*, 5> arguments{flag.data(), flag.data(), cache.data(), device.data(), nullptr};
  pid_t child = 0;
  const auto begin = Clock::now();
  const int spawned =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char said = 0;
  const bool answered = spawned == 0 && read(ends[0], &said, 1) == 1;
  const double us = us_since(begin);
  close(ends[0]);
  if (spawned == 0) waitpid(child, nullptr, 0);
  if (!answered) return fail(ErrorCode::failed, "the started process did not answer");
  return us;
}

Expected<void> time_start(const Setting& setting) {
  std::vector<double> times;
  for (int i = 0; i < 101; ++i) {
    const auto us = time_child(kAnswer, setting.cache.string(), setting.device.slug);
    if (!us) return tl::unexpected(us.error());
    times.push_back(*us);
  }
  print("from process start to the first answer, median", median(times), 5000);
  return {};
}

// Device memory that nobody reads: timing needs no values.
struct Operands {
  const gpu::DriverApi& api;
  std::array<CUdeviceptr, 4> memory{};
  bool reserve(const Problem& problem, std::int64_t workspace_bytes) {
    const std::size_t bytes[] = {
        static_cast<std::size_t>(problem.m * problem.k * 2),
        static_cast<std::size_t>(problem.k * problem.n * 2),
        static_cast<std::size_t>(problem.m * problem.n * 2),
        static_cast<std::size_t>(std::max<std::int64_t>(workspace_bytes, 16))};
    for (int i = 0; i < 4; ++i) {
      if (api.cuMemAlloc(&memory[i], bytes[i]) != CUDA_SUCCESS) return false;
      if (api.cuMemsetD8Async(memory[i], 0, bytes[i], nullptr) != CUDA_SUCCESS) return false;
    }
    return api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS;
  }
  ~Operands() {
    for (const CUdeviceptr each : memory) api.cuMemFree(each);
  }
};

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// A problem whose winner is a config of this text, the default one where it is empty.
struct Loaded {
  const char* what;
  std::int64_t size;  // of m, n and k
  const char* config;
};

constexpr std::array kLoaded{
    Loaded{"kernel() to the end of the first launch", 256, ""},
    Loaded{"a later kernel(), the first in clusters", 1024,
           "wgmma:block_m=128,block_n=64,stages=4,consumers=1,cluster_m=2"},
};

Problem problem_of(const Loaded& loaded) {
  Problem problem;
  problem.m = problem.n = problem.k = loaded.size;
  return *checked(problem);
}

// This program once more, which leaves the code of their winners in the cache, so that the one that
// loads it has loaded none before.
int compile(const fs::path& cache) {
  const auto context = gpu::Context::create(0);
  if (!context) return die(context.error());
  SessionOptions options;
  options.cache = cache;
  const auto session = Session::open(options);
  if (!session) return die(session.error());
  for (const Loaded& each : kLoaded) {
    const auto kernel = session->kernel(problem_of(each));
    if (!kernel) return die(kernel.error());
  }
  return write(STDOUT_FILENO, "!", 1) == 1 ? 0 : 1;
}

Expected<void> time_first_launch(const Session& session, const Loaded& loaded) {
  const Problem problem = problem_of(loaded);
  const gpu::DriverApi& api = **gpu::driver();
  const auto stream = gpu::create_stream();
  if (!stream) return tl::unexpected(stream.error());
  Operands operands{api};
  if (!operands.reserve(problem, 64 << 20)) return fail(ErrorCode::failed, "no device memory");

  const auto begin = Clock::now();
  const auto kernel = session.kernel(problem);
  if (!kernel) return tl::unexpected(kernel.error());
  const auto launch = [&] {
    const auto& at = operands.memory;
    return kernel->launch(pointer(at[0]), pointer(at[1]), pointer(at[2]), stream->get(),
                          pointer(at[3]));
  };
  if (auto launched = launch(); !launched) return launched;
  if (api.cuStreamSynchronize(stream->get()) != CUDA_SUCCESS) {
    return fail(ErrorCode::failed, "the first launch failed");
  }
  print(loaded.what, us_since(begin), 10'000);

  const auto overhead = bench::launch_overhead_us(api, stream->get(), launch);
  if (!overhead) return tl::unexpected(overhead.error());
  print("its launch above a bare cuLaunchKernelEx, medians", *overhead, 1);
  return {};
}

Expected<void> time_launches(const Setting& setting) {
  const auto here = gpu::detect_gpu(0);
  if (!here) {
    fmt::print("SKIPPED: kernel() and launches: {}\n", here.error().message);
    return {};
  }
  SessionOptions options;
  options.cache = setting.cache.parent_path() / "gpu.db";
  // The winners and their code as tuning leaves them.
  std::vector<const Loaded*> fits;
  std::vector<cache::WinnerRecord> winners;
  {
    const auto untuned = Session::open(options);
    if (!untuned) return tl::unexpected(untuned.error());
    for (const Loaded& each : kLoaded) {
      const Problem problem = problem_of(each);
      const Family& family = *find_family(problem.family);
      const auto best = untuned->best_config(problem);
      if (!best) return tl::unexpected(best.error());
      const std::string text = *each.config == '\0' ? best->config : each.config;
      const Config config = *parse_config(text, family);
      const std::string refusal = config.kernel->unsupported(traits_of(problem), here->spec);
      if (!refusal.empty()) {
        fmt::print("SKIPPED: {}: {}\n", each.what, refusal);
        continue;
      }
      winners.push_back(winner_of(problem, config, here->spec));
      fits.push_back(&each);
    }
  }
  if (auto kept = keep(options.cache, here->spec, winners); !kept) return kept;
  if (auto compiled = time_child(kCompile, options.cache.string(), ""); !compiled) {
    return tl::unexpected(compiled.error());
  }

  options.allow_compile = false;
  const auto session = Session::open(options);
  if (!session) return tl::unexpected(session.error());
  const auto context = gpu::Context::create(0);
  if (!context) return tl::unexpected(context.error());
  for (const Loaded* each : fits) {
    if (auto timed = time_first_launch(*session, *each); !timed) return timed;
  }
  return {};
}

Expected<void> run(const Setting& setting) {
  if (auto filled = fill(setting); !filled) return filled;
  if (auto timed = time_lookups(setting); !timed) return timed;
  if (auto timed = time_start(setting); !timed) return timed;
  return time_launches(setting);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && argv[1] == std::string(kAnswer)) return answer(argv[2], argv[3]);
  if (argc == 4 && argv[1] == std::string(kCompile)) return compile(argv[2]);
  std::string folder = (fs::temp_directory_path() / "autotune-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return die({ErrorCode::io_failed, "no folder for a cache"});
  const Setting setting{fs::path(folder) / "cache.db", *io::find_device("nvidia-h200")};
  const auto done = run(setting);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!done) return die(done.error());
  return fast_enough ? 0 : 1;
}
