#include "test/emulator/launch.h"

#include <cstring>

#include "test/emulator/arithmetic.h"

namespace autotune::emulator {

bool Launch::alone(Thread& t, const Instruction& i) {
  SharedMemory& shared = t.block->shared;
  switch (i.op) {
    case Op::nothing:
      return true;
    case Op::end:
      end_thread(t);
      return false;
    case Op::load:
      load(t, i);
      return true;
    case Op::store:
      store(t, i);
      return true;
    case Op::add_atomic:
      add_atomic(t, i);
      return true;
    case Op::proxy_fence:
      shared.fence(t.id);
      return true;
    case Op::global_proxy_fence:
      memory_.fence(actor_of(t));
      return true;
    case Op::copy:
      copy(t, i);
      return true;
    case Op::copy_commit:
      t.copy_groups.push_back(std::move(t.copies));
      t.copies.clear();
      return true;
    case Op::copy_wait:
      while (t.copy_groups.size() > static_cast<std::size_t>(whole(t, i, 0))) {
        for (const Thread::Copy& each : t.copy_groups.front()) finish_copy(t, each);
        t.copy_groups.pop_front();
      }
      return true;
    case Op::line_load:
      line_load(t, i);
      return true;
    case Op::box_load:
      box_load(t, i);
      return true;
    case Op::box_store:
      box_store(t, i);
      return true;
    case Op::box_commit:
      t.box_groups.push_back(std::move(t.boxes));
      t.boxes.clear();
      return true;
    case Op::box_wait:
      while (t.box_groups.size() > static_cast<std::size_t>(whole(t, i, 0))) {
        for (const Thread::Range& each : t.box_groups.front()) {
          shared.end_async_read(each.address, each.bytes);
        }
        t.box_groups.pop_front();
      }
      return true;
    case Op::barrier_fence:
      fence_barriers(t);
      return true;
    case Op::launch_wait:
      warp_of(t).clocks[kLaunchAhead] = 1;
      return true;
    case Op::map_address:
      t.registers[operand(i, 0).slot] = (value(t, i, 1) & kWithinBlock) | (value(t, i, 2) & 0xff)
                                                                              << kRankShift;
      return true;
    case Op::give:
      give(t, i);
      return true;
    default:
      return at_barrier(t, i);
  }
}

std::byte* Launch::memory_at(Thread& t, const Instruction& i, std::uint64_t address,
                             std::size_t bytes, bool writes) {
  switch (i.space) {
    case Space::shared:
      throw Fault("an instruction that shared memory does not have");
    case Space::param: {
      const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(params_.data());
      if (offset + bytes > plan_.params_size) throw Fault("past the end of the argument");
      break;
    }
    case Space::local: {
      const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(t.local.data());
      if (offset + bytes > t.local.size()) throw Fault("past the end of local memory");
      break;
    }
    case Space::global:
      if (i.constant) memory_.check_constant(address, bytes);
      if (i.acquires) {  // a word by which others are waited for
        memory_.check(address, bytes, writes, actor_of(t).behind_launch());
      } else {
        memory_.access(address, bytes, writes, actor_of(t));
      }
  }
  return reinterpret_cast<std::byte*>(address);
}

void Launch::load(Thread& t, const Instruction& i) {
  const auto element = static_cast<std::size_t>(bytes_of(i.type));
  const std::uint64_t address = value(t, i, i.count);
  const std::size_t bytes = element * i.count;
  const std::byte* from = i.space == Space::shared
                              ? t.block->shared.read(own(t, address), bytes, actor_of(t))
                              : memory_at(t, i, address, bytes, /*writes=*/false);
  for (int e = 0; e < i.count; ++e) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from + static_cast<std::size_t>(e) * element, element);
    // Into a register that may be wider.
    if (is_signed(i.type)) bits = static_cast<std::uint64_t>(signed_value(bits, i.type));
    if (operand(i, e).slot >= 0) t.registers[operand(i, e).slot] = bits;
  }
  if (i.acquires) hear(warp_of(t).clocks, memory_.released(address));
  polls_ = i.acquires;
}

