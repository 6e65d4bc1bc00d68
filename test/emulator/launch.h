// One launch of a kernel under way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "test/emulator/matrix.h"
#include "test/emulator/memory.h"
#include "test/emulator/program.h"
#include "test/emulator/schedule.h"
#include "test/emulator/state.h"

namespace autotune::emulator {

class Launch {
 public:
  Launch(const Program& program, const LaunchPlan& plan, GlobalMemory& memory, std::uint64_t seed);
  void run();

 private:
  // launch.cc: blocks come and go, threads have their turns.

  void start_cluster();
  std::unique_ptr<Block> new_block(Cluster& cluster, std::uint32_t index, std::uint32_t rank);
  void run_thread(Thread& thread);
  std::string whereabouts() const;
  [[noreturn]] void stuck() const;
  void end_thread(Thread& thread);
  void step(Thread& thread);

  // alone.cc: what a thread does for itself, and copies.

  // Whether the thread goes on behind it.
  bool alone(Thread& t, const Instruction& i);
  // Memory of any space but the shared one.
  std::byte* memory_at(Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes,
                       bool writes);
  void load(Thread& t, const Instruction& i);
  void store(Thread& t, const Instruction& i);
  // atom has a register for what was there before, red has none.
  void add_atomic(Thread& t, const Instruction& i);
  void copy(Thread& t, const Instruction& i);
  void finish_copy(Thread& t, const Thread::Copy& each);
  const TensorMap* map_at(std::uint64_t address) const;
  void line_load(Thread& t, const Instruction& i);
  void box_load(Thread& t, const Instruction& i);
  void box_store(Thread& t, const Instruction& i);
  void give(Thread& t, const Instruction& i);
  void start_transfer(Thread& thread, Transfer transfer);
  void finish_transfer();
  void fence_barriers(Thread& t);

  // barriers.cc

  // Whether the thread, or warp, goes on at once.
  bool at_barrier(Thread& t, const Instruction& i);
  void advance(Barrier& barrier);
  void arrive(Thread& thread, Barrier& barrier);
  bool at_block_barrier(Thread& first, const Lanes& lanes, const Instruction& i);
  bool at_cluster_barrier(Thread& first, Op op);

  // together.cc: what a warp does.

  void come_together(Thread& thread, const Instruction& i);
  // Whether the warp goes on at once. `first` is its first thread.
  bool together(Thread& first, const Lanes& lanes, const Instruction& i);
  // The four warps of a warpgroup run the same matrix instructions, and wait for them alike.
  static void note_instruction(Thread& first);
  static std::vector<std::uint64_t>& open_group(Thread& first);
  // Whether the warp goes on at once.
  bool wait_for_products(Thread& first, std::size_t pending);
  // Ends the groups that all four warps have run and one waits for.
  void finish_products(Warpgroup& group, SharedMemory& shared);
  // What registers hold while sums are under way, and when a wait of the warp ends those of its
  // first `groups`.
  void hide_sums(Thread& first, const Instruction& i);
  void show_sums(Thread& first, const Instruction& i);
  void land_sums(Thread& first, std::size_t groups);
  std::array<std::uint64_t, kWarp> addresses(Thread* first, const Instruction& i, int which);
  void shuffle(const Lanes& lanes, const Instruction& i);
  void vote(const Lanes& lanes, const Instruction& i);

  const Operand& operand(const Instruction& i, int which) const {
    return program_.operands[static_cast<std::size_t>(i.first + which)];
  }
  // A value, or an address.
  std::uint64_t value(const Thread& thread, const Instruction& i, int which) const {
    const Operand& from = operand(i, which);
    return thread.registers[from.slot] + static_cast<std::uint64_t>(std::int64_t{from.offset});
  }
  int whole(const Thread& thread, const Instruction& i, int which) const {
    return static_cast<int>(static_cast<std::uint32_t>(value(thread, i, which)));
  }

  const Program& program_;
  const LaunchPlan& plan_;
  GlobalMemory& memory_;
  Schedule schedule_;
  alignas(64) decltype(LaunchPlan::params) params_;
  std::size_t cluster_size_;
  std::size_t clusters_;
  std::size_t at_once_;        // clusters
  std::size_t first_barrier_;  // as a source of events
  std::uint32_t next_barrier_;
  std::uint32_t next_cluster_ = 0;
  std::vector<std::unique_ptr<Cluster>> running_;
  std::vector<std::unique_ptr<Cluster>> ended_;
  std::vector<Transfer> transfers_;
  std::int64_t instructions_ = 0;
  bool polls_ = false;  // the thread reads what others are about to write
};

}  // namespace autotune::emulator
