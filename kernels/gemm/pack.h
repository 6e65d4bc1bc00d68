// What the host twins of kernels that pack operands share (pack.cuh).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"

namespace autotune::gemm {

// The problem with leading dimensions of rows on lines where those of an operand do not begin on
// 16 bytes.
Problem packed(const Problem& problem);

// Bytes of the copies of operands that `lies`, which may be packed(given), has elsewhere; 0 without
// any, and at most more than any GPU has.
std::int64_t packed_bytes(const Problem& given, const Problem& lies);

// What a device needs to copy the operands that `lies`, which is packed(given), has elsewhere, to
// behind `sums_bytes` of sums in the workspace. `args` names the copies from then on.
PackArgs pack(const Problem& given, const Problem& lies, std::uint64_t workspace,
              std::int64_t sums_bytes, GemmArgs& args);

// Puts that behind `Args` into the plan. `Packed` is `Args` with it behind.
template <typename Packed, typename Args>
void put_pack(const PackArgs& pack, LaunchPlan& plan) {
  static_assert(sizeof(Args) + sizeof(pack) <= sizeof(Packed));
  static_assert(sizeof(Packed) <= sizeof(plan.params));
  std::memcpy(plan.params.data() + sizeof(Args), &pack, sizeof(pack));
  plan.params_size = sizeof(Packed);
}

}  // namespace autotune::gemm
