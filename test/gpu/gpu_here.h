// The GPU that these tests run on, or the visible reason why they do not.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

#include "autotune/gpu/measurer.h"
#include "autotune/gpu/workbench.h"
#include "test/support/catch.h"

namespace autotune::test {

inline bool gpu_is_required() {
  const char* required = std::getenv("AUTOTUNE_REQUIRE_GPU");
  return required != nullptr && std::string(required) == "1";
}

// Says once why all GPU tests are skipped; a failure instead where a GPU is required.
inline void skip(const Error& reason) {
  if (gpu_is_required()) FAIL("AUTOTUNE_REQUIRE_GPU=1, and " << reason.message);
  static const bool told = [&] {
    std::cout << "SKIPPED: all GPU tests: " << reason.message << std::endl;
    return true;
  }();
  (void)told;
}

// Made once for the whole program; nullptr (after skip) where there is no GPU.
inline gpu::Workbench* workbench() {
  static auto* const made = new Expected<gpu::Workbench>(gpu::Workbench::create(0));
  if (*made) return &**made;
  skip(made->error());
  return nullptr;
}

inline gpu::Measurer* measurer() {
  static auto* const made = new Expected<gpu::Measurer>(gpu::Measurer::create(0));
  if (*made) return &**made;
  skip(made->error());
  return nullptr;
}

}  // namespace autotune::test
