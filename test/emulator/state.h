// Where the threads, warps, blocks and clusters of a launch stand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "test/emulator/box.h"
#include "test/emulator/memory.h"
#include "test/emulator/order.h"

namespace autotune::emulator {

inline constexpr std::uint64_t kRankShift = 24;  // of a shared address in a cluster
inline constexpr std::uint64_t kWithinBlock = (std::uint64_t{1} << kRankShift) - 1;

struct Block;
struct Thread;

// A transaction barrier (mbarrier).
struct Barrier {
  std::int64_t arrivals;  // of a phase
  std::int64_t missing;
  std::int64_t bytes = 0;  // announced and not there
  std::uint64_t phase = 0;
  std::vector<Thread*> waiting;
  Clocks arriving;           // what those know that arrived
  Clocks heard;              // of them, of all phases that are over
  std::uint32_t source = 0;  // of events
  int set_up_by = 0;         // thread
  bool fenced = false;       // so that the copy engine and other blocks may use it

  // Its next event: that the phase under way ends.
  Event end() const { return {static_cast<std::uint32_t>(phase) + 2, source}; }
};

enum class State : std::uint8_t { ready, together, block, cluster, products, barrier, ended };

struct Thread {
  Block* block;
  int id;
  std::uint64_t* registers;
  std::int32_t at = 0;
  State state = State::ready;
  std::size_t ready_place = 0;
  std::vector<std::byte> local;
  // Copies to shared memory, and boxes stored from there; groups in the order of their commit.
  struct Range {
    std::uint64_t address;
    std::size_t bytes;
  };
  struct Copy {
    std::uint64_t to;
    std::uint64_t from;
    std::size_t bytes;
    std::size_t valid;
    bool behind_launch;
  };
  std::vector<Copy> copies;
  std::deque<std::vector<Copy>> copy_groups;
  std::vector<Range> boxes;
  std::deque<std::vector<Range>> box_groups;
};

struct Warp {
  Thread* first = nullptr;
  int together = 0;          // threads that stand at an instruction of all
  std::uint32_t ready = 0;   // a bit for each that is
  std::uint32_t source = 0;  // of events
  Clocks clocks;
  double priority = 0;
  // Of its warpgroup's matrix instructions: how many it has run, and groups it has closed.
  std::size_t instructions = 0;
  std::size_t groups = 0;
  bool fenced = false;     // what it did with registers, before their next use by such
  bool fragments = false;  // these read A in registers
  // At its cluster's barrier.
  std::size_t cluster_arrivals = 0;
  std::size_t cluster_waits = 0;
  // Sums under way, which the registers do not show: by their slot.
  struct Sums {
    std::size_t group;
    std::array<std::uint64_t, kWarp> values;
  };
  std::map<std::int32_t, Sums> sums;
};

// Four warps whose matrix instructions are one: one is done when all of them have run it.
struct Warpgroup {
  std::vector<std::int32_t> instructions;  // where, as the first warp to come ran them
  // Pieces of shared memory that are read, of every group in its turn; those before `done` are no
  // longer.
  std::vector<std::vector<std::uint64_t>> groups;
  std::size_t done = 0;
  struct Wait {
    Thread* first;  // of the warp
    std::size_t groups;
  };
  std::vector<Wait> waiting;
};

struct Cluster;

// One of a block's, which threads reach by its number.
struct NamedBarrier {
  int expected = 0;
  int arrived = 0;
  bool any = false;
  std::vector<Thread*> waiting;
  Clocks heard;  // from those that arrived
};

struct Block {
  std::uint32_t index;
  std::uint32_t rank;  // in its cluster
  Cluster* cluster;
  SharedMemory shared;
  std::map<std::uint64_t, Barrier> barriers;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::uint64_t> registers;
  std::size_t alive;
  std::array<NamedBarrier, 16> named_barriers;
  std::vector<Warpgroup> warpgroups;

  explicit Block(std::size_t bytes) : shared(bytes) {}
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::size_t alive;        // blocks
  std::size_t arrived = 0;  // warps, in this phase
  std::size_t phase = 0;    // of the barrier: how many are over
  std::vector<Thread*> waiting;
  Clocks heard;     // from those that arrived in phases that are over
  Clocks arriving;  // and in this one
};

// Bytes on their way into a block's shared memory.
struct Transfer {
  Block* block;
  std::uint64_t address;
  std::size_t bytes;
  std::uint64_t barrier;  // that hears of them
  std::optional<Box> box;
  std::array<std::uint32_t, 4> values;  // where they come from no other place
  Clocks known;                         // to who started it
  std::uint64_t from = 0;               // in global memory, one behind the other

  // Else by a thread of another block.
  bool by_engine() const { return box || from != 0; }
};

inline Warp& warp_of(Thread& thread) {
  return thread.block->warps[static_cast<std::size_t>(thread.id) / kWarp];
}

inline Actor actor_of(Thread& thread) {
  const Warp& warp = warp_of(thread);
  return {thread.id, warp.source, &warp.clocks};
}

// Of a warp that stands at an instruction together and is to wait there.
inline void set_state(Thread& first, State state) {
  for (std::size_t lane = 0; lane < kWarp; ++lane) (&first)[lane].state = state;
}

// A warp's word to others of all that it did; what it does from now on they hear later.
inline void tell(Warp& warp, Clocks& others) {
  hear(others, warp.clocks);
  ++warp.clocks[warp.source];
}

inline Warpgroup& group_of(Thread& thread) {
  return thread.block->warpgroups[static_cast<std::size_t>(thread.id) / 128];
}

// The block and the place within it that a shared address names.
inline Block& block_at(Thread& thread, std::uint64_t address) {
  const std::uint64_t rank = (address & 0xffffffff) >> kRankShift;
  Cluster& cluster = *thread.block->cluster;
  if (rank >= cluster.blocks.size()) throw Fault("no such block in the cluster");
  Block& block = *cluster.blocks[rank];
  if (block.alive == 0) throw Fault("shared memory of a block that has ended");
  return block;
}

inline std::uint64_t own(Thread& thread, std::uint64_t address) {
  if (&block_at(thread, address) != thread.block) {
    throw Fault("shared memory of another block, by an instruction for one's own");
  }
  return address & kWithinBlock;
}

// A barrier that the actor knows to be set up.
inline Barrier& barrier_at(Block& block, std::uint64_t address, const Actor& actor) {
  const auto found = block.barriers.find(address & kWithinBlock);
  if (found == block.barriers.end() || heard(*actor.clocks, found->second.source) == 0) {
    throw Fault("no barrier was set up there, or not for certain");
  }
  return found->second;
}

// The same for the copy engine and for other blocks.
inline Barrier& fenced_barrier_at(Block& block, std::uint64_t address, const Actor& actor) {
  Barrier& barrier = barrier_at(block, address, actor);
  if (!barrier.fenced) throw Fault("a barrier whose setting up was not fenced");
  return barrier;
}

}  // namespace autotune::emulator
