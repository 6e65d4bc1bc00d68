#include "test/emulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace autotune::emulator {

namespace {

constexpr std::size_t kMostThreads = 1024;  // of a block
constexpr std::size_t kElement = 2;         // bytes of which global memory knows who used them

// Puts `event` in place of an earlier one of its warp, or of one that is known to the actor, or of
// any.
template <std::size_t kCount>
void remember(std::array<Event, kCount>& events, const Actor& actor) {
  const auto place = std::find_if(events.begin(), events.end() - 1, [&actor](const Event& each) {
    return each.source == actor.warp || each.known_to(actor);
  });
  *place = {actor.time(), actor.warp};
}

template <std::size_t kCount>
bool all_known(const std::array<Event, kCount>& events, const Actor& actor) {
  return std::all_of(events.begin(), events.end(),
                     [&actor](const Event& each) { return each.known_to(actor); });
}

}  // namespace

void GlobalMemory::add(std::uint64_t address, std::size_t bytes, Use use) {
  ranges_.push_back({address, address + bytes, use, {}});
  if (use.written) ranges_.back().elements.resize((bytes + kElement - 1) / kElement);
}

GlobalMemory::Range& GlobalMemory::range_of(std::uint64_t address, std::size_t bytes) {
  std::string near;
  for (Range& range : ranges_) {
    if (address >= range.begin && address + bytes <= range.end) return range;
    if (address >= range.begin && address - range.end < 65536) {
      near = fmt::format(", {} behind the end of a matrix", address - range.end);
    } else if (address < range.begin && range.begin - address < 65536) {
      near = fmt::format(", {} before a matrix", range.begin - address);
    }
  }
  throw Fault(fmt::format("{} bytes of global memory that nobody gave{}", bytes, near));
}

std::span<GlobalMemory::Element> GlobalMemory::elements(std::uint64_t address, std::size_t bytes) {
  Range& range = range_of(address, bytes);
  if (range.elements.empty()) return {};
  const std::uint64_t first = (address - range.begin) / kElement;
  return std::span(range.elements).subspan(first, (bytes + kElement - 1) / kElement);
}

void GlobalMemory::check(std::uint64_t address, std::size_t bytes, bool writes,
                         bool behind_launch) {
  if (address % bytes != 0) {
    throw Fault(fmt::format("{} bytes of global memory that begin {} behind a multiple of that",
                            bytes, address % bytes));
  }
  const Use use = range_of(address, bytes).use;
  if (writes && !use.written) throw Fault("an input is written");
  if (use.from_launch_ahead && !behind_launch) {
    throw Fault("what the launch ahead may still be at work on is used");
  }
}

void GlobalMemory::check_constant(std::uint64_t address, std::size_t bytes) {
  const Use use = range_of(address, bytes).use;
  if (use.written || use.from_launch_ahead) {
    throw Fault("a load as of constant data, from where this launch or the one ahead may write");
  }
}

void GlobalMemory::access(std::uint64_t address, std::size_t bytes, bool writes,
                          const Actor& actor) {
  check(address, bytes, writes, actor.behind_launch());
  for (Element& element : elements(address, bytes)) {
    if (!element.written.known_to(actor) || (writes && !all_known(element.read, actor))) {
      throw Fault(
          fmt::format("global memory is {}, and no barrier is between that and what "
                      "another warp did there",
                      writes ? "written" : "read"));
    }
    if (writes) {
      element = {{actor.time(), actor.warp}, {}, {}};
    } else {
      remember(element.read, actor);
    }
  }
}

void GlobalMemory::note_store(std::uint64_t address, std::size_t bytes, const Actor& actor) {
  const std::size_t thread = actor.of_launch();
  if (fences_.size() <= thread) fences_.resize(thread + 1);
  for (Element& element : elements(address, bytes)) {
    element.store = {static_cast<std::uint32_t>(thread), fences_[thread]};
  }
}

void GlobalMemory::fence(const Actor& actor) {
  const std::size_t thread = actor.of_launch();
  if (thread < fences_.size()) ++fences_[thread];  // else it has stored nothing
}

void GlobalMemory::check_stored_fenced(std::uint64_t address, std::size_t bytes) {
  for (const Element& element : elements(address, bytes)) {
    const Store& store = element.store;
    if (store.thread != 0 && fences_[store.thread] == store.fences) {
      throw Fault(
          "global memory is read asynchronously without a fence behind what a thread wrote");
    }
  }
}

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_((bytes + 3) / 4 * 4),
      words_(bytes_.size() / 4),
      written_(kMostThreads),
      fences_(kMostThreads) {
  constexpr std::uint16_t kNan = 0xffc1;  // in every type, alone and as half of an fp32
  for (std::size_t at = 0; at < bytes_.size(); at += 2) std::memcpy(&bytes_[at], &kNan, 2);
}

std::span<SharedMemory::Word> SharedMemory::words(std::uint64_t address, std::size_t bytes) {
  if (address < kSharedBase || address - kSharedBase + bytes > bytes_.size()) {
    throw Fault(fmt::format("{} bytes at {} of {} bytes of shared memory", bytes,
                            static_cast<std::int64_t>(address - kSharedBase), bytes_.size()));
  }
  const std::uint64_t first = (address - kSharedBase) / 4;
  const std::uint64_t last = (address - kSharedBase + bytes + 3) / 4;
  return std::span(words_).subspan(first, last - first);
}

