#include <algorithm>

#include "test/emulator/launch.h"

namespace autotune::emulator {

bool Launch::at_barrier(Thread& t, const Instruction& i) {
  switch (i.op) {
    case Op::barrier_init: {
      const std::uint64_t at = own(t, value(t, i, 0));
      const std::int64_t arrivals = whole(t, i, 1);
      const auto [place, added] = t.block->barriers.emplace(at, Barrier{arrivals, arrivals});
      if (!added) throw Fault("a barrier is set up twice");
      t.block->shared.reserve(at, 8, actor_of(t));
      Barrier& barrier = place->second;
      barrier.source = next_barrier_++;
      barrier.set_up_by = t.id;
      Clocks& clocks = warp_of(t).clocks;
      clocks.resize(std::max<std::size_t>(clocks.size(), next_barrier_));
      clocks[barrier.source] = 1;
      return true;
    }
    case Op::barrier_arrive:
      if (i.operands != 2) throw Fault("several arrivals at once");
      arrive(t, barrier_at(*t.block, own(t, value(t, i, 1)), actor_of(t)));
      return true;
    case Op::barrier_arrive_there:
      if (i.operands != 2) throw Fault("several arrivals at once");
      arrive(t, fenced_barrier_at(block_at(t, value(t, i, 1)), value(t, i, 1), actor_of(t)));
      return true;
    case Op::barrier_expect: {
      Barrier& barrier = barrier_at(*t.block, own(t, value(t, i, 1)), actor_of(t));
      barrier.bytes += whole(t, i, 2);
      arrive(t, barrier);
      return true;
    }
    case Op::barrier_try:
    case Op::barrier_test: {
      Barrier& barrier = barrier_at(*t.block, own(t, value(t, i, 1)), actor_of(t));
      const bool passed = (barrier.phase & 1) != (value(t, i, 2) & 1);
      t.registers[operand(i, 0).slot] = passed ? 1 : 0;
      if (passed) hear(warp_of(t).clocks, barrier.heard);
      // A try may give up before the phase ends.
      constexpr double kGivesUp = 0.05;
      if (passed || i.op == Op::barrier_test || schedule_.chance() < kGivesUp) return true;
      schedule_.rest(t, State::barrier);
      barrier.waiting.push_back(&t);
      return false;
    }
    default:
      throw Fault("an instruction that nothing runs");
  }
}

void Launch::advance(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  const Event end = barrier.end();
  ++barrier.phase;
  hear(barrier.heard, barrier.arriving);
  barrier.heard.resize(std::max<std::size_t>(barrier.heard.size(), end.source + 1));
  barrier.heard[end.source] = end.time;
  barrier.missing = barrier.arrivals;
  schedule_.wake(barrier.waiting);
}

void Launch::arrive(Thread& thread, Barrier& barrier) {
  tell(warp_of(thread), barrier.arriving);
  if (barrier.missing == 0) throw Fault("more arrivals at a barrier than it was set up for");
  --barrier.missing;
  advance(barrier);
}

void Launch::fence_barriers(Thread& t) {
  for (auto& [address, barrier] : t.block->barriers) {
    if (barrier.set_up_by == t.id) barrier.fenced = true;
  }
}

bool Launch::at_block_barrier(Thread& first, const Lanes& lanes, const Instruction& i) {
  Block& block = *first.block;
  const int barrier_operand = i.op == Op::block_any ? 1 : 0;
  const auto number = value(first, i, barrier_operand);
  if (number >= block.named_barriers.size()) throw Fault("a barrier that no block has");
  NamedBarrier& barrier = block.named_barriers[static_cast<std::size_t>(number)];
  const int expected = i.op != Op::block_any && i.operands > 1
                           ? whole(first, i, 1)
                           : static_cast<int>(block.threads.size());
  if (barrier.arrived > 0 && barrier.expected != expected) {
    throw Fault("threads meet at a barrier and expect different numbers of them");
  }
  barrier.expected = expected;
  barrier.arrived += static_cast<int>(kWarp);
  tell(warp_of(first), barrier.heard);
  if (i.op == Op::block_any) {
    for (const std::uint64_t* lane : lanes) barrier.any |= (lane[operand(i, 2).slot] & 1) != 0;
  }
  const bool waits = i.op != Op::block_arrive;
  if (waits) {
    set_state(first, State::block);
    barrier.waiting.push_back(&first);
  }
  if (barrier.arrived > expected) throw Fault("more threads at a barrier than it expects");
  if (barrier.arrived == expected) {
    if (i.op == Op::block_any) {
      for (Thread* waiting : barrier.waiting) {
        const Instruction& own = program_.code[static_cast<std::size_t>(waiting->at)];
        for (std::size_t lane = 0; lane < kWarp; ++lane) {
          waiting[0]
              .block->threads[static_cast<std::size_t>(waiting->id) + lane]
              .registers[operand(own, 0).slot] = barrier.any ? 1 : 0;
        }
      }
    }
    barrier.arrived = 0;
    barrier.any = false;
    for (Thread* waiting : barrier.waiting) hear(warp_of(*waiting).clocks, barrier.heard);
    barrier.heard.clear();
    schedule_.go_on(barrier.waiting);
  }
  return !waits;
}

// Whoever waited for a phase may come to the next one, also while others have still to wait for it.
bool Launch::at_cluster_barrier(Thread& first, Op op) {
  Cluster& cluster = *first.block->cluster;
  Warp& warp = warp_of(first);
  if (op != Op::cluster_wait) {
    if (warp.cluster_arrivals != warp.cluster_waits) {
      throw Fault("a warp comes to a cluster's barrier again before it has waited there");
    }
    ++warp.cluster_arrivals;
    if (op == Op::cluster_release) {
      tell(warp, cluster.arriving);
    } else {  // a relaxed arrival says nothing but which barriers are set up
      hear(cluster.arriving, warp.clocks, first_barrier_);
    }
    const std::size_t warps = first.block->warps.size() * cluster.blocks.size();
    if (++cluster.arrived < warps) return true;
    cluster.arrived = 0;
    ++cluster.phase;
    hear(cluster.heard, cluster.arriving);
    cluster.arriving.clear();
    for (Thread* waiting : cluster.waiting) hear(warp_of(*waiting).clocks, cluster.heard);
    schedule_.go_on(cluster.waiting);
    return true;
  }
  if (++warp.cluster_waits != warp.cluster_arrivals) {
    throw Fault("a warp waits at a cluster's barrier to which it has not come");
  }
  if (cluster.phase >= warp.cluster_waits) {
    hear(warp.clocks, cluster.heard);
    return true;
  }
  set_state(first, State::cluster);
  cluster.waiting.push_back(&first);
  return false;
}

}  // namespace autotune::emulator
