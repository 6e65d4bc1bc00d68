#include "test/emulator/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace autotune::emulator {

void Launch::come_together(Thread& thread, const Instruction& i) {
  Warp& warp = warp_of(thread);
  schedule_.rest(thread, State::together);
  if (++warp.together < static_cast<int>(kWarp)) return;
  warp.together = 0;
  Thread* first = &thread.block->threads[static_cast<std::size_t>(thread.id) / kWarp * kWarp];
  Lanes lanes;
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    if (first[lane].at != thread.at) {
      throw Fault(fmt::format("its warp is not together, thread {} is at PTX line {}",
                              first[lane].id,
                              program_.code[static_cast<std::size_t>(first[lane].at)].line));
    }
    lanes[lane] = first[lane].registers;
  }
  if (together(*first, lanes, i)) schedule_.go_on(*first);
}

bool Launch::together(Thread& first, const Lanes& lanes, const Instruction& i) {
  const Operand* operands = &program_.operands[static_cast<std::size_t>(i.first)];
  SharedMemory& shared = first.block->shared;
  switch (i.op) {
    case Op::warp_wait:
      return true;
    case Op::block_wait:
    case Op::block_arrive:
    case Op::block_any:
      return at_block_barrier(first, lanes, i);
    case Op::shuffle:
    case Op::shuffle_xor:
      shuffle(lanes, i);
      return true;
    case Op::vote_all:
    case Op::vote_any:
      vote(lanes, i);
      return true;
    case Op::load_matrix:
      load_matrix(i, operands, lanes, addresses(&first, i, i.count), shared, actor_of(first));
      return true;
    case Op::store_matrix:
      store_matrix(i, operands, lanes, addresses(&first, i, 0), shared, actor_of(first));
      return true;
    case Op::multiply:
      multiply(i, operands, lanes);
      return true;
    case Op::cluster_arrive:
    case Op::cluster_release:
    case Op::cluster_wait:
      return at_cluster_barrier(first, i.op);
    case Op::group_fence:
      note_instruction(first);
      warp_of(first).fenced = true;
      return true;
    case Op::group_multiply:
      note_instruction(first);
      if (!warp_of(first).fenced) throw Fault("a matrix instruction without a fence before it");
      show_sums(first, i);
      group_multiply(i, operands, lanes, first.id / 32 % 4, shared, actor_of(first),
                     open_group(first));
      hide_sums(first, i);
      return true;
    case Op::group_commit:
      note_instruction(first);
      open_group(first);
      ++warp_of(first).groups;
      finish_products(group_of(first), shared);
      return true;
    case Op::group_wait:
      note_instruction(first);
      return wait_for_products(first, static_cast<std::size_t>(whole(first, i, 0)));
    default:
      throw Fault("an instruction that nothing runs");
  }
}

void Launch::note_instruction(Thread& first) {
  std::vector<std::int32_t>& instructions = group_of(first).instructions;
  const std::size_t place = warp_of(first).instructions++;
  if (place == instructions.size()) {
    instructions.push_back(first.at);
  } else if (instructions[place] != first.at) {
    throw Fault("the warps of a warpgroup multiply or wait apart");
  }
}

std::vector<std::uint64_t>& Launch::open_group(Thread& first) {
  Warpgroup& group = group_of(first);
  const std::size_t index = warp_of(first).groups;
  if (group.groups.size() <= index) group.groups.resize(index + 1);
  return group.groups[index];
}

bool Launch::wait_for_products(Thread& first, std::size_t pending) {
  Warpgroup& group = group_of(first);
  const std::size_t closed = warp_of(first).groups;
  land_sums(first, closed > pending ? closed - pending : 0);
  if (closed <= pending || closed - pending <= group.done) return true;
  set_state(first, State::products);
  group.waiting.push_back({&first, closed - pending});
  finish_products(group, first.block->shared);
  return false;
}

