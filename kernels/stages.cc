#include "kernels/stages.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "kernels/sha256.h"

namespace autotune {
namespace {

// Of the intermediate within the workspace.
constexpr std::int64_t kAlignment = 256;
// Compute capability from which a launch may begin before the one ahead of it has ended.
constexpr int kFirstToFollow = 90;

// Seconds of joined configs live for the whole program, as kernels do, and there is one of each:
// joined configs compare by address.
const Config* interned(const Config& config) {
  static std::mutex guard;
  static std::unordered_set<Config, ConfigHash> known;  // never moves what it holds
  const std::lock_guard lock(guard);
  return &*known.insert(config).first;
}

Problem gated_stage(const Problem& problem) {
  Problem stage = problem;
  stage.family = "geglu";
  stage.out_dtype = default_out_dtype(problem.dtype);
  stage.ldc = problem.n;
  return stage;
}

Problem down_stage(const Problem& problem) {
  Problem stage = problem;
  stage.family = "gemm";
  stage.activation = Problem{}.activation;
  stage.n = problem.k;
  stage.k = problem.n;
  const bool k_major = b_is_k_major(problem.layout);
  stage.layout = k_major ? Layout::tn : Layout::tt;
  stage.lda = problem.n;
  stage.ldb = k_major ? stage.k : stage.n;
  return stage;
}

}  // namespace

std::size_t stage_count(const Problem& problem) { return is_mlp(problem) ? 2 : 1; }

Problem stage_of(const Problem& problem, std::size_t stage) {
  if (!is_mlp(problem)) return problem;
  return stage == 0 ? gated_stage(problem) : down_stage(problem);
}

Config join(const Config& first, const Config& second) {
  Config joined = first;
  joined.second = interned(second);
  return joined;
}

Config stage_of(const Config& config, std::size_t stage) {
  if (stage > 0) return *config.second;
  Config first = config;
  first.second = nullptr;
  return first;
}

const Family& stage_of(const Family& family, std::size_t stage) {
  return family.stages.empty() ? family : *family.stages[stage];
}

std::string source_hash(const Config& config, const Problem& problem, const DeviceSpec& device) {
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    hashes.push_back(source_hash(stage_of(config, i), traits_of(stage_of(problem, i)), device));
  }
  return joint_hash(hashes);
}

std::string joint_hash(const std::vector<std::string>& hashes) {
  if (hashes.size() == 1) return hashes.front();
  std::string all;
  for (const std::string& hash : hashes) all += hash + '\n';
  return sha256_hex(all);
}

StageWorkspace workspace_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                            int max_sms) {
  std::int64_t kernels = 0;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    const Resources needed = own.kernel->resources(own, stage_of(problem, i), device, max_sms);
    kernels = std::max(kernels, needed.workspace_bytes);
  }
  if (!is_mlp(problem)) return {0, kernels};
  const std::int64_t begin = (kernels + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t element = storage_bytes(default_out_dtype(problem.dtype));
  return {begin, begin + problem.m * problem.n * element};
}

DevicePointers stage_pointers(const Problem& problem, std::size_t stage, const DevicePointers& at,
                              const StageWorkspace& workspace) {
  if (!is_mlp(problem)) return at;
  const std::uint64_t intermediate =
      at.workspace + static_cast<std::uint64_t>(workspace.intermediate);
  DevicePointers own;
  own.workspace = at.workspace;
  own.a = stage == 0 ? at.a : intermediate;
  own.b = stage == 0 ? at.b : at.down;
  own.up = stage == 0 ? at.up : 0;
  own.c = stage == 0 ? intermediate : at.c;
  return own;
}

LaunchPlan stage_launch(const Config& config, const Problem& problem, std::size_t stage,
                        const DeviceSpec& device, const DevicePointers& at, int max_sms) {
  const StageWorkspace workspace = workspace_of(config, problem, device, max_sms);
  const Config own = stage_of(config, stage);
  LaunchPlan plan = own.kernel->launch_plan(own, stage_of(problem, stage), device,
                                            stage_pointers(problem, stage, at, workspace), max_sms);
  plan.follows = stage > 0 && device.limits.cc >= kFirstToFollow;
  return plan;
}

Resources resources_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                       int max_sms) {
  Resources most = config.kernel->resources(config, stage_of(problem, 0), device, max_sms);
  if (stage_count(problem) == 1) return most;
  const Config other = stage_of(config, 1);
  const Resources second = other.kernel->resources(other, stage_of(problem, 1), device, max_sms);
  most.smem_bytes = std::max(most.smem_bytes, second.smem_bytes);
  most.static_smem_bytes = std::max(most.static_smem_bytes, second.static_smem_bytes);
  most.threads = std::max(most.threads, second.threads);
  most.registers = std::max(most.registers, second.registers);
  most.workspace_bytes = workspace_of(config, problem, device, max_sms).bytes;
  return most;
}

}  // namespace autotune
