#include "test/emulator/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "test/emulator/arithmetic.h"
#include "test/emulator/box.h"
#include "test/emulator/matrix.h"
#include "test/emulator/order.h"

namespace autotune::emulator {

namespace {

constexpr std::uint64_t kRankShift = 24;  // of a shared address in a cluster
constexpr std::uint64_t kWithinBlock = (std::uint64_t{1} << kRankShift) - 1;
constexpr std::int64_t kMostInstructions = 1'000'000'000;  // of a launch
constexpr std::size_t kWarp = 32;

struct Block;
struct Thread;

// A transaction barrier (mbarrier).
struct Barrier {
  std::int64_t arrivals;  // of a phase
  std::int64_t missing;
  std::int64_t bytes = 0;  // announced and not there
  std::uint64_t phase = 0;
  std::vector<Thread*> waiting;
  Clocks arriving;  // what those know that arrived
  Clocks heard;     // of them, of all phases that are over
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
  };
  std::vector<Copy> copies;
  std::deque<std::vector<Copy>> copy_groups;
  std::vector<Range> boxes;
  std::deque<std::vector<Range>> box_groups;
};

struct Warp {
  Thread* first = nullptr;
  int together = 0;         // threads that stand at an instruction of all
  std::uint32_t ready = 0;  // a bit for each that is
  std::uint16_t index = 0;  // in the cluster
  Clocks clocks;
  double priority = 0;
  // Of its warpgroup's matrix instructions: how many it has run, and groups it has closed.
  std::size_t instructions = 0;
  std::size_t groups = 0;
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
  // Barrier 0 of the block.
  int expected = 0;
  int arrived = 0;
  bool any = false;
  std::vector<Thread*> waiting;
  Clocks heard;  // from those that arrived
  std::vector<Warpgroup> warpgroups;

  explicit Block(std::size_t bytes) : shared(bytes) {}
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::size_t alive;  // blocks
  std::size_t arrived = 0;
  std::size_t left = 0;  // of those that arrived, still to wait
  bool open = false;
  std::vector<Thread*> waiting;
  Clocks heard;  // from those that arrived
};

// Bytes on their way into a block's shared memory.
struct Transfer {
  Block* block;
  std::uint64_t address;
  std::size_t bytes;
  std::uint64_t barrier;  // that hears of them
  std::optional<Box> box;
  std::array<std::uint32_t, 4> values;  // where there is no box
};

class Machine {
 public:
  Machine(const Program& program, const LaunchPlan& plan, const GlobalMemory& memory,
          std::uint64_t seed)
      : program_(program), plan_(plan), memory_(memory), random_(seed), params_(plan.params) {
    std::uniform_real_distribution<double> share(0, 1);
    constexpr double kHaste[] = {0.02, 0.3, 0.9};
    haste_ = kHaste[random_() % 3];
    by_priority_ = random_() % 2 == 0;
    most_at_once_ = random_() % 2 == 0 ? 64 : 2000;
    const auto size = plan.cluster[0] * plan.cluster[1] * plan.cluster[2];
    if (plan.grid[1] * plan.grid[2] != 1 || plan.block[1] * plan.block[2] != 1) {
      throw Fault("a grid or block of more than one dimension");
    }
    if (plan.grid[0] % size != 0) throw Fault("a grid of parts of clusters");
    cluster_size_ = size;
    clusters_ = plan.grid[0] / size;
    at_once_ = plan.cooperative ? clusters_ : 1 + random_() % 4;
  }

  void run() {
    while (next_cluster_ < clusters_ || !running_.empty()) {
      while (running_.size() < at_once_ && next_cluster_ < clusters_) start_cluster();
      if (ready_.empty() && transfers_.empty()) stuck();
      if (!transfers_.empty() && (ready_.empty() || chance() < haste_)) {
        finish_transfer();
      } else {
        run_thread(pick());
        ended_.clear();
      }
    }
    if (!transfers_.empty()) throw Fault("copies are under way behind the last block's end");
  }

 private:
  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  // --- blocks and threads

