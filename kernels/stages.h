// Problems that take several kernels, one after the other: an MLP y = (activation(x Wg) .* (x Wu))
// Wd is a gated product whose result, the intermediate, a second product takes down again. All
// other problems are a single stage, which is the problem itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/config.h"
#include "kernels/device_spec.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"

namespace autotune {

inline constexpr std::size_t kMostStages = 2;

std::size_t stage_count(const Problem& problem);
// The problem of one of its kernels. `problem` is checked, and so is the answer.
Problem stage_of(const Problem& problem, std::size_t stage);

// A config of a problem with two stages, from the configs of its stages; and back.
Config join(const Config& first, const Config& second);
Config stage_of(const Config& config, std::size_t stage);

// The family of a stage's kernels.
const Family& stage_of(const Family& family, std::size_t stage);

// SHA-256 (hex) of the source hashes of all stages; of a single one, its own.
std::string source_hash(const Config& config, const Problem& problem, const DeviceSpec& device);
// The same where the stages' own are known.
std::string joint_hash(const std::vector<std::string>& hashes);
// Whether a config, given as its canonical string, has that hash with today's kernels.
bool has_source_hash(const std::string& config, const Problem& problem, const DeviceSpec& device,
                     const std::string& hash);

// One workspace serves all stages: first the marks and what else their kernels need, which take
// turns, then the intermediate. Offset and sizes in bytes.
struct StageWorkspace {
  std::int64_t intermediate = 0;  // where it begins: behind the marks, whoever needs those
  std::int64_t bytes = 0;         // of all; 0: none needed
  // Whether the second stage may be admitted before the first has ended: its blocks take an SM
  // each, so that they spread whenever they come. Where several fit, those that come early crowd on
  // the first SMs that are free.
  bool admits = false;
};
StageWorkspace workspace_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                            int max_sms);

// What a stage reads and writes, where `at` are the operands of the whole problem.
DevicePointers stage_pointers(const Problem& problem, std::size_t stage, const DevicePointers& at,
                              const StageWorkspace& workspace);
// A stage's launch, with the workspace_of() the same. Stages are to be launched in order, on one
// stream.
LaunchPlan stage_launch(const Config& config, const Problem& problem, std::size_t stage,
                        const DeviceSpec& device, const DevicePointers& at,
                        const StageWorkspace& workspace, int max_sms);

// What all stages take together: the largest block of any, and the workspace.
Resources resources_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                       int max_sms);

}  // namespace autotune
