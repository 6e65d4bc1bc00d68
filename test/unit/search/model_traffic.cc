// The performance model's ways to memory for made-up launches, whose bytes can be counted by hand.
#include <utility>

#include "real_plans.h"
#include "search/model_memory.h"

namespace autotune::search {
namespace {

constexpr double kA = 16e6;  // bytes of the operands
constexpr double kB = 8e6;
constexpr double kC = 2e6;
constexpr double kAOfTile = 1000;  // bytes per k tile
constexpr double kBOfTile = 3000;
constexpr TileOrder kDown{false, 1};  // one column of tiles after the other

// 16 x 8 tiles.
Work work_of_128_tiles() {
  Work work;
  work.tiles_m = 16;
  work.tiles_n = 8;
  work.a_bytes = kA;
  work.b_bytes = kB;
  work.c_bytes = kC;
  work.a_bytes_per_k_tile = kAOfTile;
  work.b_bytes_per_k_tile = kBOfTile;
  work.a_piece_bytes = work.b_piece_bytes = 64;
  return work;
}

// 128 SMs in GPCs of 16, an L2 that keeps so many bytes of the operands, ways of a byte a clock.
DeviceSpec device_keeping(double bytes) {
  DeviceSpec device = device_named("nvidia-h200");
  device.sm_count = 128;
  device.gpc_sms = 16;
  device.l2_bytes = static_cast<std::int64_t>(2 * bytes);
  device.model.l2_share = 0.5;
  device.model.piece_bytes = 0;
  device.model.gpc_bytes_per_clock = device.model.pair_bytes_per_clock = 1;
  return device;
}

Resources blocks(std::int64_t grid, int cluster = 1) {
  Resources resources;
  resources.grid = grid;
  resources.cluster = cluster;
  return resources;
}

// One block at a time on each of `sms` SMs.
MemoryModel::Shared shared_of(const Work& work, const DeviceSpec& device, double sms,
                              TileOrder order = kDown, const Resources& resources = blocks(128),
                              TimingMode mode = TimingMode::cold) {
  return MemoryModel(work, device, resources, sms, 1, mode).in_order(order);
}

const TileOrder kOrders[] = {{false, 1}, {false, 2}, {false, 4}, {false, 16},
                             {true, 1},  {true, 2},  {true, 4},  {true, 16}};

}  // namespace

TEST_CASE("operands that the L2 keeps cross DRAM once, in any order of tiles") {
  for (const TileOrder& order : kOrders) {
    CHECK(shared_of(work_of_128_tiles(), device_keeping(kA + kB), 16, order).dram ==
          Approx(kA + kB + kC));
  }
}

TEST_CASE("operands that the L2 does not keep are read again by tiles that run one by one") {
  const Work work = work_of_128_tiles();
  const DeviceSpec nothing = device_keeping(0);
  CHECK(shared_of(work, nothing, 1).dram == Approx(8 * kA + 16 * kB + kC));
  CHECK(shared_of(work, nothing, 16).dram == Approx(8 * kA + kB + kC));  // by columns
  CHECK(shared_of(work, nothing, 128).dram == Approx(kA + kB + kC));
  // What is kept of the operands is not read again.
  CHECK(shared_of(work, device_keeping((kA + kB) / 2), 16).dram == Approx(4.5 * kA + kB + kC));
}

TEST_CASE("parts of k and a cluster's blocks take SMs from other tiles") {
  const DeviceSpec device = device_keeping(0);
  const double on_four = shared_of(work_of_128_tiles(), device, 4).dram;
  Work split = work_of_128_tiles();
  split.split_k = 2;
  CHECK(shared_of(split, device, 8).dram == Approx(on_four));
  Work clusters = work_of_128_tiles();
  clusters.cluster_m = 2;
  clusters.tiles_m *= 2;  // 16 of clusters
  CHECK(shared_of(clusters, device, 8).dram == Approx(on_four));
}

TEST_CASE("a hot launch whose A, B and C fit into the L2 together brings nothing there again") {
  const auto brought = [](double kept, TimingMode mode) {
    return shared_of(work_of_128_tiles(), device_keeping(kept), 16, kDown, blocks(128), mode);
  };
  const double all = kA + kB + kC;
  CHECK(brought(all, TimingMode::hot).dram == 0);
  CHECK(brought(all, TimingMode::hot).sides == 0);
  CHECK(brought(all, TimingMode::cold).dram > 0);
  CHECK(brought(all - 1, TimingMode::hot) == brought(all - 1, TimingMode::cold));
}

TEST_CASE("half of what one GPC asks for crosses between the L2's sides, all of what all do") {
  // Each GPC has a column of tiles: a part of B of its own, and all of A.
  const double sides = shared_of(work_of_128_tiles(), device_keeping(kA + kB), 128).sides;
  CHECK(sides > 0.99 * kA + kB / 2 + kC / 2);
  CHECK(sides < kA + kB / 2 + kC / 2);
}

TEST_CASE("between the L2's sides what counts is how many blocks a GPC has, not on how many SMs") {
  const auto sides = [](std::int64_t parts, double sms, double resident, int gpc_sms) {
    Work work = work_of_128_tiles();
    work.split_k = work.neighbours_k = parts;
    DeviceSpec device = device_keeping(kA + kB);
    device.gpc_sms = gpc_sms;
    return MemoryModel(work, device, blocks(128 * parts), sms, resident, TimingMode::cold)
        .in_order(kDown)
        .sides;
  };
  CHECK(sides(1, 128, 1, 32) < sides(1, 128, 1, 16));  // four GPCs have less to ask for than eight
  CHECK(sides(1, 64, 2, 16) == Approx(sides(1, 128, 1, 32)));
  // Two parts of each tile.
  CHECK(sides(2, 128, 2, 16) == Approx(sides(1, 128, 1, 16)));
}

TEST_CASE("what DRAM brings again crosses between the L2's sides again") {
  // One GPC, a column after the other.
  const auto sides = [](double kept) {
    return shared_of(work_of_128_tiles(), device_keeping(kept), 16).sides;
  };
  CHECK(sides(0) == Approx((8 * kA + kB + kC) / 2));
  CHECK(sides((kA + kB) / 2) == Approx((4.5 * kA + kB + kC) / 2));
  CHECK(sides(kA + kB) == Approx((kA + kB + kC) / 2));
}

TEST_CASE("a GPC's blocks ask once for what they have in common") {
  const DeviceSpec device = device_keeping(0);
  const Work work = work_of_128_tiles();
  CHECK(shared_of(work, device, 128).gpc == Approx(16 * kAOfTile + kBOfTile));
  CHECK(shared_of(work, device, 128, {false, 4}).gpc == Approx(4 * kAOfTile + 4 * kBOfTile));
  Work clusters = work;
  clusters.cluster_m = 2;
  // However many follow, no more than have room at once.
  for (const std::int64_t grid : {128, 1280}) {
    CHECK(shared_of(clusters, device, 128, kDown, blocks(grid, 2)).gpc ==
          Approx(16 * kAOfTile + kBOfTile));
  }
  // 12 clusters go round eight GPCs.
  CHECK(shared_of(clusters, device, 128, kDown, blocks(24, 2)).gpc ==
        Approx(4 * kAOfTile + kBOfTile));
  // Parts of k that lie side by side have nothing in common.
  Work parts = work;
  parts.split_k = parts.neighbours_k = 2;
  CHECK(shared_of(parts, device, 128).gpc == Approx(2 * (8 * kAOfTile + kBOfTile)));
}

TEST_CASE("two blocks that follow each other ask once for what they have in common") {
  const DeviceSpec device = device_keeping(0);
  const auto pair = [&](const Work& work, TileOrder order) {
    return shared_of(work, device, 128, order).pair;
  };
  Work work = work_of_128_tiles();
  CHECK(pair(work, kDown) == Approx(2 * kAOfTile + kBOfTile));
  CHECK(pair(work, {true, 1}) == Approx(kAOfTile + 2 * kBOfTile));
  work.cluster_m = work.cluster_n = 2;  // half of whose loads are theirs
  CHECK(pair(work, kDown) == Approx(kAOfTile + kBOfTile));
}

TEST_CASE("a mirrored launch asks for the same") {
  DeviceSpec device = device_keeping((kA + kB) / 4);
  device.model.piece_bytes = 8;
  Work work = work_of_128_tiles();
  work.b_piece_bytes = 16;
  work.cluster_m = 2;
  Work mirrored = work;
  std::swap(mirrored.tiles_m, mirrored.tiles_n);
  std::swap(mirrored.a_bytes, mirrored.b_bytes);
  std::swap(mirrored.a_bytes_per_k_tile, mirrored.b_bytes_per_k_tile);
  std::swap(mirrored.a_piece_bytes, mirrored.b_piece_bytes);
  std::swap(mirrored.cluster_m, mirrored.cluster_n);
  for (const TileOrder& order : kOrders) {
    const TileOrder other{!order.raster_along_n, order.swizzle};
    for (const double sms : {2, 24, 128}) {
      const auto one = shared_of(work, device, sms, order, blocks(128, 2));
      const auto two = shared_of(mirrored, device, sms, other, blocks(128, 2));
      CHECK(one.dram == Approx(two.dram));
      CHECK(one.sides == Approx(two.sides));
      CHECK(one.gpc == Approx(two.gpc));
      CHECK(one.pair == Approx(two.pair));
    }
  }
}

TEST_CASE("no order of tiles asks for less than the least, and a square of equal tiles for that") {
  Work work = work_of_128_tiles();
  work.b_bytes_per_k_tile = kAOfTile;
  const DeviceSpec device = device_keeping(0);
  for (const auto& [tiles_m, tiles_n] : {std::pair(1, 1), {2, 2}, {1, 8}, {16, 8}}) {
    work.tiles_m = tiles_m;
    work.tiles_n = tiles_n;
    const MemoryModel model(work, device, blocks(128), 128, 1, TimingMode::cold);
    for (const TileOrder& order : kOrders) {
      CHECK(model.in_order(order).dram >= model.least().dram);
      CHECK(model.in_order(order).sides >= model.least().sides);
      CHECK(model.in_order(order).gpc >= model.least().gpc);
      CHECK(model.in_order(order).pair >= model.least().pair);
    }
  }
  const MemoryModel model(work, device, blocks(128), 128, 1, TimingMode::cold);
  CHECK(model.in_order({false, 4}).gpc == Approx(model.least().gpc));
}

}  // namespace autotune::search
