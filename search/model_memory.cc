#include "search/model_memory.h"

#include <algorithm>
#include <cmath>

#include "search/tile_walk.h"

namespace autotune::search {

using namespace model_parts;

namespace {

constexpr double kPair = 2;  // blocks

// Tiles of blocks as tiles of clusters, which are what a launch walks over.
double in_clusters(std::int64_t tiles, int blocks) {
  return static_cast<double>(std::max<std::int64_t>(1, tiles / blocks));
}

// Parts of k.
double side_by_side(const Work& work) {
  return static_cast<double>(std::max<std::int64_t>(1, work.neighbours_k));
}

// Blocks of one GPC at once, with one on each SM; 0: nobody knows. They fill one GPC after the
// other, but clusters go round the GPCs by turns.
double blocks_on_a_gpc(const DeviceSpec& device, const Resources& resources) {
  if (device.gpc_sms <= 0 || resources.cluster <= 1) return device.gpc_sms;
  const double gpcs = std::max(1.0, std::round(double(device.sm_count) / device.gpc_sms));
  const double clusters = std::ceil(static_cast<double>(resources.grid) / resources.cluster);
  return std::min<double>(device.gpc_sms, resources.cluster * std::ceil(clusters / gpcs));
}

Traffic traffic_of(const Work& work, const DeviceSpec& device, double sms, double resident,
                   double on_a_gpc, TimingMode mode) {
  const double operands = work.a_bytes + work.b_bytes;
  const double pieces = work.a_bytes / std::max(1.0, work.a_piece_bytes) +
                        work.b_bytes / std::max(1.0, work.b_piece_bytes);
  const double cache = device.model.l2_share * static_cast<double>(device.l2_bytes);
  const double tiles_m = in_clusters(work.tiles_m, work.cluster_m);
  const double tiles_n = in_clusters(work.tiles_n, work.cluster_n);
  const double tiles = tiles_m * tiles_n;
  const double split = static_cast<double>(std::max<std::int64_t>(1, work.split_k));
  const double cluster = static_cast<double>(work.cluster_m) * work.cluster_n;
  const double at_once = std::clamp(resident * sms / (split * cluster), 1.0, tiles);
  return {mode == TimingMode::hot && operands + work.c_bytes <= cache,
          work.a_bytes,
          work.b_bytes,
          work.c_bytes,
          tiles_m,
          tiles_n,
          at_once,
          tiles / at_once,
          1 - std::min(1.0, cache / std::max(1.0, operands)),
          1 + pieces * device.model.piece_bytes / std::max(1.0, operands),
          on_a_gpc * resident / (cluster * side_by_side(work))};
}

// bytes_per_clock 0: nobody knows.
SharedWay way_of(const Work& work, double sms, double bytes_per_clock) {
  const double parts = side_by_side(work);
  const double blocks = work.cluster_m * work.cluster_n * parts;
  return {in_clusters(work.tiles_m, work.cluster_m),
          in_clusters(work.tiles_n, work.cluster_n),
          std::max(1.0, sms / blocks),
          std::min(1.0, sms / blocks),
          work.a_bytes_per_k_tile * work.cluster_m,
          work.b_bytes_per_k_tile * work.cluster_n,
          parts,
          bytes_per_clock};
}

}  // namespace

// Tiles that run at the same time share rows of A and columns of B, so the order of the tiles
// decides how often an operand that does not stay in L2 is read again.
double Traffic::in_order(TileOrder order) const {
  if (stays) return 0;
  const auto [in_m, in_n] = walked(order, tiles_m, tiles_n, at_once);
  const double operands = a_bytes + b_bytes;
  const double without_cache = rounds * (a_bytes * in_m / tiles_m + b_bytes * in_n / tiles_n);
  return (operands + std::max(0.0, without_cache - operands) * missed) * piece_factor + c_bytes;
}

// What the SMs of a side ask for comes to its half of the L2 once, from the other half if it lies
// there, as half of everything does.
double Traffic::between_sides(TileOrder order) const {
  if (stays || of_a_gpc <= 0) return 0;
  const double window = std::clamp(of_a_gpc, 1.0, at_once);
  const auto [all_m, all_n] = walked(order, tiles_m, tiles_n, at_once);
  const auto [near_m, near_n] = walked(order, tiles_m, tiles_n, window);
  const auto crossing = [&](double bytes, double tiles, double all, double near) {
    const double again = std::max(0.0, rounds * all / tiles - 1) * missed;
    const double gpcs = std::max(1.0, at_once / window * near / all);  // that ask for each byte
    return bytes * (1 + again) * (1 - std::exp2(-gpcs));
  };
  return crossing(a_bytes, tiles_m, all_m, near_m) + crossing(b_bytes, tiles_n, all_n, near_n) +
         c_bytes / 2;
}

double SharedWay::in_order(TileOrder order) const {
  if (bytes_per_clock <= 0) return 0;
  const auto [in_m, in_n] = walked(order, tiles_m, tiles_n, at_once);
  return here * parts * (in_m * a_bytes + in_n * b_bytes) / bytes_per_clock;
}

double SharedWay::least() const {
  if (bytes_per_clock <= 0) return 0;
  const double tiles = std::min(at_once, tiles_m * tiles_n);  // rows x columns at least
  return here * parts * 2 * std::sqrt(tiles * a_bytes * b_bytes) / bytes_per_clock;
}

MemoryModel::MemoryModel(const Work& work, const DeviceSpec& device, const Resources& resources,
                         double sms, double resident, TimingMode mode) {
  const double on_a_gpc = blocks_on_a_gpc(device, resources);
  traffic_ = traffic_of(work, device, sms, resident, on_a_gpc, mode);
  gpc_ = way_of(work, on_a_gpc, on_a_gpc > 0 ? device.model.gpc_bytes_per_clock : 0);
  pair_ = way_of(work, kPair, device.model.pair_bytes_per_clock);
}

MemoryModel::Shared MemoryModel::in_order(TileOrder order) const {
  return {traffic_.in_order(order), traffic_.between_sides(order), gpc_.in_order(order),
          pair_.in_order(order)};
}

MemoryModel::Shared MemoryModel::least() const {
  return {traffic_.least(), 0, gpc_.least(), pair_.least()};
}

}  // namespace autotune::search
