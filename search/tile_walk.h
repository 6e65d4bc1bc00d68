// What tiles of C that follow each other have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernel.h"

namespace autotune::search {

// Rows of tiles along m, and columns of them along n.
struct Walked {
  double m;
  double n;
};

// In how many rows and columns `count` consecutive ones of `tiles_m` x `tiles_n` tiles lie.
inline Walked walked(const TileOrder& order, double tiles_m, double tiles_n, double count) {
  const double along = order.raster_along_n ? tiles_n : tiles_m;
  const double across = order.raster_along_n ? tiles_m : tiles_n;
  const auto width = static_cast<double>(order.width(static_cast<std::int64_t>(across)));
  const double length = std::min(along, std::ceil(count / width));
  const double wide = count < width ? std::ceil(count)
                                    : std::min(across, width * std::ceil(count / (width * along)));
  return order.raster_along_n ? Walked{wide, length} : Walked{length, wide};
}

}  // namespace autotune::search
