// Which weights a thread of gemv holds: every one exactly once, in whole pieces of lines.
#include "kernels/gemm/gemv_map.h"

#include <map>
#include <set>
#include <utility>

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
    {{true, 1, 8, 4, 1, 2, 1}, 2},
    {{true, 2, 4, 4, 4, 1, 1}, 2},
    {{true, 7, 2, 4, 2, 4, 1}, 2},
    {{true, 3, 3, 4, 5, 2, 1}, 4},
    {{false, 1, 8, 4, 2, 2, 1}, 2},
    {{false, 2, 4, 4, 4, 1, 1}, 2},
    {{false, 1, 16, 4, 8, 1, 1}, 2},
    {{false, 4, 2, 4, 1, 2, 1}, 4},
    {{false, 2, 3, 4, 4, 1, 1}, 4},
    {{true, 1, 8, 32, 4, 1, 1}, 2},
    {{true, 2, 3, 32, 1, 2, 1}, 4},
    {{true, 3, 2, 8, 2, 1, 1}, 2},
    {{true, 1, 4, 16, 3, 2, 1}, 4},
    // Rows that begin on 8, 4 and 2 bytes.
    {{true, 1, 2, 32, 2, 1, 2}, 2},
    {{true, 2, 2, 32, 3, 2, 4}, 4},
    {{true, 1, 3, 4, 2, 2, 8}, 2},
    {{false, 2, 2, 4, 4, 1, 2}, 2},
    {{false, 1, 2, 4, 4, 1, 4}, 4},
    {{false, 1, 2, 4, 8, 2, 8}, 2},
    // Lanes side by side along n.
    {{false, 1, 8, 1, 8, 2, 1}, 2},
    {{false, 2, 4, 1, 4, 1, 4}, 2},
    {{false, 1, 2, 2, 1, 2, 1}, 2},
    {{false, 3, 2, 2, 4, 1, 2}, 4},
};

constexpr int kPasses = 3;

// k of a lane's chunk's element `index`.
int k_of(const Shape& shape, int pass, int warp, int lane, int step, int index) {
  const GemvMap& map = shape.map;
  const int at = gemv_first_step(map, warp) + pass * gemv_pass_steps(map) + step;
  if (!map.k_major) return gemv_chunk(map, at, lane) * shape.chunk_k() + index;
  const int wide = shape.chunk_k() / map.pieces;
  return gemv_piece(map, at, lane, index / wide) * wide + index % wide;
}

}  // namespace

TEST_CASE("gemv's threads hold every weight of a block exactly once") {
  for (const Shape& shape : kShapes) {
    std::map<std::pair<int, int>, int> held;  // (k, column) -> times
    for (int pass = 0; pass < kPasses; ++pass) {
      for (int warp = 0; warp < shape.warps(); ++warp) {
        for (int lane = 0; lane < 32; ++lane) {
          for (int step = 0; step < shape.map.depth; ++step) {
            for (int tile = 0; tile < shape.map.tiles; ++tile) {
              const int column = gemv_column(shape.map, warp, tile, lane / shape.map.lanes_k);
              for (int i = 0; i < shape.chunk_k(); ++i) {
                ++held[{k_of(shape, pass, warp, lane, step, i), column}];
              }
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
      for (int i = 0; i < shape.chunk_k(); ++i) {
        std::set<int> places;
        for (int lane = 0; lane < lanes; ++lane) places.insert(k_of(shape, 0, warp, lane, 0, i));
        CHECK(static_cast<int>(places.size()) == lanes);
        for (int lane = lanes; lane < 32; ++lane) {
          CHECK(k_of(shape, 0, warp, lane, 0, i) == k_of(shape, 0, warp, lane % lanes, 0, i));
        }
      }
    }
  }
}

TEST_CASE("one load of a warp reads whole runs of bytes, and its steps whole lines") {
  for (const Shape& shape : kShapes) {
    const GemvMap& map = shape.map;
    for (int warp = 0; warp < shape.warps(); ++warp) {
      for (int piece = 0; piece < map.pieces; ++piece) {
        if (map.k_major) {
          // A column's lanes: pieces beside each other, from a multiple of their bytes together.
          const int wide = shape.chunk_k() / map.pieces;
          const int k = k_of(shape, 0, warp, 0, 0, piece * wide);
          CHECK(k % (wide * map.lanes_k) == 0);
          for (int lane = 0; lane < map.lanes_k; ++lane) {
            for (int i = 0; i < wide; ++i) {
              CHECK(k_of(shape, 0, warp, lane, 0, piece * wide + i) == k + lane * wide + i);
            }
          }
        } else {
          // A row's groups of lanes: the columns of a piece each, likewise.
          const int wide = map.tiles / map.pieces;
          const int first = gemv_column(map, warp, piece * wide, 0);
          CHECK(first % (wide * shape.groups()) == 0);
          for (int group = 0; group < shape.groups(); ++group) {
            for (int i = 0; i < wide; ++i) {
              CHECK(gemv_column(map, warp, piece * wide + i, group) == first + group * wide + i);
            }
          }
        }
      }
      // Two steps of four lanes with 16 bytes each: a line of 128.
      if (map.k_major && map.depth % 2 == 0) {
        const int k = k_of(shape, 0, warp, 0, 0, 0);
        const int bytes = 16 * map.lanes_k;
        CHECK(k * shape.element_bytes % (2 * bytes) == 0);
        CHECK((k_of(shape, 0, warp, 0, 1, 0) - k) * shape.element_bytes == bytes);
      }
    }
  }
}
