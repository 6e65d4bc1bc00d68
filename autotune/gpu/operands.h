// The operands of one problem on the GPU: inputs, a guarded output, and what the output should be.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "autotune/gpu/tolerance.h"
#include "autotune/gpu/workbench.h"
#include "kernels/kernel.h"

namespace autotune::gpu {

struct Correctness {
  bool ok = false;
  bool complete = false;  // every element was written with a number
  double error = 0;       // |out - ref|_F / |ref|_F
  double max_ratio = 0;   // largest element error / its bound
  std::string what;       // where not ok: the first thing that is wrong, with numbers
};

// Move-only. Belongs to the workbench that made it.
class Operands {
 public:
  // Makes A = N(0, 1), B = N(0, 1) / sqrt(k), C = N(0, 1) where beta != 0, and the reference; a
  // gated family's second weights are as B and follow it at once, if that is aligned to 16 bytes;
  // the weights of an MLP's second stage are N(0, 1) / sqrt(intermediate).
  // Gaps between rows hold NaN. failed where the memory does not suffice.
  static Expected<Operands> create(Workbench& bench, const Problem& checked, std::uint64_t seed);
  // Bytes of device memory that create() takes.
  static std::int64_t bytes_for(const Problem& checked);

  const Problem& problem() const { return problem_; }
  // Whether these are the operands of that problem too: all but its timing mode is the same.
  bool serve(const Problem& checked, std::uint64_t seed) const;
  // At one of the places where they lie: 0, or one that spread() made.
  DevicePointers pointers(std::size_t place = 0) const;

  // How long a launch takes depends on where in memory its operands lie, and two launches' ratio
  // with it (on an H200 1024^3: 1.00 to 1.04 between two of our configs; 128x4096x11008: 28.2 to
  // 30.3 us in three processes). So operands lie at several places, 16 at most, each with inputs of
  // the same values; the output is checked at the first only, which shares the workspace with the
  // others. Where they would take more than about 1 GiB together, or memory is short, there are
  // fewer. All but the first begin anywhere in a page of 2 MiB, at a multiple of 512 bytes (as
  // PyTorch gives them): all at the beginning of one, a process's places are too much alike, and
  // ratios of 1x4096x4096 were 1.01 to 1.04 from process to process, where they are 1.00 to 1.01
  // now.
  void spread(Workbench& bench);
  std::size_t places() const { return 1 + others_.size(); }
  // Pointers to operands of the first place, at another one; what is no operand stays.
  DevicePointers moved(const DevicePointers& first, std::size_t place) const;

  // Makes `bytes` of workspace available, its marks zero (kWorkspaceMarkBytes).
  Expected<void> reserve_workspace(Workbench& bench, std::int64_t bytes);

  // Before a run that is checked: zeroes the workspace's marks, poisons output, guard bands and the
  // rest of the workspace with 0xff (NaN in every type), then puts C back where beta != 0.
  Expected<void> poison(Workbench& bench);
  // Before a timed run: puts C back where beta != 0, for it would grow from run to run.
  Expected<void> restore(Workbench& bench, std::size_t place = 0);
  // Every element against its reference, the gaps and the guard bands against the poison, the marks
  // against zero. Waits.
  Expected<Correctness> verify(Workbench& bench) const;

 private:
  // An allocation, of which `skipped` bytes at its beginning are not used.
  struct Piece {
    DeviceMemory memory;
    std::size_t skipped = 0;
    DeviceAddress address() const { return memory.address() + skipped; }
    std::size_t bytes() const { return memory.bytes() - skipped; }
  };
  struct Place {
    Piece a;
    Piece b;
    Piece down;
    Piece c;  // guard, m x ldc, guard
  };
  Expected<Place> copy(Workbench& bench, std::mt19937_64& random) const;
  Matrix output() const;
  Expected<void> compute_reference(Workbench& bench) const;

  Problem problem_;
  std::uint64_t seed_ = 0;
  Bounds bounds_{};
  Place first_;
  std::vector<Place> others_;
  DeviceMemory pristine_;  // m x ldc as C starts, where beta != 0
  DeviceMemory reference_;
  DeviceMemory workspace_;
  DeviceMemory no_marks_;  // as the workspace's marks are to be left
  double reference_rms_ = 0;
};

}  // namespace autotune::gpu
