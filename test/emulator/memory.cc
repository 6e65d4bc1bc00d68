#include "test/emulator/memory.h"

#include <fmt/format.h>

#include <string_view>

namespace autotune::emulator {

void GlobalMemory::add(std::uint64_t address, std::size_t bytes, bool writable) {
  ranges_.push_back({address, address + bytes, writable});
}

void GlobalMemory::check(std::uint64_t address, std::size_t bytes, bool writes) const {
  if (address % bytes != 0) {
    throw Fault(fmt::format("{} bytes of global memory that begin {} behind a multiple of that",
                            bytes, address % bytes));
  }
  for (const Range& range : ranges_) {
    if (address < range.begin || address + bytes > range.end) continue;
    if (writes && !range.writable) throw Fault("an input is written");
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

std::byte* SharedMemory::read(std::uint64_t address, std::size_t bytes) {
  check_aligned(address, bytes);
  for (const Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("read while a copy writes it", address);
  }
  return at(address);
}

std::byte* SharedMemory::write(std::uint64_t address, std::size_t bytes, int thread) {
  check_aligned(address, bytes);
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("written while a copy writes it", address);
    if (word.readers > 0) conflict("written while it is read asynchronously", address);
    if (word.reserved) conflict("a barrier is overwritten", address);
    if (word.unfenced != thread) {
      word.unfenced = static_cast<std::int16_t>(thread);
      written_[static_cast<std::size_t>(thread)].push_back(
          static_cast<std::uint32_t>(&word - words_.data()));
    }
  }
  return at(address);
}

std::byte* SharedMemory::begin_async_read(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("read asynchronously while a copy writes it", address);
    if (word.unfenced >= 0) {
      conflict("read asynchronously without a fence behind what a thread wrote", address);
    }
    ++word.readers;
  }
  return at(address);
}

void SharedMemory::end_async_read(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) --word.readers;
}

std::byte* SharedMemory::begin_async_write(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) {
    if (word.writers > 0) conflict("two copies write it at once", address);
    if (word.readers > 0) conflict("a copy writes what is still read asynchronously", address);
    if (word.reserved) conflict("a copy overwrites a barrier", address);
    word.unfenced = -1;
    ++word.writers;
  }
  return at(address);
}

void SharedMemory::end_async_write(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) --word.writers;
}

void SharedMemory::fence(int thread) {
  std::vector<std::uint32_t>& written = written_[static_cast<std::size_t>(thread)];
  for (const std::uint32_t word : written) {
    if (words_[word].unfenced == thread) words_[word].unfenced = -1;
  }
  written.clear();
}

void SharedMemory::reserve(std::uint64_t address, std::size_t bytes) {
  for (Word& word : words(address, bytes)) word.reserved = true;
}

}  // namespace autotune::emulator
