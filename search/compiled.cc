// What a cubin itself says, against the device and against the prediction.
#include <fmt/format.h>

#include "search/check.h"
#include "search/occupancy.h"

namespace autotune::search {

std::optional<Verdict> check_compiled(const Resources& wanted, const ActualResources& actual,
                                      const DeviceSpec& device) {
  const ArchLimits& arch = device.limits;
  const std::int64_t smem = wanted.smem_bytes + actual.static_smem_bytes;
  if (smem > arch.smem_optin_per_block) {
    return Verdict{Rule::shared_memory, smem, arch.smem_optin_per_block};
  }
  if (wanted.threads > arch.threads_per_block) {
    return Verdict{Rule::threads, wanted.threads, arch.threads_per_block};
  }
  if (wanted.threads > actual.max_threads) {
    return Verdict{Rule::threads, wanted.threads, actual.max_threads};
  }
  const std::int64_t registers = registers_of_block(arch, wanted.threads, actual.registers);
  if (registers > arch.registers_per_block) {
    return Verdict{Rule::registers, registers, arch.registers_per_block};
  }
  if (actual.cluster > arch.cluster_portable) {
    return Verdict{Rule::cluster, actual.cluster, arch.cluster_portable};
  }
  if (actual.barriers > arch.named_barriers) {
    return Verdict{Rule::barriers, actual.barriers, arch.named_barriers};
  }
  return std::nullopt;
}

std::string mismatch(const Resources& predicted, const ActualResources& actual) {
  const auto differ = [](std::string_view what, std::int64_t predicted_value,
                         std::int64_t actual_value) {
    return fmt::format("{}: predicted {}, the cubin has {}", what, predicted_value, actual_value);
  };
  if (predicted.static_smem_bytes != actual.static_smem_bytes) {
    return differ("bytes of static shared memory", predicted.static_smem_bytes,
                  actual.static_smem_bytes);
  }
  if (predicted.threads != actual.max_threads) {
    return differ("threads per block", predicted.threads, actual.max_threads);
  }
  if (predicted.barriers != actual.barriers) {
    return differ("named barriers", predicted.barriers, actual.barriers);
  }
  if (predicted.cluster != actual.cluster) {
    return differ("blocks per cluster", predicted.cluster, actual.cluster);
  }
  return {};
}

}  // namespace autotune::search
