// The numbers of the performance model (search/model.h) that no data sheet gives. `autotune
// calibrate` fits them to one GPU from measured trials, as `model:` of configs/gpus/*.yaml.
#pragma once

#include <span>
#include <string_view>

namespace autotune {

// Clocks are the SM's, rates are of one SM. The defaults serve every GPU that nobody calibrated:
// shared memory's from the CUDA programming guide (32 banks x 4 bytes), the rest rounded from
// published microbenchmarks of A100 and H100, launch and DRAM as measured on an H200. They decide
// between configs of one device, so what matters is their order of magnitude.
struct ModelCoefficients {
  double launch_us = 2.8;               // of an empty kernel, where `measured` does not say it
  double prologue_clocks = 200;         // index arithmetic before the first load
  double cluster_clocks = 1500;         // blocks of a cluster start and end together
  double cluster_bytes_per_clock = 14;  // between two blocks' shared memory
  double cluster_sum_clocks = 600;      // parts of k meet in a cluster, and have the first sum
  double workspace_sum_clocks = 1200;   // one stores its sum and counts it, the last reads it
  double epilogue_clocks = 400;         // barrier, and the last store's way out
  double l2_latency_clocks = 300;
  double dram_latency_clocks = 700;  // on top of L2's
  double smem_bytes_per_clock = 128;
  double store_bytes_per_clock = 32;
  double between_tiles_bytes_per_clock = 16;  // on top, where the same warps go on (H100)
  double clocks_per_copy = 4;                 // of one warp's 16-byte copies: 512 bytes
  double warp_clocks_per_copy = 20;  // until the same warp's next one, index arithmetic and all
  double l2_share = 0.5;             // of L2 that operands keep: it has two halves
  double dram_share = 0.9;           // of the peak; H200, cold: 86 MiB at 4.3 TB/s
  double piece_bytes = 8;  // that DRAM could bring on the way to another row's piece (H100)
  double ffma_share = 1;   // of the fp32 peak that a kernel's own estimate of it reaches

  // Kernels whose warps load and multiply by turns...
  double turns_tensor_share = 1;  // of the tensor peak, as above
  double turns_l2_bytes_per_clock = 48;
  double turns_step_clocks = 40;  // wait and barrier between two k tiles
  // ... and those where a warp of its own keeps the copy engine busy.
  double ahead_tensor_share = 1;
  double ahead_l2_bytes_per_clock = 64;  // what the L2 port carries
  double ahead_step_clocks = 10;         // from one k tile's products to the next's

  // Of two blocks that follow each other, behind the first wave, as trials on an H100 say: the two
  // SMs of a TPC, presumably. As much as two ports carry.
  double pair_bytes_per_clock = 128;
  double gpc_bytes_per_clock = 600;  // of a whole GPC, whose SMs share its way to the L2
  // Of the way between the L2's two sides, where a GPC's SMs are known: by orders of tiles on an
  // H200 (kernels/gemm/NOTES.md, What a GPC's SMs share).
  double sides_bytes_per_clock = 1300;

  friend bool operator==(const ModelCoefficients&, const ModelCoefficients&) = default;
};

// A coefficient by name, and how far from its default a GPU may be before the value can no longer
// mean what the name says.
struct Coefficient {
  std::string_view name;
  double ModelCoefficients::*member;
  double lo;
  double hi;
};

// All of them, in the order of the struct.
std::span<const Coefficient> model_coefficients();

}  // namespace autotune
