// Every kernel gives exact sums on the CPU, whatever order its threads and copies run in, on every
// architecture that it claims.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "autotune/io/builtin.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "test/emulated/emulate.h"
#include "test/support/catch.h"
#include "test/support/edges.h"
#include "test/support/on_all_cores.h"
#include "test/support/problems.h"
#include "test/support/ragged.h"
#include "test/support/small_launches.h"
#include "test/support/swapped.h"

using namespace autotune;

namespace {

// AUTOTUNE_EMULATED=whole: some 40 times as much, for a change of the kernels or of the emulator.
bool whole() {
  const char* asked = std::getenv("AUTOTUNE_EMULATED");
  return asked != nullptr && std::string(asked) == "whole";
}

struct Job {
  const DeviceSpec* device;
  Problem problem;
  Config config;
  int max_sms = 0;
  int seeds = 1;
};

// Each code is compiled once, whatever problems it serves.
std::shared_ptr<const emulator::Program> program_of(const Job& job) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const emulator::Program>> known;
  const std::string key =
      job.device->limits.arch + source_hash(job.config, traits_of(job.problem), *job.device);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  auto program = std::make_shared<const emulator::Program>(
      test::program_of(job.config, job.problem, *job.device));
  const std::lock_guard lock(mutex);
  return known.emplace(key, std::move(program)).first->second;
}

// Empty where each seed's results are right.
std::string complaint(const Job& job) {
  const std::string name =
      describe(job.problem) + " " + to_string(job.config) + " on " + job.device->name + ": ";
  const test::GivenMatrices given = test::draw(job.problem, 1);
  int seed = 1;
  try {
    const auto program = program_of(job);
    for (; seed <= job.seeds; ++seed) {
      const std::vector<float> results =
          test::emulate(*program, job.config, job.problem, *job.device, given,
                        static_cast<std::uint64_t>(seed), job.max_sms);
      const std::string wrong = test::difference(job.problem, given, results);
      if (!wrong.empty()) return name + wrong;
    }
  } catch (const emulator::Fault& fault) {
    return name + "seed " + std::to_string(seed) + ": " + fault.what();
  }
  return {};
}

// Runs the jobs on all cores and fails with what is wrong.
void check(const std::vector<Job>& jobs) {
  REQUIRE(!jobs.empty());
  std::vector<std::string> complaints(jobs.size());
  test::on_all_cores(jobs.size(), [&](std::size_t i) { complaints[i] = complaint(jobs[i]); });
  for (const std::string& each : complaints) {
    if (!each.empty()) FAIL_CHECK(each);
  }
}

const DeviceSpec& device(const char* name) {
  const DeviceSpec* found = io::find_device(name);
  REQUIRE(found != nullptr);
  return *found;
}

// One of each architecture's kind: what its kernels are compiled for differs.
constexpr const char* kDevices[] = {"nvidia-h200",           "tesla-t4",
                                    "nvidia-a100-sxm4-80gb", "nvidia-geforce-rtx-4090",
                                    "nvidia-b200",           "nvidia-geforce-rtx-5090"};

void add_sample(std::vector<Job>& jobs, const DeviceSpec& device, const Problem& problem, int count,
                std::uint64_t seed, const std::vector<std::string>& excluded = {}) {
  search::Limits limits;
  for (const std::string& kernel : excluded) {
    limits.excludes.push_back(parse_pattern(kernel, *find_family(problem.family)).value());
  }
  const auto plan = search::make_plan(problem, device, *io::default_space(problem.family), limits);
  if (!plan) return;  // bf16 below compute capability 8.0
  for (const search::Candidate& each : search::sample_survivors(*plan, count, seed)) {
    jobs.push_back({&device, problem, each.config});
  }
}

// At most about `target`, or eight, and as far from a multiple of eight as before, which rows'
// alignments depend on.
std::int64_t reduced(std::int64_t extent, std::int64_t target) {
  return extent <= target ? extent : std::max<std::int64_t>(target / 8, 1) * 8 + extent % 8;
}

