// A spread of configs, not only the default, on small problems that no tile divides: what
// compute-sanitizer is run on (`gpu_tests "[spread]"`).
#include "test/gpu/check_sample.h"

using namespace autotune;

TEST_CASE("sampled configs are right in every type and layout", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  std::uint64_t seed = 1;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : test::kAllLayouts) {
      // Rows of whole 16-byte pieces, and rows of single elements.
      batch.sample(test::gemm(200, 312, 136, dtype, layout), 2, seed++);
      batch.sample(test::gemm(129, 77, 65, dtype, layout), 2, seed++);
    }
  }
  batch.check();
}