void Launch::store(Thread& t, const Instruction& i) {
  const auto element = static_cast<std::size_t>(bytes_of(i.type));
  const std::size_t bytes = element * i.count;
  std::array<std::byte, 16> values;
  for (int e = 0; e < i.count; ++e) {
    const std::uint64_t bits = value(t, i, 1 + e);
    std::memcpy(values.data() + static_cast<std::size_t>(e) * element, &bits, element);
  }
  const std::uint64_t address = value(t, i, 0);
  if (i.space == Space::shared) {
    t.block->shared.write(own(t, address), values.data(), bytes, actor_of(t));
  } else {
    std::memcpy(memory_at(t, i, address, bytes, /*writes=*/true), values.data(), bytes);
    if (i.space == Space::global) memory_.note_store(address, bytes, actor_of(t));
  }
}

void Launch::add_atomic(Thread& t, const Instruction& i) {
  const int first = i.operands - 2;
  const std::uint64_t address = value(t, i, first);
  Warp& warp = warp_of(t);
  memory_.check(address, 4, /*writes=*/true, actor_of(t).behind_launch());
  if (i.acquires) hear(warp.clocks, memory_.released(address));
  if (i.releases) tell(warp, memory_.released(address));
  auto* at = reinterpret_cast<std::byte*>(address);
  std::uint32_t before;
  std::memcpy(&before, at, 4);
  const std::uint32_t after = before + static_cast<std::uint32_t>(value(t, i, first + 1));
  std::memcpy(at, &after, 4);
  if (first > 0 && operand(i, 0).slot >= 0) t.registers[operand(i, 0).slot] = before;
}

void Launch::copy(Thread& t, const Instruction& i) {
  Thread::Copy each{
      own(t, value(t, i, 0)), value(t, i, 1), static_cast<std::size_t>(whole(t, i, 2)),
      static_cast<std::size_t>(whole(t, i, i.operands > 3 ? 3 : 2)), actor_of(t).behind_launch()};
  if (each.to % each.bytes != 0 || each.from % each.bytes != 0) {
    throw Fault("a copy that is not aligned to its size");
  }
  if (each.valid > each.bytes) throw Fault("a copy of more bytes than its size");
  t.block->shared.begin_async_write(each.to, each.bytes, actor_of(t));
  t.copies.push_back(each);
}

void Launch::finish_copy(Thread& t, const Thread::Copy& each) {
  t.block->shared.end_async_write(each.to, each.bytes, {});
  std::array<std::byte, 16> values{};
  for (std::size_t at = 0; at < each.valid; at += 2)
    memory_.check(each.from + at, 2, false, each.behind_launch);
  std::memcpy(values.data(), reinterpret_cast<const void*>(each.from), each.valid);
  t.block->shared.write(each.to, values.data(), each.bytes, actor_of(t));
}

const TensorMap* Launch::map_at(std::uint64_t address) const {
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(params_.data());
  for (std::size_t m = 0; m < plan_.map_count; ++m) {
    if (plan_.maps[m].offset == offset) return &plan_.maps[m];
  }
  throw Fault("no tensor map lies there");
}

void Launch::line_load(Thread& t, const Instruction& i) {
  const Transfer transfer{t.block,
                          own(t, value(t, i, 0)),
                          static_cast<std::size_t>(whole(t, i, 2)),
                          own(t, value(t, i, 3)),
                          std::nullopt,
                          {},
                          {},
                          value(t, i, 1)};
  constexpr std::uint64_t kPiece = 16;
  if (transfer.bytes == 0 || transfer.bytes % kPiece != 0 || transfer.address % kPiece != 0 ||
      transfer.from % kPiece != 0) {
    throw Fault("a bulk copy of other than whole pieces of 16 bytes");
  }
  memory_.check_stored_fenced(transfer.from, transfer.bytes);
  start_transfer(t, transfer);
}