// A smaller problem of `tiles` tiles each way, the last of them not whole, and of `k_tiles` k
// tiles.
Problem reduced(const Problem& problem, const Config& config, int tiles, int k_tiles) {
  const auto value = [&](const char* name) { return value_of(config, name); };
  const bool clusters =
      config.kernel->name().starts_with("wgmma") && config.kernel->name() != "wgmma_fp32";
  int tile_m = value("block_m") * (clusters ? value("cluster_m") : 1);
  int tile_n = value("block_n") * (clusters ? value("cluster_n") : 1);
  if (config.kernel->name() == "wgmma_swap") std::swap(tile_m, tile_n);  // block_m: columns of C
  Problem small = problem;
  small.m = reduced(problem.m, (tiles - 1) * tile_m + std::min(40, tile_m));
  small.n = reduced(problem.n, (tiles - 1) * tile_n + std::min(24, tile_n));
  small.k = reduced(problem.k, std::int64_t{value("block_k")} * (k_tiles - 1) + 24);
  small.lda = small.ldb = small.ldc = 0;
  return checked(small).value();
}

}  // namespace

TEST_CASE("small launches of every kind are right in any order of events", "[emulated]") {
  std::vector<Job> jobs;
  const DeviceSpec& h200 = device("nvidia-h200");
  for (const test::SmallLaunch& each : test::small_launches()) {
    const auto config = parse_config(each.config, *find_family("gemm"));
    REQUIRE(config);
    jobs.push_back({&h200, test::gemm(each.m, each.n, each.k, each.dtype, Layout::tn), *config,
                    each.max_sms, whole() ? 1000 : 24});
  }
  check(jobs);
}

TEST_CASE("the code of every winner that comes along is right", "[emulated]") {
  std::vector<Job> jobs;
  std::set<std::tuple<int, std::string, std::string, int>> seen;  // winners share configs
  const auto add = [&](const Job& job) {
    const auto launch = std::tuple(job.device->limits.cc, problem_key(job.problem),
                                   to_string(job.config), job.max_sms);
    if (seen.insert(launch).second) jobs.push_back(job);
  };
  for (const io::BuiltinTuned& entry : io::tuned_entries()) {
    const auto config = parse_config(entry.config, *find_family(entry.problem.family));
    REQUIRE(config);
    for (std::size_t stage = 0; stage < stage_count(entry.problem); ++stage) {
      const Config own = stage_of(*config, stage);
      const Problem problem = stage_of(entry.problem, stage);
      const DeviceSpec& gpu = device(std::string(entry.device).c_str());
      const int seeds = whole() ? 40 : 2;
      // The ring goes round; then tiles that are over at once. Few blocks, so that those that may
      // take several tiles do.
      const int stages = value_of(own, "stages");
      add({&gpu, reduced(problem, own, 2, stages + 3), own, 4, seeds});
      add({&gpu, reduced(problem, own, 3, 1), own, 2, seeds});
    }
  }
  check(jobs);
}

TEST_CASE("products of C's transpose are right wherever its rows end", "[emulated]") {
  std::vector<Job> jobs;
  for (const auto& [problem, config] : test::swapped_products()) {
    jobs.push_back({&device("nvidia-h200"), problem, config, 4, whole() ? 40 : 1});
  }
  check(jobs);
}

TEST_CASE("clusters that begin with tiles as their GPCs lie take each tile once", "[emulated]") {
  DeviceSpec scattered = device("nvidia-h200");
  scattered.cluster_gpcs = {{2, {1, 0, 1, 0, 2, 0}}, {4, {1, 0, 1}}};
  const std::string tile = "wgmma:block_m=64,block_n=64,block_k=64,stages=3,consumers=";
  std::vector<Job> jobs;
  for (const std::string& text : {tile + "1,pingpong=0,cluster_m=2,cluster_n=1,split_k=1",
                                  tile + "2,pingpong=1,cluster_m=1,cluster_n=2,split_k=1",
                                  tile + "1,pingpong=0,cluster_m=2,cluster_n=2,split_k=1",
                                  tile + "1,pingpong=0,cluster_m=2,cluster_n=1,split_k=3"}) {
    const auto config = parse_config(text, *find_family("gemm"));
    REQUIRE(config);
    // Several tiles for each cluster, unless all must run at once; the last turn is not whole.
    const bool splits = value_of(*config, "split_k") > 1;
    const Problem problem =
        test::gemm(splits ? 200 : 500, splits ? 64 : 330, 200, DType::bf16, Layout::tn);
    jobs.push_back({&scattered, problem, *config, 12, whole() ? 40 : 2});
  }
  check(jobs);
}

