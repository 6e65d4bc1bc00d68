#include "test/emulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace autotune::emulator {

void GlobalMemory::add(std::uint64_t address, std::size_t bytes, Use use) {
  ranges_.push_back({address, address + bytes, use});
}

void GlobalMemory::check(std::uint64_t address, std::size_t bytes, bool writes,
                         bool behind_launch) const {
  if (address % bytes != 0) {
    throw Fault(fmt::format("{} bytes of global memory that begin {} behind a multiple of that",
                            bytes, address % bytes));
  }
  for (const Range& range : ranges_) {
    if (address < range.begin || address + bytes > range.end) continue;
    if (writes && range.use == Use::input) throw Fault("an input is written");
    if (range.use == Use::from_launch_ahead && !behind_launch) {
      throw Fault("what the launch ahead may still be at work on is used");
    }
    return;
  }
  std::string near;
  for (const Range& range : ranges_) {
    if (address >= range.begin && address - range.end < 65536) {
      near = fmt::format(", {} behind the end of a matrix", address - range.end);
    } else if (address < range.begin && range.begin - address < 65536) {
      near = fmt::format(", {} before a matrix", range.begin - address);
    }
  }
  throw Fault(fmt::format("{} bytes of global memory that nobody gave{}", bytes, near));
}

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_((bytes + 3) / 4 * 4, std::byte{0xff}), words_(bytes_.size() / 4), written_(1024) {}

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
      conflict("read, and no barrier is between that and another warp's write", address);
    }
    // In place of its own earlier one, or of one that it has heard of, or of any.
    const auto place = std::find_if(word.read.begin(), word.read.end() - 1, [&](const Event& each) {
      return each.warp == actor.warp || each.known_to(actor);
    });
    *place = {actor.time(), actor.warp};
  }
  return at(address);
}

void SharedMemory::write(std::uint64_t address, const void* from, std::size_t bytes,
                         const Actor& actor) {
  check_aligned(address, bytes);
  // What two warps write alike may come in any order.
  const bool same = std::memcmp(at(address), from, bytes) == 0;
  for (Word& word : words(address, bytes)) {
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
    conflict("written, and no barrier is between that and another warp's write", address);
  }
  for (const Event& each : word.read) {
    if (!each.known_to(actor)) {
      conflict("written, and no barrier is between that and another warp's read", address);
    }
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
      conflict("read asynchronously, and no barrier is between that and another warp's write",
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

std::byte* SharedMemory::end_async_write(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) {
    --word.writers;
    word.unfenced = -1;
    word.written = {};
    word.read = {};
  }
  return at(address);
}

void SharedMemory::fence(int thread) {
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
