// The memories that a kernel sees, and who may touch them when.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "test/emulator/order.h"
#include "test/emulator/program.h"

namespace autotune::emulator {

// Where a block's shared memory begins: not at 0, which stays an address that nobody may use.
inline constexpr std::uint64_t kSharedBase = 1024;

// What a launch may read and write of this process. Addresses are pointers. Of what it may write it
// knows for every two bytes which warps used them last, as SharedMemory does.
class GlobalMemory {
 public:
  struct Use {
    bool written = false;            // else read only
    bool from_launch_ahead = false;  // which may still be at work there
  };
  void add(std::uint64_t address, std::size_t bytes, Use use);
  // Faults where an access leaves what was added, is not aligned to its size, must not write or
  // comes before the launch ahead is known to have ended.
  void check(std::uint64_t address, std::size_t bytes, bool writes, bool behind_launch);
  // Faults where this launch or the one ahead may write, while a load says that nobody does: it may
  // be moved across barriers and waits.
  void check_constant(std::uint64_t address, std::size_t bytes);
  // As check(), and where another warp used it and no barrier is between.
  void access(std::uint64_t address, std::size_t bytes, bool writes, const Actor& actor);
  // A thread's store, which it must fence before the copy engine reads it.
  void note_store(std::uint64_t address, std::size_t bytes, const Actor& actor);
  // What a thread stored so far may be read by the copy engine.
  void fence(const Actor& actor);
  // Faults where the copy engine is to read what a thread stored and has not fenced since.
  void check_stored_fenced(std::uint64_t address, std::size_t bytes);
  // What those knew that released a word, for those that acquire it.
  Clocks& released(std::uint64_t address) { return released_[address]; }

 private:
  struct Store {
    std::uint32_t thread = 0;  // of the launch, among which none is 0
    std::uint32_t fences = 0;  // that the thread had run before
  };
  struct Element {
    Event written;
    std::array<Event, 2> read;  // the last of them
    Store store;                // where a thread wrote it last
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    Use use;
    std::vector<Element> elements;
  };
  Range& range_of(std::uint64_t address, std::size_t bytes);
  // None where this launch writes nothing.
  std::span<Element> elements(std::uint64_t address, std::size_t bytes);

  std::vector<Range> ranges_;
  std::vector<std::uint32_t> fences_;  // that each thread of the launch has run
  std::map<std::uint64_t, Clocks> released_;
};

// A block's shared memory. Beside its bytes it knows, for every word, which copies and matrix
// instructions are under way there, and which warps used it last: whoever is in the way of one, or
// has not heard that another is done, faults. Addresses begin at kSharedBase. It is full of NaN in
// the beginning, others than matrices have between their lines.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);

  // By a thread.
  const std::byte* read(std::uint64_t address, std::size_t bytes, const Actor& actor);
  void write(std::uint64_t address, const void* from, std::size_t bytes, const Actor& actor);
  // By the copy engine or a matrix instruction, which `actor` starts, from its beginning to its
  // end. What threads wrote must have been fenced before it is read so.
  const std::byte* begin_async_read(std::uint64_t address, std::size_t bytes, const Actor& actor);
  void end_async_read(std::uint64_t address, std::size_t bytes);
  void begin_async_write(std::uint64_t address, std::size_t bytes, const Actor& actor);
  // Returns where the bytes are to be put at once. They are there for who has heard of `arrival`.
  std::byte* end_async_write(std::uint64_t address, std::size_t bytes, Event arrival);
  // Faults where threads wrote what they have not fenced, which is to be overwritten from afar.
  void check_written_fenced(std::uint64_t address, std::size_t bytes);
  // And where they have read it: the copy engine may be ahead of loads under way.
  void check_read_fenced(std::uint64_t address, std::size_t bytes);
  // What a thread wrote so far may be read asynchronously, and what it read or wrote overwritten.
  void fence(int thread);
  // A barrier is set up there by `actor`: nobody else may use it otherwise.
  void reserve(std::uint64_t address, std::size_t bytes, const Actor& actor);

 private:
  struct Load {
    std::int16_t thread = -1;
    std::uint32_t fences = 0;  // that the thread had run before
  };
  struct Word {
    std::uint16_t readers = 0;
    std::uint8_t writers = 0;
    bool reserved = false;
    std::int16_t unfenced = -1;  // the thread that wrote it last
    std::array<Load, 4> loads;   // the last of them, as `read`
    Event written;
    std::array<Event, 4> read;  // the last of them; where more warps read it, some are forgotten
  };
  static void check_order(const Word& word, const Actor& actor, std::uint64_t address);
  bool is_fenced(const Load& load) const;
  void remember_load(std::array<Load, 4>& loads, int thread) const;
  std::span<Word> words(std::uint64_t address, std::size_t bytes);
  std::byte* at(std::uint64_t address) { return bytes_.data() + (address - kSharedBase); }

  std::vector<std::byte> bytes_;
  std::vector<Word> words_;
  std::vector<std::vector<std::uint32_t>> written_;  // by each thread since its last fence
  std::vector<std::uint32_t> fences_;                // that each thread has run
};

}  // namespace autotune::emulator