  void start_cluster() {
    auto cluster = std::make_unique<Cluster>();
    cluster->alive = cluster_size_;
    for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
      cluster->blocks.push_back(new_block(*cluster, next_cluster_ * cluster_size_ + rank, rank));
    }
    ++next_cluster_;
    running_.push_back(std::move(cluster));
  }

  std::unique_ptr<Block> new_block(Cluster& cluster, std::uint32_t index, std::uint32_t rank) {
    auto block = std::make_unique<Block>(plan_.smem_bytes);
    const std::size_t threads = plan_.block[0];
    if (threads % kWarp != 0) throw Fault("a warp that is not whole");
    block->index = index;
    block->rank = rank;
    block->cluster = &cluster;
    block->alive = threads;
    block->threads.resize(threads);
    block->warps.resize(threads / kWarp);
    for (std::size_t w = 0; w < block->warps.size(); ++w) {
      block->warps[w].priority = chance();
      block->warps[w].first = &block->threads[w * kWarp];
      block->warps[w].index = static_cast<std::uint16_t>(rank * block->warps.size() + w);
      block->warps[w].clocks.resize(block->warps.size() * cluster_size_);
      block->warps[w].clocks[block->warps[w].index] = 1;
    }
    block->warpgroups.resize((threads + 127) / 128);
    const auto slots = static_cast<std::size_t>(program_.slots);
    // What nobody has written is no number.
    block->registers.assign(threads * slots, 0xffffffffffffffff);
    for (std::size_t id = 0; id < threads; ++id) {
      Thread& thread = block->threads[id];
      thread.block = block.get();
      thread.id = static_cast<int>(id);
      thread.local.resize(static_cast<std::size_t>(program_.local_bytes));
      std::uint64_t* registers = block->registers.data() + id * slots;
      thread.registers = registers;
      registers[kThreadX] = id;
      registers[kThreadsX] = threads;
      registers[kBlockX] = index;
      registers[kBlocksX] = plan_.grid[0];
      registers[kClusterRank] = rank;
      registers[kShared] = kSharedBase | std::uint64_t{rank} << kRankShift;
      registers[kParam] = reinterpret_cast<std::uint64_t>(params_.data());
      registers[kLocal] = reinterpret_cast<std::uint64_t>(thread.local.data());
      for (const auto& [value, slot] : program_.constants) registers[slot] = value;
      wake(thread);
    }
    return block;
  }

  void wake(Thread& thread) {
    thread.state = State::ready;
    thread.ready_place = ready_.size();
    ready_.push_back(&thread);
    Warp& warp = warp_of(thread);
    if (warp.ready == 0) ready_warps_.insert({warp.priority, &warp});
    warp.ready |= 1u << thread.id % kWarp;
  }

  void wake(std::vector<Thread*>& threads) {
    for (Thread* thread : threads) wake(*thread);
    threads.clear();
  }

  void rest(Thread& thread, State state) {
    thread.state = state;
    Thread* last = ready_.back();
    ready_[thread.ready_place] = last;
    last->ready_place = thread.ready_place;
    ready_.pop_back();
    Warp& warp = warp_of(thread);
    warp.ready &= ~(1u << thread.id % kWarp);
    if (warp.ready == 0) ready_warps_.erase({warp.priority, &warp});
  }

  void set_priority(Warp& warp, double priority) {
    const bool ready = ready_warps_.erase({warp.priority, &warp}) > 0;
    warp.priority = priority;
    if (ready) ready_warps_.insert({priority, &warp});
  }

  static Warp& warp_of(Thread& thread) {
    return thread.block->warps[static_cast<std::size_t>(thread.id) / kWarp];
  }

  static Actor actor_of(Thread& thread) {
    const Warp& warp = warp_of(thread);
    return {thread.id, warp.index, &warp.clocks};
  }

  // A warp's word to others of all that it did; what it does from now on they hear later.
  static void tell(Warp& warp, Clocks& others) {
    hear(others, warp.clocks);
    ++warp.clocks[warp.index];
  }

  static Warpgroup& group_of(Thread& thread) {
    return thread.block->warpgroups[static_cast<std::size_t>(thread.id) / 128];
  }

