#include "kernels/stages.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "kernels/sha256.h"

namespace autotune {
namespace {

// Of the intermediate within the workspace.
constexpr std::int64_t kAlignment = 256;

// Seconds of joined configs live for the whole program, as kernels do, and there is one of each:
// joined configs compare by address. There are few of them, and no lock that a fork could find
// held.
const Config* interned(const Config& config) {
  struct Node {
    Config config;
    Node* next;
  };
  static std::atomic<Node*> head{nullptr};
  Node* node = nullptr;
  Node* seen = nullptr;
  while (true) {
    Node* first = head.load(std::memory_order_acquire);
    for (Node* each = first; each != seen; each = each->next) {
      if (each->config != config) continue;
      delete node;
      return &each->config;
    }
    if (node == nullptr) node = new Node{config, nullptr};
    node->next = seen = first;
    if (head.compare_exchange_strong(first, node, std::memory_order_release)) return &node->config;
  }
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

bool takes_an_sm(const Resources& needed, const DeviceSpec& device) {
  return 2 * device.limits.smem_taken(needed.smem_bytes + needed.static_smem_bytes) >
         device.limits.smem_per_sm;
}

// Never too large for its type.
std::int64_t intermediate_bytes(const Problem& problem) {
  const std::int64_t row = problem.n * storage_bytes(default_out_dtype(problem.dtype));
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;
  return problem.m > kMost / row ? kMost : problem.m * row;
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

bool has_source_hash(const std::string& config, const Problem& problem, const DeviceSpec& device,
                     const std::string& hash) {
  const Family* family = find_family(problem.family);
  if (family == nullptr) return false;
  const auto parsed = parse_config(config, *family);
  return parsed && source_hash(*parsed, problem, device) == hash;
}

StageWorkspace workspace_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                            int max_sms) {
  StageWorkspace workspace;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    const Resources needed = own.kernel->resources(own, stage_of(problem, i), device, max_sms);
    workspace.bytes = std::max(workspace.bytes, needed.workspace_bytes);
    // What waits for room for all of its blocks is launched as usual.
    workspace.admits = i > 0 && takes_an_sm(needed, device) && !needed.cooperative;
  }
  if (!is_mlp(problem)) return workspace;
  const std::int64_t kernels = std::max(workspace.bytes, kWorkspaceMarkBytes);
  workspace.intermediate = (kernels + kAlignment - 1) / kAlignment * kAlignment;
  workspace.bytes = workspace.intermediate + intermediate_bytes(problem);
  return workspace;
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
  own.link = stage > 0 ? Link::behind : workspace.admits ? Link::ahead : Link::none;
  return own;
}

LaunchPlan stage_launch(const Config& config, const Problem& problem, std::size_t stage,
                        const DeviceSpec& device, const DevicePointers& at,
                        const StageWorkspace& workspace, int max_sms) {
  const Config own = stage_of(config, stage);
  return own.kernel->launch_plan(own, stage_of(problem, stage), device,
                                 stage_pointers(problem, stage, at, workspace), max_sms);
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
