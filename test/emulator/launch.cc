#include "test/emulator/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "test/emulator/arithmetic.h"
#include "test/emulator/emulator.h"

namespace autotune::emulator {

namespace {

constexpr std::int64_t kMostInstructions = 1'000'000'000;  // of a launch

// What a warp runs only together.
bool is_together(Op op) { return op >= Op::block_wait && op <= Op::group_wait; }

}  // namespace

Launch::Launch(const Program& program, const LaunchPlan& plan, GlobalMemory& memory,
               std::uint64_t seed)
    : program_(program),
      plan_(plan),
      memory_(memory),
      schedule_(seed),
      params_(plan.params),
      cluster_size_(plan.cluster[0] * plan.cluster[1] * plan.cluster[2]) {
  if (plan.grid[1] * plan.grid[2] != 1 || plan.block[1] * plan.block[2] != 1) {
    throw Fault("a grid or block of more than one dimension");
  }
  if (plan.block[0] % kWarp != 0) throw Fault("a warp that is not whole");
  if (plan.grid[0] % cluster_size_ != 0) throw Fault("a grid of parts of clusters");
  clusters_ = plan.grid[0] / cluster_size_;
  first_barrier_ = 1 + plan.grid[0] * plan.block[0] / kWarp;
  next_barrier_ = first_barrier_;
  at_once_ = plan.cooperative ? clusters_ : 1 + schedule_.number() % 4;
}

void Launch::run() {
  while (next_cluster_ < clusters_ || !running_.empty()) {
    while (running_.size() < at_once_ && next_cluster_ < clusters_) start_cluster();
    if (schedule_.nobody() && transfers_.empty()) stuck();
    if (!transfers_.empty() && (schedule_.nobody() || schedule_.copy_first())) {
      finish_transfer();
    } else {
      run_thread(schedule_.pick());
      ended_.clear();
    }
  }
}

void Launch::start_cluster() {
  auto cluster = std::make_unique<Cluster>();
  cluster->alive = cluster_size_;
  for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
    cluster->blocks.push_back(new_block(*cluster, next_cluster_ * cluster_size_ + rank, rank));
  }
  ++next_cluster_;
  running_.push_back(std::move(cluster));
}

std::unique_ptr<Block> Launch::new_block(Cluster& cluster, std::uint32_t index,
                                         std::uint32_t rank) {
  auto block = std::make_unique<Block>(plan_.smem_bytes);
  const std::size_t threads = plan_.block[0];
  block->index = index;
  block->rank = rank;
  block->cluster = &cluster;
  block->alive = threads;
  block->threads.resize(threads);
  block->warps.resize(threads / kWarp);
  for (std::size_t w = 0; w < block->warps.size(); ++w) {
    block->warps[w].priority = schedule_.chance();
    block->warps[w].first = &block->threads[w * kWarp];
    block->warps[w].source = static_cast<std::uint32_t>(1 + index * block->warps.size() + w);
    block->warps[w].clocks.resize(first_barrier_);
    block->warps[w].clocks[block->warps[w].source] = 1;
    block->warps[w].clocks[kLaunchAhead] = plan_.follows ? 0 : 1;
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
    schedule_.wake(thread);
  }
  return block;
}

void Launch::run_thread(Thread& thread) {
  const std::int64_t most = schedule_.turn();
  std::int64_t done = 0;
  try {
    for (; done < most && thread.state == State::ready && !polls_; ++done) step(thread);
  } catch (const Fault& fault) {
    const Instruction& i = program_.code[static_cast<std::size_t>(thread.at)];
    throw Fault(fmt::format("{}: block {}, thread {}, PTX line {}: {}", fault.what(),
                            thread.block->index, thread.id, i.line,
                            program_.lines[static_cast<std::size_t>(i.line)]));
  }
  if (polls_) schedule_.let_others_go_first(warp_of(thread));
  polls_ = false;
  instructions_ += done;
  if (instructions_ > kMostInstructions) {
    throw Fault("the launch does not end: " + whereabouts());
  }
}

std::string Launch::whereabouts() const {
  std::map<std::string, int> places;
  for (const auto& cluster : running_) {
    for (const auto& block : cluster->blocks) {
      for (const Thread& thread : block->threads) {
        if (thread.state == State::ended) continue;
        const Instruction& i = program_.code[static_cast<std::size_t>(thread.at)];
        ++places[fmt::format("warp {} of block {} at PTX line {}: {}", thread.id / 32, block->index,
                             i.line, program_.lines[static_cast<std::size_t>(i.line)])];
      }
    }
  }
  std::string text;
  for (const auto& [place, count] : places) text += fmt::format("\n  {} of {}", count, place);
  return text;
}

void Launch::stuck() const {
  throw Fault("all that is left waits for what does not come:" + whereabouts());
}

void Launch::end_thread(Thread& thread) {
  schedule_.rest(thread, State::ended);
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

void Launch::step(Thread& thread) {
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

void run(const Program& program, const LaunchPlan& plan, GlobalMemory& memory, std::uint64_t seed) {
  Launch(program, plan, memory, seed).run();
}

}  // namespace autotune::emulator
