// How far problems are from each other, and the rungs between them.
#include "autotune/lookup/distance.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "autotune/lookup/ladder.h"
#include "test/unit/lookup/answers.h"

using namespace autotune;
using test::gemm;

TEST_CASE("distance is the sum of doublings, and only between comparable problems") {
  CHECK(lookup::distance(gemm(64, 64, 64), gemm(64, 64, 64)) == 0.0);
  CHECK(*lookup::distance(gemm(64, 64, 64), gemm(128, 32, 64)) == Approx(2.0));
  Problem other = gemm(64, 64, 64);
  other.dtype = other.out_dtype = DType::fp16;
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), other).has_value());
  other = gemm(64, 64, 64);
  other.layout = Layout::tt;
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), other).has_value());
  other = gemm(64, 64, 64);
  other.mode = TimingMode::hot;
  other.beta = 1;
  CHECK(*lookup::distance(gemm(64, 64, 64), other) == Approx(2.0));
  other = gemm(64, 64, 64);
  other.exact_fp32 = true;
  CHECK(*lookup::distance(gemm(64, 64, 64), other) == Approx(1.0));
  Problem gated = gemm(64, 64, 64);
  gated.family = "geglu";
  other = gated;
  other.activation = Activation::relu;
  CHECK(*lookup::distance(gated, other) == Approx(1.0));
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), gated));
}

TEST_CASE("a ladder has its ends, powers of two and what is halfway between the larger ones") {
  using Rungs = std::vector<std::int64_t>;
  CHECK(lookup::ladder(1, 130) == Rungs{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 130});
  CHECK(lookup::ladder(100, 200) == Rungs{100, 128, 192, 200});
  CHECK(lookup::ladder(7, 7) == Rungs{7});
  CHECK(lookup::ladder(1, 2147483647).back() == 2147483647);
  // Whatever lies between the ends has a rung above it.
  const auto rungs = lookup::ladder(3, 2000);
  for (std::int64_t m = 3; m <= 2000; ++m) {
    const auto above = std::lower_bound(rungs.begin(), rungs.end(), m);
    CHECK(lookup::is_rung_above(gemm(*above, 64, 64), gemm(m, 64, 64)));
  }
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), gemm(65, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(64, 64, 64), gemm(49, 64, 64)));
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), gemm(48, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(16, 64, 64), gemm(9, 64, 64)));
  CHECK_FALSE(lookup::is_rung_above(gemm(16, 64, 64), gemm(8, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(50, 64, 64), gemm(49, 64, 64)));  // a ladder's end
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 128), gemm(60, 64, 64)));
  Problem hot = gemm(60, 64, 64);
  hot.mode = TimingMode::hot;
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), hot));
}
