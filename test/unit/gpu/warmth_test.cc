#include "autotune/gpu/warmth.h"

#include <chrono>

#include "test/support/catch.h"

using autotune::gpu::kLongUs;
using autotune::gpu::kWarmUpS;
using autotune::gpu::Warmth;
using std::chrono::milliseconds;

namespace {

const Warmth::Clock::time_point kStart = Warmth::Clock::now();
Warmth::Clock::time_point at(int ms) { return kStart + milliseconds(ms); }

}  // namespace

TEST_CASE("a GPU is warm behind a quarter of a second of long launches") {
  Warmth warmth;
  CHECK(warmth.lacking_s(at(0)) == kWarmUpS);
  for (int ms = 0; ms < 200; ms += 10) warmth.note(at(ms), at(ms + 8), 1400);
  CHECK(warmth.lacking_s(at(199)) == Approx(kWarmUpS - 0.198));
  for (int ms = 200; ms < 300; ms += 10) warmth.note(at(ms), at(ms + 8), 1400);
  CHECK(warmth.lacking_s(at(299)) == 0);
}

TEST_CASE("a pause cools it") {
  Warmth warmth;
  for (int ms = 0; ms < 300; ms += 10) warmth.note(at(ms), at(ms + 8), 1400);
  CHECK(warmth.lacking_s(at(310)) == 0);
  CHECK(warmth.lacking_s(at(330)) == kWarmUpS);
  warmth.note(at(330), at(338), 1400);
  CHECK(warmth.lacking_s(at(339)) == Approx(kWarmUpS - 0.008));
}

TEST_CASE("short launches warm nothing") {
  Warmth warmth;
  for (int ms = 0; ms < 300; ms += 10) warmth.note(at(ms), at(ms + 8), 0.9 * kLongUs);
  CHECK(warmth.lacking_s(at(299)) == kWarmUpS);
}