  // Any thread, or, where warps have priorities, one of the foremost warp; those change now and
  // then.
  Thread& pick() {
    if (!by_priority_) return *ready_[random_() % ready_.size()];
    if (random_() % 64 == 0) set_priority(warp_of(*ready_[random_() % ready_.size()]), chance());
    const Warp& foremost = *ready_warps_.rbegin()->second;
    return foremost.first[std::countr_zero(foremost.ready)];
  }

  void run_thread(Thread& thread) {
    const std::int64_t most = static_cast<std::int64_t>(1 + random_() % most_at_once_);
    std::int64_t done = 0;
    try {
      for (; done < most && thread.state == State::ready && !polls_; ++done) step(thread);
    } catch (const Fault& fault) {
      const Instruction& i = program_.code[static_cast<std::size_t>(thread.at)];
      throw Fault(fmt::format("{}: block {}, thread {}, PTX line {}: {}", fault.what(),
                              thread.block->index, thread.id, i.line,
                              program_.lines[static_cast<std::size_t>(i.line)]));
    }
    if (polls_) set_priority(warp_of(thread), warp_of(thread).priority - 1);
    polls_ = false;
    instructions_ += done;
    if (instructions_ > kMostInstructions) {
      throw Fault("the launch does not end: " + whereabouts());
    }
  }

  std::string whereabouts() const {
    std::map<std::string, int> places;
    for (const auto& cluster : running_) {
      for (const auto& block : cluster->blocks) {
        for (const Thread& thread : block->threads) {
          if (thread.state == State::ended) continue;
          const Instruction& i = program_.code[static_cast<std::size_t>(thread.at)];
          ++places[fmt::format("warp {} of block {} at PTX line {}: {}", thread.id / 32,
                               block->index, i.line,
                               program_.lines[static_cast<std::size_t>(i.line)])];
        }
      }
    }
    std::string text;
    for (const auto& [place, count] : places) text += fmt::format("\n  {} of {}", count, place);
    return text;
  }

  [[noreturn]] void stuck() const {
    throw Fault("all that is left waits for what does not come:" + whereabouts());
  }

  void end_thread(Thread& thread) {
    rest(thread, State::ended);
    if (!thread.copies.empty() || !thread.copy_groups.empty()) {
      throw Fault("a thread ends before its copies");
    }
    if (!thread.boxes.empty() || !thread.box_groups.empty()) {
      throw Fault("a thread ends while its boxes are still read");
    }
    const Warpgroup& group = group_of(thread);
    if (group.done < group.groups.size()) throw Fault("a thread ends before its products");
    if (--thread.block->alive > 0) return;
    Cluster* cluster = thread.block->cluster;
    if (--cluster->alive > 0) return;
    for (const Transfer& transfer : transfers_) {
      if (transfer.block->cluster == cluster) throw Fault("a block ends before its copies");
    }
    const auto place = std::find_if(running_.begin(), running_.end(),
                                    [cluster](const auto& each) { return each.get() == cluster; });
    ended_.push_back(std::move(*place));  // its last thread is still at work here
    running_.erase(place);
  }

  // --- shared memory

  // The block and the place within it that a shared address names.
  Block& block_at(Thread& thread, std::uint64_t address) {
    const std::uint64_t rank = (address & 0xffffffff) >> kRankShift;
    Cluster& cluster = *thread.block->cluster;
    if (rank >= cluster.blocks.size()) throw Fault("no such block in the cluster");
    Block& block = *cluster.blocks[rank];
    if (block.alive == 0) throw Fault("shared memory of a block that has ended");
    return block;
  }

  std::uint64_t own(Thread& thread, std::uint64_t address) {
    if (&block_at(thread, address) != thread.block) {
      throw Fault("shared memory of another block, by an instruction for one's own");
    }
    return address & kWithinBlock;
  }

  static Barrier& barrier_at(Block& block, std::uint64_t address) {
    const auto found = block.barriers.find(address & kWithinBlock);
    if (found == block.barriers.end()) throw Fault("no barrier was set up there");
    return found->second;
  }

