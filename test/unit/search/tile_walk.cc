#include "search/tile_walk.h"

#include <set>

#include "test/support/catch.h"

namespace autotune::search {
namespace {

// The first `count` tiles, by walking as kernels/gemm/common.cuh does: along one direction,
// as many tiles of the other one at each step as TileOrder::width says.
Walked counted(const TileOrder& order, int tiles_m, int tiles_n, int count) {
  const int along = order.raster_along_n ? tiles_n : tiles_m;
  const int across = order.raster_along_n ? tiles_m : tiles_n;
  const int width = static_cast<int>(order.width(across));
  std::set<int> steps;
  std::set<int> walks;
  for (int id = 0; id < std::min(count, tiles_m * tiles_n); ++id) {
    const int group = id / (along * width);
    const int wide = std::min(width, across - group * width);
    const int within = id - group * along * width;
    steps.insert(within / wide);
    walks.insert(group * width + within % wide);
  }
  const auto a = static_cast<double>(steps.size());
  const auto b = static_cast<double>(walks.size());
  return order.raster_along_n ? Walked{b, a} : Walked{a, b};
}

}  // namespace

TEST_CASE("the first tiles of a launch lie in as many rows and columns as a walk over them finds") {
  for (const bool along_n : {false, true}) {
    for (const int swizzle : {1, 2, 4, 8, 16}) {
      for (const int tiles_m : {1, 4, 16, 48}) {
        for (const int tiles_n : {1, 4, 16, 64}) {
          for (const int count : {1, 2, 4, 16, 64}) {
            const TileOrder order{along_n, swizzle};
            const Walked found = walked(order, tiles_m, tiles_n, count);
            const Walked real = counted(order, tiles_m, tiles_n, count);
            INFO((along_n ? "along n, " : "along m, ")
                 << swizzle << " wide, " << count << " of " << tiles_m << "x" << tiles_n);
            CHECK(found.m == real.m);
            CHECK(found.n == real.n);
          }
        }
      }
    }
  }
}

TEST_CASE("tiles that no walk width divides are walked over evenly") {
  // 5 tiles by at most 4 go as 3 and 2: in the first 72 of 24 x 5 three lie beside each other.
  const TileOrder order{false, 4};
  const Walked first = walked(order, 24, 5, 72);
  CHECK((first.m == 24 && first.n == 3));
  for (const int count : {1, 3, 15, 72, 120}) {  // whole steps, or one that has begun
    INFO(count << " of 24x5");
    const Walked real = counted(order, 24, 5, count);
    CHECK(walked(order, 24, 5, count).m == real.m);
    CHECK(walked(order, 24, 5, count).n == real.n);
  }
}

TEST_CASE("a tile that has begun counts as one") {
  // As many as parts of k and clusters leave of the SMs.
  CHECK(walked({false, 4}, 16, 16, 2.5).n == 3);
  CHECK(walked({false, 4}, 16, 16, 4.5).m == 2);
}

}  // namespace autotune::search
