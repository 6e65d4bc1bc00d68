// Which weights a thread of gemv holds: every one exactly once, in whole pieces of lines.
#include "kernels/gemm/gemv_map.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "test/support/catch.h"

namespace {

struct Shape {
  GemvMap map;
  int element_bytes;
  int warps() const { return map.warps_n * map.warps_k; }
  int chunk_k() const { return 16 / element_bytes; }
  int groups() const { return 32 / map.lanes_k; }
  int block_n() const { return map.warps_n * map.tiles * groups(); }
  int pass_k() const { return gemv_pass_steps(map) * map.lanes_k * chunk_k(); }
};

const Shape kShapes[] = {
    {{true, 1, 8, 4, 1, 2}, 2},   {{true, 2, 4, 4, 4, 1}, 2},  {{true, 7, 2, 4, 2, 4}, 2},
    {{true, 3, 3, 4, 5, 2}, 4},   {{false, 1, 8, 4, 2, 2}, 2}, {{false, 2, 4, 4, 4, 1}, 2},
    {{false, 1, 16, 4, 8, 1}, 2}, {{false, 4, 2, 4, 1, 2}, 4}, {{false, 2, 3, 4, 4, 1}, 4},
    {{true, 1, 8, 32, 4, 1}, 2},  {{true, 2, 3, 32, 1, 2}, 4}, {{true, 3, 2, 8, 2, 1}, 2},
    {{true, 1, 4, 16, 3, 2}, 4},
};

constexpr int kPasses = 3;

// k of the first element of a lane's chunk.
int first_k(const Shape& shape, int pass, int warp, int lane, int step) {
  const int first = gemv_first_step(shape.map, warp) + pass * gemv_pass_steps(shape.map) + step;
  return gemv_chunk(shape.map, first, lane) * shape.chunk_k();
}

}  // namespace

TEST_CASE("gemv's threads hold every weight of a block exactly once") {
  for (const Shape& shape : kShapes) {
    std::map<std::pair<int, int>, int> held;  // (k, column) -> times
    for (int pass = 0; pass < kPasses; ++pass) {
      for (int warp = 0; warp < shape.warps(); ++warp) {
        for (int lane = 0; lane < 32; ++lane) {
          for (int step = 0; step < shape.map.depth; ++step) {
            const int k = first_k(shape, pass, warp, lane, step);
            for (int tile = 0; tile < shape.map.tiles; ++tile) {
              const int column = gemv_column(shape.map, warp, tile, lane / shape.map.lanes_k);
              for (int i = 0; i < shape.chunk_k(); ++i) ++held[{k + i, column}];
            }
          }
        }
      }
    }
    const int expected = kPasses * shape.pass_k() * shape.block_n();
    REQUIRE(static_cast<int>(held.size()) == expected);
    for (const auto& [place, times] : held) {
      REQUIRE(times == 1);
      REQUIRE(place.first < kPasses * shape.pass_k());
      REQUIRE(place.second < shape.block_n());
    }
  }
}

TEST_CASE("lanes of a group share their columns, and groups their chunk of k") {
  // What makes the chunks of four lanes fragments: a matrix instruction sums over a quad.
  for (const Shape& shape : kShapes) {
    const int lanes = shape.map.lanes_k;
    for (int warp = 0; warp < shape.warps(); ++warp) {
      std::set<int> chunks;
      for (int lane = 0; lane < lanes; ++lane) chunks.insert(first_k(shape, 0, warp, lane, 0));
      CHECK(static_cast<int>(chunks.size()) == lanes);
      for (int lane = lanes; lane < 32; ++lane) {
        CHECK(first_k(shape, 0, warp, lane, 0) == first_k(shape, 0, warp, lane % lanes, 0));
      }
    }
  }
}

TEST_CASE("one load of a warp reads whole runs of bytes, and its steps whole lines") {
  for (const Shape& shape : kShapes) {
    const GemvMap& map = shape.map;
    for (int warp = 0; warp < shape.warps(); ++warp) {
      if (map.k_major) {
        // A column's lanes: 16 bytes each, which begin on as many as they are together. Of four
        // lanes two steps: a line of 128.
        const int bytes = 16 * map.lanes_k;
        const int k = first_k(shape, 0, warp, 0, 0);
        CHECK(k * shape.element_bytes % bytes == 0);
        for (int lane = 0; lane < map.lanes_k; ++lane) {
          CHECK(first_k(shape, 0, warp, lane, 0) == k + lane * shape.chunk_k());
        }
        if (map.depth % 2 == 0) {
          CHECK(k * shape.element_bytes % (2 * bytes) == 0);
          CHECK(first_k(shape, 0, warp, 0, 1) * shape.element_bytes ==
                k * shape.element_bytes + bytes);
        }
      } else {
        // A row's eight quads, each with the columns of all its tiles: one run of bytes that begins
        // on its own length.
        const int first = gemv_column(map, warp, 0, 0);
        const int run = map.tiles * 8;
        CHECK(first % run == 0);
        for (int quad = 0; quad < 8; ++quad) {
          for (int tile = 0; tile < map.tiles; ++tile) {
            CHECK(gemv_column(map, warp, tile, quad) == first + quad * map.tiles + tile);
          }
        }
      }
    }
  }
}
