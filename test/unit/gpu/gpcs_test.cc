#include "autotune/gpu/gpcs.h"

#include <algorithm>
#include <array>
#include <vector>

#include "test/support/catch.h"

using namespace autotune;
using gpu::gpcs_of;
using gpu::SeenGrid;

namespace {

// TPCs have two SMs; a cluster of so many blocks takes whole ones.
SeenGrid on_tpcs(int cluster, const std::vector<int>& tpcs) {
  SeenGrid grid{cluster, {}};
  for (const int tpc : tpcs) {
    grid.sms.push_back(2 * tpc);
    grid.sms.push_back(2 * tpc + 1);
  }
  return grid;
}

// As read on one NVIDIA H100 80GB HBM3, 2026-11-27.
std::vector<SeenGrid> h100() {
  return {
      on_tpcs(2, {63, 64, 65, 62, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                  13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                  30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46,
                  47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61}),
      on_tpcs(4, {5,  13, 6,  14, 7,  15, 0,  8,  1,  9,  2,  10, 3,  11, 4,  12, 21, 29, 22, 30,
                  23, 31, 16, 24, 17, 25, 18, 26, 19, 27, 20, 28, 36, 43, 37, 44, 38, 45, 32, 39,
                  33, 40, 34, 41, 35, 42, 50, 57, 51, 58, 52, 59, 46, 53, 47, 54, 48, 55, 49, 56}),
      on_tpcs(8, {0,  8,  16, 24, 1,  9,  17, 25, 2,  10, 18, 26, 3,  11, 19, 27, 4,  12, 20, 28,
                  5,  13, 21, 29, 6,  14, 22, 30, 7,  15, 23, 31, 32, 39, 46, 53, 33, 40, 47, 54,
                  34, 41, 48, 55, 35, 42, 49, 56, 36, 43, 50, 57, 37, 44, 51, 58, 38, 45, 52, 59}),
      on_tpcs(16, {1,  9,  17, 25, 32, 39, 46, 53, 2,  10, 18, 26, 33, 40, 47, 54, 3,  11, 19,
                   27, 34, 41, 48, 55, 4,  12, 20, 28, 35, 42, 49, 56, 5,  13, 21, 29, 36, 43,
                   50, 57, 6,  14, 22, 30, 37, 44, 51, 58, 7,  15, 23, 31, 38, 45, 52, 59}),
  };
}

}  // namespace

TEST_CASE("an H100's GPCs: clusters go round them by turns") {
  const std::vector<ClusterGpcs> found = gpcs_of(h100());
  REQUIRE(found.size() == 3);
  // Six pairs that none of four has, eight SMs of one GPC, then seven GPCs of 16.
  CHECK(found[0] ==
        ClusterGpcs{
            2, {3, 4, 5,  2,  6,  7,  8, 9, 10, 11, 12, 13, 6,  7,  8, 9, 10, 11, 12, 13, 6,  7,
                8, 9, 10, 11, 12, 13, 6, 7, 8,  9,  10, 11, 12, 13, 7, 8, 9,  10, 11, 12, 13, 7,
                8, 9, 10, 11, 12, 13, 7, 8, 9,  10, 11, 12, 13, 7,  8, 9, 10, 11, 12, 13, 0,  1}});
  CHECK(found[1] == ClusterGpcs{4, {11, 12, 13, 6,  7, 8, 9, 10, 11, 12, 13, 6, 7, 8, 9,
                                    10, 11, 12, 13, 7, 8, 9, 10, 11, 12, 13, 7, 8, 9, 10}});
  CHECK(found[2] == ClusterGpcs{8, {6, 7, 8, 9, 10, 11, 12, 13, 7, 8, 9, 10, 11, 12, 13}});
}

TEST_CASE("where clusters of 16 are refused, those of 8 stand apart") {
  std::vector<SeenGrid> grids = h100();
  grids.back().sms.clear();
  const std::vector<ClusterGpcs> found = gpcs_of(grids);
  REQUIRE(found.size() == 3);
  CHECK(found[0].gpcs.size() == 66);
  CHECK(found[1].gpcs.size() == 30);
  std::vector<int> seen = found[2].gpcs;
  CHECK(seen.size() == 15);
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("nothing seen, nothing told; nor of more groups than there are numbers for") {
  CHECK(gpcs_of({}).empty());
  CHECK(gpcs_of(std::array{SeenGrid{2, {}}, SeenGrid{4, {}}}).empty());
  SeenGrid pairs{2, {}};
  for (int sm = 0; sm < 2 * kMostGpcs; ++sm) pairs.sms.push_back(sm);
  CHECK(gpcs_of(std::array{pairs}).size() == 1);
  pairs.sms.push_back(100);
  pairs.sms.push_back(101);
  CHECK(gpcs_of(std::array{pairs}).empty());
}