  void advance(Barrier& barrier) {
    if (barrier.missing > 0 || barrier.bytes != 0) return;
    ++barrier.phase;
    hear(barrier.heard, barrier.arriving);
    barrier.missing = barrier.arrivals;
    wake(barrier.waiting);
  }

  void arrive(Thread& thread, Barrier& barrier) {
    tell(warp_of(thread), barrier.arriving);
    if (barrier.missing == 0) throw Fault("more arrivals at a barrier than it was set up for");
    --barrier.missing;
    advance(barrier);
  }

  void finish_transfer() {
    const std::size_t which = random_() % transfers_.size();
    const Transfer transfer = transfers_[which];
    transfers_[which] = transfers_.back();
    transfers_.pop_back();
    Block& block = *transfer.block;
    if (block.alive == 0) throw Fault("a copy comes to a block that has ended");
    std::byte* target = block.shared.end_async_write(transfer.address, transfer.bytes);
    if (transfer.box) {
      transfer.box->load(target, memory_);
    } else {
      std::memcpy(target, transfer.values.data(), transfer.bytes);
    }
    Barrier& barrier = barrier_at(block, transfer.barrier);
    barrier.bytes -= static_cast<std::int64_t>(transfer.bytes);
    advance(barrier);
  }

  void start_transfer(Thread& thread, const Transfer& transfer) {
    transfer.block->shared.begin_async_write(transfer.address, transfer.bytes, actor_of(thread));
    transfers_.push_back(transfer);
  }

  // --- instructions

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

  void step(Thread& thread) {
    const Instruction& i = program_.code[static_cast<std::size_t>(thread.at)];
    if (i.guard >= 0 && ((thread.registers[i.guard] & 1) != 0) == i.guard_not) {
      ++thread.at;
      return;
    }
    if (i.op == Op::branch) {
      thread.at = i.target;
      return;
    }
    if (calculate(i, &program_.operands[static_cast<std::size_t>(i.first)], thread.registers)) {
      ++thread.at;
      return;
    }
    if (is_together(i.op)) {
      come_together(thread, i);
      return;
    }
    if (alone(thread, i)) ++thread.at;
  }

  // Whether the thread goes on behind it.
  bool alone(Thread& t, const Instruction& i) {
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

  bool at_barrier(Thread& t, const Instruction& i) {
    switch (i.op) {
      case Op::barrier_init: {
        const std::uint64_t at = own(t, value(t, i, 0));
        const std::int64_t arrivals = whole(t, i, 1);
        if (!t.block->barriers.emplace(at, Barrier{arrivals, arrivals}).second) {
          throw Fault("a barrier is set up twice");
        }
        t.block->shared.reserve(at, 8, actor_of(t));
        return true;
      }
      case Op::barrier_arrive:
        arrive(t, barrier_at(*t.block, own(t, value(t, i, 1))));
        return true;
      case Op::barrier_arrive_there:
        arrive(t, barrier_at(block_at(t, value(t, i, 1)), value(t, i, 1)));
        return true;
      case Op::barrier_expect: {
        Barrier& barrier = barrier_at(*t.block, own(t, value(t, i, 1)));
        barrier.bytes += whole(t, i, 2);
        arrive(t, barrier);
        return true;
      }
      case Op::barrier_try:
      case Op::barrier_test: {
        Barrier& barrier = barrier_at(*t.block, own(t, value(t, i, 1)));
        const bool passed = (barrier.phase & 1) != (value(t, i, 2) & 1);
        t.registers[operand(i, 0).slot] = passed ? 1 : 0;
        if (passed) hear(warp_of(t).clocks, barrier.heard);
        if (passed || i.op == Op::barrier_test) return true;
        rest(t, State::barrier);
        barrier.waiting.push_back(&t);
        return false;
      }
      default:
        throw Fault("an instruction that nothing runs");
    }
  }

  // Memory of any space but the shared one.
  std::byte* memory_at(Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes,
                       bool writes) {
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
        memory_.check(address, bytes, writes);
    }
    return reinterpret_cast<std::byte*>(address);
  }

