// The families and their kernels. To add a kernel, add its twins and one line here.
#include <fmt/format.h>

#include "kernels/compiler_options.h"
#include "kernels/gemm/gemm_twin.h"
#include "kernels/sha256.h"

namespace autotune {
namespace {

const HostTwin* const kGemmKernels[] = {&gemm::wgmma_kernel,      &gemm::wgmma_swap_kernel,
                                        &gemm::wgmma_pack_kernel, &gemm::wgmma_fp32_kernel,
                                        &gemm::mma_kernel,        &gemm::mma_bulk_kernel,
                                        &gemm::simt_kernel,       &gemm::gemv_kernel};
const Family kGemm{"gemm", "C[m,n] = alpha * A[m,k] * B[k,n] + beta * C", kGemmKernels};
// The same kernels, told by the problem's traits that there is a second matrix of weights.
const HostTwin* const kGegluKernels[] = {&gemm::wgmma_kernel, &gemm::wgmma_fp32_kernel,
                                         &gemm::mma_kernel, &gemm::simt_kernel};
const Family kGeglu{"geglu", "C[m,n] = activation(A[m,k] * B[k,n]) .* (A * Up[k,n])",
                    kGegluKernels};
const Family* const kMlpStages[] = {&kGeglu, &kGemm};
const Family kMlp{
    "geglu_mlp",
    "y[tokens,hidden] = (activation(x[tokens,hidden] * Wg) .* (x * Wu)) * Wd, with Wg "
    "and Wu[hidden,intermediate] and Wd[intermediate,hidden]",
    {},
    kMlpStages};
const Family* const kFamilies[] = {&kGemm, &kGeglu, &kMlp};

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

std::string family_names() {
  std::string names;
  for (const Family* family : kFamilies) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name);
  }
  return names;
}

const Family* find_family(std::string_view name) {
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

const HostTwin* find_kernel(const Family& family, std::string_view name) {
  for (const HostTwin* kernel : family.kernels) {
    if (kernel->name() == name) return kernel;
  }
  return nullptr;
}

std::string source_hash(const Config& config, const KernelTraits& traits,
                        const DeviceSpec& device) {
  std::string text =
      fmt::format("{}\n{}\n", config.kernel->source().sha256, config.kernel->entry());
  for (const std::string_view option : kCompilerOptions) text += fmt::format("{}\n", option);
  for (const auto& [name, value] : config.kernel->definitions(config, traits, device)) {
    text += fmt::format("{}={}\n", name, value);
  }
  return sha256_hex(text);
}

}  // namespace autotune