void Launch::finish_products(Warpgroup& group, SharedMemory& shared) {
  if (group.waiting.empty()) return;
  Block& block = *group.waiting.front().first->block;
  const auto place = static_cast<std::size_t>(&group - block.warpgroups.data());
  std::size_t closed = block.warps[place * 4].groups;
  for (std::size_t w = 1; w < 4; ++w) {
    closed = std::min(closed, block.warps[place * 4 + w].groups);
  }
  std::vector<Warpgroup::Wait> still;
  std::vector<Thread*> gone;
  for (const Warpgroup::Wait& wait : group.waiting) {
    if (wait.groups > closed) {
      still.push_back(wait);
      continue;
    }
    for (; group.done < wait.groups; ++group.done) {
      for (const std::uint64_t piece : group.groups[group.done]) shared.end_async_read(piece, 16);
      group.groups[group.done] = {};
    }
    gone.push_back(wait.first);
  }
  group.waiting = std::move(still);
  schedule_.go_on(gone);
}

namespace {

// What a register holds while its sum is under way: no number, and nobody else's.
constexpr std::uint64_t kUnderWay = 0x7fdeadbe;

void show(std::uint64_t& sum, std::uint64_t value) {
  if (sum != kUnderWay) throw Fault("a sum is written while a matrix instruction is at it");
  sum = value;
}

}  // namespace

void Launch::hide_sums(Thread& first, const Instruction& i) {
  Warp& warp = warp_of(first);
  warp.fragments = reads_fragments(i);
  for (int r = 0; r < i.columns / 2; ++r) {
    const std::int32_t slot = operand(i, r).slot;
    Warp::Sums& sums = warp.sums[slot];
    sums.group = warp.groups;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      sums.values[lane] = std::exchange((&first)[lane].registers[slot], kUnderWay);
    }
  }
}

void Launch::show_sums(Thread& first, const Instruction& i) {
  const Warp& warp = warp_of(first);
  for (int r = 0; r < i.columns / 2; ++r) {
    const std::int32_t slot = operand(i, r).slot;
    const auto found = warp.sums.find(slot);
    if (found == warp.sums.end()) continue;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      show((&first)[lane].registers[slot], found->second.values[lane]);
    }
  }
}

// Registers that no matrix instruction is at any more may be used otherwise from here on.
void Launch::land_sums(Thread& first, std::size_t groups) {
  Warp& warp = warp_of(first);
  if (warp.fragments) warp.fenced = false;
  for (auto at = warp.sums.begin(); at != warp.sums.end();) {
    const auto& [slot, sums] = *at;
    if (sums.group >= groups) {
      ++at;
      continue;
    }
    warp.fenced = false;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      show((&first)[lane].registers[slot], sums.values[lane]);
    }
    at = warp.sums.erase(at);
  }
}

std::array<std::uint64_t, kWarp> Launch::addresses(Thread* first, const Instruction& i, int which) {
  std::array<std::uint64_t, kWarp> out;
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    out[lane] = own(first[lane], value(first[lane], i, which));
  }
  return out;
}

void Launch::shuffle(const Lanes& lanes, const Instruction& i) {
  std::array<std::uint64_t, kWarp> values;
  for (std::size_t lane = 0; lane < kWarp; ++lane)
    values[lane] = lanes[lane][operand(i, i.operands - 4).slot];
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    const std::uint64_t other = lanes[lane][operand(i, i.operands - 3).slot];
    const std::uint64_t from = i.op == Op::shuffle ? other : lane ^ other;
    if (lanes[lane][operand(i, i.operands - 2).slot] != 31) {
      throw Fault("a shuffle within parts of a warp");
    }
    lanes[lane][operand(i, 0).slot] = values[from % kWarp];
  }
}

void Launch::vote(const Lanes& lanes, const Instruction& i) {
  std::size_t count = 0;
  for (const std::uint64_t* lane : lanes) count += lane[operand(i, 1).slot] & 1;
  const bool result = i.op == Op::vote_all ? count == kWarp : count > 0;
  for (std::uint64_t* lane : lanes) lane[operand(i, 0).slot] = result ? 1 : 0;
}

}  // namespace autotune::emulator
