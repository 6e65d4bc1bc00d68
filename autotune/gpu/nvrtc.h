// The run-time compiler: CUDA C++ text to a cubin for one architecture. No GPU and no driver
// needed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "autotune/types.h"
#include "kernels/kernel.h"
#include "kernels/resources.h"

namespace autotune::gpu {

// What ptxas is told where it is to compile `plainly`, in place of its own -O3.
inline constexpr std::string_view kPlainLevel = "-O1";

struct SourceCode {
  std::string_view text;   // self-contained: there is no include path
  std::string_view entry;  // extern "C"; its resources are read
  std::string_view arch;   // "sm_90a"
  std::span<const Definition> definitions;
  bool plainly = false;  // ptxas at kPlainLevel
};

struct CompiledCode {
  bool ok = false;
  std::string cubin;       // empty where not ok
  ActualResources actual;  // of the entry
  std::string log;         // the compiler's errors, or ptxas' report
  bool plainly = false;    // as in SourceCode
  double seconds = 0;
};

class Nvrtc {
 public:
  struct Api;
  Nvrtc(const Api* api, std::string version);

  // "nvrtc 13.0"
  const std::string& version() const { return version_; }
  // A source that does not compile is data, not an error. Any number of threads may compile at
  // once.
  CompiledCode compile(const SourceCode& source) const;
  // For code whose results nobody checks before it is used: where registers spill, once more and
  // `plainly`, which spills less. ptxas 13.0 has lost the step of a spilled pointer at -O3
  // (kernels/gemm/NOTES.md).
  CompiledCode compile_unchecked(SourceCode source) const;
  // The same up to PTX: what ptxas would be given for that architecture. failed, with the
  // compiler's errors, where it does not compile.
  Expected<std::string> ptx(SourceCode source) const;

 private:
  const Api* api_;
  std::string version_;
};

// The opened compiler, the same for the whole program: $AUTOTUNE_NVRTC (file or folder) alone where
// it is set, else the loader's path, else cuda_library_folders(). no_compiler tells what was tried.
Expected<const Nvrtc*> nvrtc();

}  // namespace autotune::gpu