namespace {

void check_aligned(std::uint64_t address, std::size_t bytes) {
  if (address % bytes != 0) {
    throw Fault(fmt::format("{} bytes of shared memory that begin {} behind a multiple of that",
                            bytes, address % bytes));
  }
}

[[noreturn]] void conflict(std::string_view what, std::uint64_t address) {
  throw Fault(fmt::format("{} (shared memory, byte {})", what, address - kSharedBase));
}

}  // namespace

const std::byte* SharedMemory::read(std::uint64_t address, std::size_t bytes, const Actor& actor) {
  check_aligned(address, bytes);
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("read while a copy writes it", address);
    if (!word.written.known_to(actor)) {
      conflict("read, and no barrier is between that and what was written there", address);
    }
    remember(word.read, actor);
    remember_load(word.loads, actor.thread);
  }
  return at(address);
}

void SharedMemory::write(std::uint64_t address, const void* from, std::size_t bytes,
                         const Actor& actor) {
  check_aligned(address, bytes);
  const std::span<Word> target = words(address, bytes);
  // What two warps write alike may come in any order.
  const bool same = std::memcmp(at(address), from, bytes) == 0;
  for (Word& word : target) {
    if (word.writers > 0) conflict("written while a copy writes it", address);
    if (word.readers > 0) conflict("written while it is read asynchronously", address);
    if (word.reserved) conflict("a barrier is overwritten", address);
    if (!same) check_order(word, actor, address);
    word.written = {actor.time(), actor.warp};
    if (word.unfenced != actor.thread) {
      word.unfenced = static_cast<std::int16_t>(actor.thread);
      written_[static_cast<std::size_t>(actor.thread)].push_back(
          static_cast<std::uint32_t>(&word - words_.data()));
    }
  }
  std::memcpy(at(address), from, bytes);
}

void SharedMemory::check_order(const Word& word, const Actor& actor, std::uint64_t address) {
  if (!word.written.known_to(actor)) {
    conflict("written, and no barrier is between that and what was written there", address);
  }
  if (!all_known(word.read, actor)) {
    conflict("written, and no barrier is between that and another warp's read", address);
  }
}

const std::byte* SharedMemory::begin_async_read(std::uint64_t address, std::size_t bytes,
                                                const Actor& actor) {
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("read asynchronously while a copy writes it", address);
    if (word.unfenced >= 0) {
      conflict("read asynchronously without a fence behind what a thread wrote", address);
    }
    if (!word.written.known_to(actor)) {
      conflict("read asynchronously, and no barrier is between that and what was written there",
               address);
    }
    ++word.readers;
  }
  return at(address);
}

void SharedMemory::end_async_read(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) --word.readers;
}

void SharedMemory::begin_async_write(std::uint64_t address, std::size_t bytes, const Actor& actor) {
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("two copies write it at once", address);
    if (word.readers > 0) conflict("a copy writes what is still read asynchronously", address);
    if (word.reserved) conflict("a copy overwrites a barrier", address);
    check_order(word, actor, address);
    ++word.writers;
  }
}

std::byte* SharedMemory::end_async_write(std::uint64_t address, std::size_t bytes, Event arrival) {
  for (Word& word : words(address, bytes)) {
    --word.writers;
    word.unfenced = -1;
    word.written = arrival;
    word.read = {};
    word.loads = {};
  }
  return at(address);
}

void SharedMemory::check_written_fenced(std::uint64_t address, std::size_t bytes) {
  for (const Word& word : words(address, bytes)) {
    if (word.unfenced >= 0) {
      conflict("a copy writes, without a fence, over what a thread wrote", address);
    }
  }
}

bool SharedMemory::is_fenced(const Load& load) const {
  return load.thread < 0 || fences_[static_cast<std::size_t>(load.thread)] != load.fences;
}

void SharedMemory::remember_load(std::array<Load, 4>& loads, int thread) const {
  const auto place = std::find_if(loads.begin(), loads.end() - 1, [this, thread](const Load& each) {
    return each.thread == thread || is_fenced(each);
  });
  *place = {static_cast<std::int16_t>(thread), fences_[static_cast<std::size_t>(thread)]};
}

void SharedMemory::check_read_fenced(std::uint64_t address, std::size_t bytes) {
  for (const Word& word : words(address, bytes)) {
    if (!std::all_of(word.loads.begin(), word.loads.end(),
                     [this](const Load& each) { return is_fenced(each); })) {
      conflict("a copy writes, without a fence, over what a thread read", address);
    }
  }
}

void SharedMemory::fence(int thread) {
  ++fences_[static_cast<std::size_t>(thread)];
  std::vector<std::uint32_t>& written = written_[static_cast<std::size_t>(thread)];
  for (const std::uint32_t word : written) {
    if (words_[word].unfenced == thread) words_[word].unfenced = -1;
  }
  written.clear();
}

void SharedMemory::reserve(std::uint64_t address, std::size_t bytes, const Actor& actor) {
  for (Word& word : words(address, bytes)) {
    check_order(word, actor, address);
    word.reserved = true;
  }
}

}  // namespace autotune::emulator
