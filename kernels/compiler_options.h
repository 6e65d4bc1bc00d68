// How every kernel is compiled, beside its source, definitions and architecture.
#pragma once

#include <string_view>

namespace autotune {

// Options of NVRTC that change the code; source_hash() covers them.
inline constexpr std::string_view kCompilerOptions[] = {"--std=c++17"};

}  // namespace autotune
