// What blocks of one launch share beyond their SMs: the bytes that cross DRAM and go between the
// L2's sides, and the ways from there to the SMs. The order of the tiles decides how much of it.
#pragma once

#include "kernels/kernel.h"

namespace autotune::search {

namespace model_parts {

// What decides how many bytes cross DRAM.
struct Traffic {
  bool stays;  // nothing does: L2 holds it from the run before
  double a_bytes;
  double b_bytes;
  double c_bytes;
  double tiles_m;  // of clusters
  double tiles_n;
  double at_once;  // of these, that run at the same time
  double rounds;
  double missed;        // the share of A and B that L2 does not keep
  double piece_factor;  // DRAM time of a byte of A or B in that of one of C: they come in pieces
  double of_a_gpc;      // of the clusters at once; 0: nobody knows
  // Bytes, those in pieces as many as could have come meanwhile.
  double least() const { return stays ? 0 : (a_bytes + b_bytes) * piece_factor + c_bytes; }
  double in_order(TileOrder order) const;
  // Bytes that go from one side of the L2 to the other, to which half of the GPCs belong.
  double between_sides(TileOrder order) const;
};

// SMs that share a way to the L2. What several of them ask for at the same time comes by it once.
struct SharedWay {
  double tiles_m;  // of clusters
  double tiles_n;
  double at_once;  // of these, with one block on each SM
  double here;     // the share of a cluster whose blocks are on these SMs
  double a_bytes;  // of one's A and B, per k tile
  double b_bytes;
  double parts;  // of k that lie side by side, and have none of it in common
  double bytes_per_clock;
  // Clocks for one k tile of a block on each SM.
  double in_order(TileOrder order) const;
  double least() const;  // no order takes less
};

}  // namespace model_parts

class MemoryModel {
 public:
  struct Shared {
    double dram;   // bytes, those in pieces as many as could have come meanwhile
    double sides;  // bytes from one side of the L2 to the other
    double gpc;    // clocks for one k tile of a block on each SM of a GPC; 0: nobody knows
    double pair;   // the same of two blocks that follow each other
    friend bool operator==(const Shared&, const Shared&) = default;
  };

  // Of a launch with `resident` blocks at once on each of `sms` SMs.
  MemoryModel(const Work& work, const DeviceSpec& device, const Resources& resources, double sms,
              double resident, TimingMode mode);

  Shared in_order(TileOrder order) const;
  Shared least() const;  // no order takes less

 private:
  model_parts::Traffic traffic_;
  model_parts::SharedWay gpc_;
  model_parts::SharedWay pair_;
};

}  // namespace autotune::search