TEST_CASE("last tiles that are not whole are right in every layout, gated and not", "[emulated]") {
  std::vector<Job> jobs;
  for (const auto& [problem, config] : test::edge_products()) {
    jobs.push_back({&device("nvidia-h200"), problem, config, 4, whole() ? 40 : 1});
  }
  check(jobs);
}

TEST_CASE("rows that begin anywhere are right, copied one by one or as runs", "[emulated]") {
  std::vector<Job> jobs;
  for (const auto& [problem, config] : test::ragged_products()) {
    jobs.push_back(
        {&device("nvidia-h200"), problem, config, jobs.size() % 2 == 0 ? 8 : 0, whole() ? 40 : 1});
  }
  check(jobs);
}

TEST_CASE("operands that are packed first are right in every layout", "[emulated]") {
  std::vector<Job> jobs;
  for (const auto& [problem, config] : test::packed_products()) {
    jobs.push_back(
        {&device("nvidia-h200"), problem, config, jobs.size() % 2 == 0 ? 4 : 0, whole() ? 40 : 1});
  }
  check(jobs);
}

TEST_CASE("sampled configs are right in every type and layout, on every architecture",
          "[emulated]") {
  std::vector<Job> jobs;
  std::uint64_t seed = 1;
  std::size_t turn = 0;  // of activations, for each layout
  for (const char* name : kDevices) {
    const int count = (std::string(name) == "nvidia-h200" ? 3 : 1) * (whole() ? 40 : 1);
    for (const DType dtype : test::kAllDTypes) {
      ++turn;
      for (const Layout layout : test::kAllLayouts) {
        // Rows of whole 16-byte pieces, and rows of single elements.
        add_sample(jobs, device(name), test::gemm(136, 168, 136, dtype, layout), count, seed++);
        add_sample(jobs, device(name), test::gemm(67, 77, 65, dtype, layout), 1, seed++);
        if (dtype == DType::fp32) {  // of which others have far more configs than wgmma_fp32
          add_sample(jobs, device(name), test::gemm(136, 168, 136, dtype, layout), 1, seed,
                     {"simt", "mma"});
        }
        const Activation activation =
            test::kAllActivations[(turn + static_cast<std::size_t>(layout)) % 4];
        add_sample(jobs, device(name), test::geglu(70, 72, 72, dtype, layout, activation), 1,
                   seed++);
      }
    }
    ++turn;
  }
  std::map<std::string, int> of_kernels;
  for (const Job& job : jobs) ++of_kernels[std::string(job.config.kernel->name())];
  for (const char* kernel : {"wgmma", "wgmma_fp32", "mma", "simt"}) {
    INFO(kernel);
    CHECK(of_kernels[kernel] > 0);
  }
  check(jobs);
}

TEST_CASE("default configs are right where no size is a multiple of anything", "[emulated]") {
  constexpr std::int64_t kExtents[] = {1,  2,  3,  7,  8,  15,  16,  17,
                                       31, 33, 63, 64, 65, 100, 127, 129};
  std::vector<Job> jobs;
  std::mt19937_64 random(3);
  const auto extent = [&] { return kExtents[random() % std::size(kExtents)]; };
  for (const char* name : {"nvidia-h200", "nvidia-a100-sxm4-80gb", "tesla-t4"}) {
    for (int i = 0; i < (whole() ? 10'000 : 40); ++i) {
      const DType dtype = test::kAllDTypes[random() % 4];
      const Layout layout = test::kAllLayouts[random() % 4];
      const std::int64_t m = extent();
      const std::int64_t n = extent();
      Problem problem = test::gemm(m, n, extent(), dtype, layout);
      if (i % 4 == 0) problem.beta = 0.5;
      if (i % 3 == 0) problem.alpha = 2;
      if (i % 5 == 0) problem.ldc += static_cast<std::int64_t>(random() % 9);
      const auto candidate =
          search::default_candidate(problem, device(name), *io::default_space(problem.family), {});
      if (candidate) jobs.push_back({&device(name), problem, candidate->config});
    }
  }
  CHECK(jobs.size() > 90);  // bf16 and tf32 need compute capability 8.0
  check(jobs);
}