void Launch::box_load(Thread& t, const Instruction& i) {
  const std::uint64_t to = own(t, value(t, i, 0));
  const Box box{map_at(value(t, i, 1)), whole(t, i, 2), whole(t, i, 3), to};
  box.check_load();
  box.check_stored_fenced(memory_);
  const std::uint64_t barrier = own(t, value(t, i, 4));
  const Cluster& cluster = *t.block->cluster;
  const std::uint64_t blocks =
      i.multicast ? value(t, i, 5) & 0xffff : std::uint64_t{1} << t.block->rank;
  if (blocks >> cluster.blocks.size() != 0) throw Fault("no such block in the cluster");
  for (const auto& block : cluster.blocks) {
    if ((blocks >> block->rank & 1) == 0) continue;
    if (block->alive == 0) throw Fault("a copy goes to a block that has ended");
    start_transfer(t, {block.get(), to, box.bytes(), barrier, box, {}, {}});
  }
}

void Launch::box_store(Thread& t, const Instruction& i) {
  const std::uint64_t from = own(t, value(t, i, 3));
  const Box box{map_at(value(t, i, 0)), whole(t, i, 1), whole(t, i, 2), from};
  box.check_store();
  const Actor actor = actor_of(t);
  box.store(t.block->shared.begin_async_read(from, box.bytes(), actor), memory_, actor);
  t.boxes.push_back({from, box.bytes()});
}

void Launch::give(Thread& t, const Instruction& i) {
  const std::uint64_t to = value(t, i, 0);
  const std::uint64_t barrier = value(t, i, 1 + i.count);
  Block& block = block_at(t, to);
  if (&block != &block_at(t, barrier)) throw Fault("a barrier of another block than the bytes");
  Transfer transfer{&block, to & kWithinBlock, 4u * i.count, barrier, std::nullopt, {}, {}};
  if (transfer.address % transfer.bytes != 0) throw Fault("given bytes that are not aligned");
  for (int e = 0; e < i.count; ++e) {
    transfer.values[static_cast<std::size_t>(e)] = static_cast<std::uint32_t>(value(t, i, 1 + e));
  }
  start_transfer(t, transfer);
}

void Launch::start_transfer(Thread& thread, Transfer transfer) {
  const Actor actor = actor_of(thread);
  fenced_barrier_at(*transfer.block, transfer.barrier, actor);
  SharedMemory& shared = transfer.block->shared;
  shared.check_written_fenced(transfer.address, transfer.bytes);
  if (transfer.by_engine()) shared.check_read_fenced(transfer.address, transfer.bytes);
  shared.begin_async_write(transfer.address, transfer.bytes, actor);
  transfer.known = *actor.clocks;
  transfers_.push_back(std::move(transfer));
}

void Launch::finish_transfer() {
  const std::size_t which = schedule_.number() % transfers_.size();
  const Transfer transfer = std::move(transfers_[which]);
  transfers_[which] = std::move(transfers_.back());
  transfers_.pop_back();
  Block& block = *transfer.block;
  if (block.alive == 0) throw Fault("a copy comes to a block that has ended");
  const Actor starter{0, 0, &transfer.known};
  Barrier& barrier = fenced_barrier_at(block, transfer.barrier, starter);
  std::byte* target = block.shared.end_async_write(transfer.address, transfer.bytes, barrier.end());
  if (transfer.box) {
    transfer.box->load(target, memory_, starter.behind_launch());
  } else if (transfer.by_engine()) {
    for (std::size_t at = 0; at < transfer.bytes; at += 2) {
      memory_.check(transfer.from + at, 2, false, starter.behind_launch());
    }
    std::memcpy(target, reinterpret_cast<const void*>(transfer.from), transfer.bytes);
  } else {
    std::memcpy(target, transfer.values.data(), transfer.bytes);
  }
  barrier.bytes -= static_cast<std::int64_t>(transfer.bytes);
  advance(barrier);
}

}  // namespace autotune::emulator
