// The tensor copy engine: boxes of a matrix between global and shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel.h"
#include "test/emulator/memory.h"

namespace autotune::emulator {

// One copy. Positions in elements; `shared` is an address within the block.
struct Box {
  const TensorMap* map;
  int inner;
  int outer;
  std::uint64_t shared;

  std::size_t row_bytes() const;
  std::size_t bytes() const { return row_bytes() * map->box_outer; }
  // Faults at what the engine cannot copy.
  void check_load() const;
  void check_store() const;
  // Faults where the engine is to load what a thread stored and has not fenced since.
  void check_stored_fenced(GlobalMemory& memory) const;
  // `target`: the first byte of the box in a block's shared memory.
  void load(std::byte* target, GlobalMemory& memory, bool behind_launch) const;
  void store(const std::byte* source, GlobalMemory& memory, const Actor& actor) const;
};

}  // namespace autotune::emulator
