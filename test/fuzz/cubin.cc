// What a compiler's output is read by.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/gpu/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)gpu::read_cubin(bytes, "autotune_gemm");
  ActualResources resources;
  gpu::add_compiler_report(bytes, "autotune_gemm", resources);
  return 0;
}