  void load(Thread& t, const Instruction& i) {
    const auto element = static_cast<std::size_t>(bytes_of(i.type));
    const std::uint64_t address = value(t, i, i.count);
    const std::size_t bytes = element * i.count;
    const std::byte* from = i.space == Space::shared
                                ? t.block->shared.read(own(t, address), bytes, actor_of(t))
                                : memory_at(t, i, address, bytes, /*writes=*/false);
    for (int e = 0; e < i.count; ++e) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, from + static_cast<std::size_t>(e) * element, element);
      if (is_signed(i.type)) {  // into a register that may be wider
        const auto unused = static_cast<int>(64 - 8 * element);
        bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
      }
      t.registers[operand(i, e).slot] = bits;
    }
    polls_ = i.acquires;
  }

  void store(Thread& t, const Instruction& i) {
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
    }
  }

  // atom has a register for what was there before, red has none.
  void add_atomic(Thread& t, const Instruction& i) {
    const int first = i.operands - 2;
    std::byte* at = memory_at(t, i, value(t, i, first), 4, /*writes=*/true);
    std::uint32_t before;
    std::memcpy(&before, at, 4);
    const std::uint32_t after = before + static_cast<std::uint32_t>(value(t, i, first + 1));
    std::memcpy(at, &after, 4);
    if (first > 0 && operand(i, 0).slot >= 0) t.registers[operand(i, 0).slot] = before;
  }

  void copy(Thread& t, const Instruction& i) {
    Thread::Copy each{own(t, value(t, i, 0)), value(t, i, 1),
                      static_cast<std::size_t>(whole(t, i, 2)),
                      static_cast<std::size_t>(whole(t, i, i.operands > 3 ? 3 : 2))};
    if (each.to % each.bytes != 0 || each.from % each.bytes != 0) {
      throw Fault("a copy that is not aligned to its size");
    }
    if (each.valid > each.bytes) throw Fault("a copy of more bytes than its size");
    t.block->shared.begin_async_write(each.to, each.bytes, actor_of(t));
    t.copies.push_back(each);
  }

  void finish_copy(Thread& t, const Thread::Copy& each) {
    t.block->shared.end_async_write(each.to, each.bytes);
    std::array<std::byte, 16> values{};
    for (std::size_t at = 0; at < each.valid; at += 2) memory_.check(each.from + at, 2, false);
    std::memcpy(values.data(), reinterpret_cast<const void*>(each.from), each.valid);
    t.block->shared.write(each.to, values.data(), each.bytes, actor_of(t));
  }

  const TensorMap* map_at(std::uint64_t address) const {
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(params_.data());
    for (std::size_t m = 0; m < plan_.map_count; ++m) {
      if (plan_.maps[m].offset == offset) return &plan_.maps[m];
    }
    throw Fault("no tensor map lies there");
  }

  void box_load(Thread& t, const Instruction& i) {
    const std::uint64_t to = own(t, value(t, i, 0));
    const Box box{map_at(value(t, i, 1)), whole(t, i, 2), whole(t, i, 3), to};
    box.check_load();
    const std::uint64_t barrier = own(t, value(t, i, 4));
    const Cluster& cluster = *t.block->cluster;
    const std::uint64_t blocks =
        i.multicast ? value(t, i, 5) & 0xffff : std::uint64_t{1} << t.block->rank;
    if (blocks >> cluster.blocks.size() != 0) throw Fault("no such block in the cluster");
    for (const auto& block : cluster.blocks) {
      if ((blocks >> block->rank & 1) == 0) continue;
      if (block->alive == 0) throw Fault("a copy goes to a block that has ended");
      start_transfer(t, {block.get(), to, box.bytes(), barrier, box, {}});
    }
  }

  void box_store(Thread& t, const Instruction& i) {
    const std::uint64_t from = own(t, value(t, i, 3));
    const Box box{map_at(value(t, i, 0)), whole(t, i, 1), whole(t, i, 2), from};
    box.check_store();
    box.store(t.block->shared.begin_async_read(from, box.bytes(), actor_of(t)), memory_);
    t.boxes.push_back({from, box.bytes()});
  }

  void give(Thread& t, const Instruction& i) {
    const std::uint64_t to = value(t, i, 0);
    const std::uint64_t barrier = value(t, i, 1 + i.count);
    Block& block = block_at(t, to);
    if (&block != &block_at(t, barrier)) throw Fault("a barrier of another block than the bytes");
    Transfer transfer{&block, to & kWithinBlock, 4u * i.count, barrier, std::nullopt, {}};
    if (transfer.address % transfer.bytes != 0) throw Fault("given bytes that are not aligned");
    for (int e = 0; e < i.count; ++e) {
      transfer.values[static_cast<std::size_t>(e)] = static_cast<std::uint32_t>(value(t, i, 1 + e));
    }
    start_transfer(t, transfer);
  }

  // --- what a warp does together

  static bool is_together(Op op) { return op >= Op::block_wait && op <= Op::group_wait; }

  void come_together(Thread& thread, const Instruction& i) {
    Warp& warp = warp_of(thread);
    rest(thread, State::together);
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
    if (!together(*first, lanes, i)) return;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      ++first[lane].at;
      wake(first[lane]);
    }
  }

  void go_on(std::vector<Thread*>& waiting) {
    for (Thread* first : waiting) {
      for (std::size_t lane = 0; lane < kWarp; ++lane) {
        ++first[lane].at;
        wake(first[lane]);
      }
    }
    waiting.clear();
  }

  static void rest_warp(Thread& first, State state) {
    for (std::size_t lane = 0; lane < kWarp; ++lane) (&first)[lane].state = state;
  }

  // Whether the warp goes on at once. `first` is its first thread.
  bool together(Thread& first, const Lanes& lanes, const Instruction& i) {
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
      case Op::cluster_wait:
        return at_cluster_barrier(first, i.op);
      case Op::group_fence:
        note_instruction(first);
        return true;
      case Op::group_multiply:
        note_instruction(first);
        group_multiply(i, operands, lanes, first.id / 32 % 4, shared, actor_of(first),
                       open_group(first));
        return true;
      case Op::group_commit:
        note_instruction(first);
        open_group(first);
        ++warp_of(first).groups;
        finish_products(group_of(first), shared);
        return true;
      case Op::group_wait:
        return wait_for_products(first, static_cast<std::size_t>(whole(first, i, 0)));
      default:
        throw Fault("an instruction that nothing runs");
    }
  }

  // The four warps of a warpgroup run the same matrix instructions.
  static void note_instruction(Thread& first) {
    std::vector<std::int32_t>& instructions = group_of(first).instructions;
    const std::size_t place = warp_of(first).instructions++;
    if (place == instructions.size()) {
      instructions.push_back(first.at);
    } else if (instructions[place] != first.at) {
      throw Fault("the warps of a warpgroup run different matrix instructions");
    }
  }

  static std::vector<std::uint64_t>& open_group(Thread& first) {
    Warpgroup& group = group_of(first);
    const std::size_t index = warp_of(first).groups;
    if (group.groups.size() <= index) group.groups.resize(index + 1);
    return group.groups[index];
  }

  // Whether the warp goes on at once. Only some warps of the four may take a branch with a wait in
  // it (wgmma_accumulate.cuh says why).
  bool wait_for_products(Thread& first, std::size_t pending) {
    Warpgroup& group = group_of(first);
    const std::size_t closed = warp_of(first).groups;
    if (closed <= pending || closed - pending <= group.done) return true;
    rest_warp(first, State::products);
    group.waiting.push_back({&first, closed - pending});
    finish_products(group, first.block->shared);
    return false;
  }

  // Ends the groups that all four warps have run and one waits for.
  void finish_products(Warpgroup& group, SharedMemory& shared) {
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
    go_on(gone);
  }

  std::array<std::uint64_t, kWarp> addresses(Thread* first, const Instruction& i, int which) {
    std::array<std::uint64_t, kWarp> out;
    for (std::size_t lane = 0; lane < kWarp; ++lane) {
      out[lane] = own(first[lane], value(first[lane], i, which));
    }
    return out;
  }

  void shuffle(const Lanes& lanes, const Instruction& i) {
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

  void vote(const Lanes& lanes, const Instruction& i) {
    std::size_t count = 0;
    for (const std::uint64_t* lane : lanes) count += lane[operand(i, 1).slot] & 1;
    const bool result = i.op == Op::vote_all ? count == kWarp : count > 0;
    for (std::uint64_t* lane : lanes) lane[operand(i, 0).slot] = result ? 1 : 0;
  }

  bool at_block_barrier(Thread& first, const Lanes& lanes, const Instruction& i) {
    Block& block = *first.block;
    const int barrier_operand = i.op == Op::block_any ? 1 : 0;
    if (value(first, i, barrier_operand) != 0) throw Fault("another barrier than 0");
    const int expected = i.op != Op::block_any && i.operands > 1
                             ? whole(first, i, 1)
                             : static_cast<int>(block.threads.size());
    if (block.arrived > 0 && block.expected != expected) {
      throw Fault("threads meet at a barrier and expect different numbers of them");
    }
    block.expected = expected;
    block.arrived += static_cast<int>(kWarp);
    tell(warp_of(first), block.heard);
    if (i.op == Op::block_any) {
      for (const std::uint64_t* lane : lanes) block.any |= (lane[operand(i, 2).slot] & 1) != 0;
    }
    const bool waits = i.op != Op::block_arrive;
    if (waits) {
      rest_warp(first, State::block);
      block.waiting.push_back(&first);
    }
    if (block.arrived > expected) throw Fault("more threads at a barrier than it expects");
    if (block.arrived == expected) {
      if (i.op == Op::block_any) {
        for (Thread& thread : block.threads) {
          thread.registers[operand(i, 0).slot] = block.any ? 1 : 0;
        }
      }
      block.arrived = 0;
      block.any = false;
      for (Thread* waiting : block.waiting) hear(warp_of(*waiting).clocks, block.heard);
      block.heard.clear();
      go_on(block.waiting);
    }
    return !waits;
  }

  bool at_cluster_barrier(Thread& first, Op op) {
    Cluster& cluster = *first.block->cluster;
    const std::size_t warps = first.block->warps.size() * cluster.blocks.size();
    if (op == Op::cluster_arrive) {
      if (cluster.open) throw Fault("a cluster's barrier before all have left it");
      tell(warp_of(first), cluster.heard);
      if (++cluster.arrived < warps) return true;
      cluster.open = true;
      cluster.arrived = 0;
      cluster.left = warps - cluster.waiting.size();
      if (cluster.left == 0) cluster.open = false;
      for (Thread* waiting : cluster.waiting) hear(warp_of(*waiting).clocks, cluster.heard);
      go_on(cluster.waiting);
      return true;
    }
    if (cluster.open) {
      hear(warp_of(first).clocks, cluster.heard);
      if (--cluster.left == 0) cluster.open = false;
      return true;
    }
    rest_warp(first, State::cluster);
    cluster.waiting.push_back(&first);
    return false;
  }

  const Program& program_;
  const LaunchPlan& plan_;
  const GlobalMemory& memory_;
  std::mt19937_64 random_;
  alignas(64) decltype(LaunchPlan::params) params_;
  double haste_;  // of copies
  bool by_priority_;
  std::uint64_t most_at_once_;  // instructions of a thread
  std::size_t cluster_size_;
  std::size_t clusters_;
  std::size_t at_once_;  // clusters
  std::uint32_t next_cluster_ = 0;
  std::vector<std::unique_ptr<Cluster>> running_;
  std::vector<std::unique_ptr<Cluster>> ended_;
  std::vector<Thread*> ready_;
  std::set<std::pair<double, Warp*>> ready_warps_;  // of which a thread is, by priority
  std::vector<Transfer> transfers_;
  std::int64_t instructions_ = 0;
  bool polls_ = false;  // the thread reads what others are about to write: they come first
};

}  // namespace

void run(const Program& program, const LaunchPlan& plan, const GlobalMemory& memory,
         std::uint64_t seed) {
  Machine(program, plan, memory, seed).run();
}

}  // namespace autotune::emulator
