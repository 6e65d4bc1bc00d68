#include "test/emulator/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "test/emulator/swizzle.h"

namespace autotune::emulator {

namespace {

// For each piece its address in the matrix, its place in the box and how many of its bytes the
// matrix has.
template <typename Visit>
void for_each_piece(const Box& box, std::size_t element, const Visit& visit) {
  const TensorMap& map = *box.map;
  for (std::uint32_t row = 0; row < map.box_outer; ++row) {
    const std::int64_t outer = std::int64_t{box.outer} + row;
    for (std::size_t byte = 0; byte < box.row_bytes(); byte += kPiece) {
      const std::int64_t inner = box.inner + static_cast<std::int64_t>(byte / element);
      const bool inside = outer >= 0 && outer < map.outer && inner >= 0 && inner < map.inner;
      const std::uint64_t at = box.shared + row * box.row_bytes() + byte;
      const std::uint64_t there = map.swizzle_bytes == 0 ? at : swizzled(at, map.swizzle_bytes);
      const std::size_t place = there - box.shared;
      const std::uint64_t address = map.address +
                                    static_cast<std::uint64_t>(outer * map.pitch_bytes) +
                                    static_cast<std::uint64_t>(inner) * element;
      const std::uint64_t left = static_cast<std::uint64_t>(map.inner - inner) * element;
      visit(address, place, inside ? std::min<std::size_t>(kPiece, left) : 0);
    }
  }
}

void check(const Box& box) {
  const TensorMap& map = *box.map;
  const auto element = static_cast<std::size_t>(storage_bytes(map.element));
  if (map.address % kPiece != 0 || map.pitch_bytes % kPiece != 0) {
    throw Fault("a tensor map of rows that do not begin on 16 bytes");
  }
  if (map.box_outer == 0 || map.box_outer > 256 || box.row_bytes() % kPiece != 0 ||
      (map.swizzle_bytes != 0 && box.row_bytes() > map.swizzle_bytes)) {
    throw Fault(fmt::format("a box of {} rows of {} bytes under a swizzle of {}", map.box_outer,
                            box.row_bytes(), map.swizzle_bytes));
  }
  if (box.inner * static_cast<std::int64_t>(element) % static_cast<std::int64_t>(kPiece) != 0) {
    throw Fault("a box that does not begin on 16 bytes of a row");
  }
  if (box.shared % 128 != 0) throw Fault("a box that does not begin on 128 bytes");
}

}  // namespace

std::size_t Box::row_bytes() const {
  return map->box_inner * static_cast<std::size_t>(storage_bytes(map->element));
}

void Box::check_load() const { check(*this); }

void Box::check_store() const {
  check(*this);
  const auto element = static_cast<std::int64_t>(storage_bytes(map->element));
  const bool ends_inside = std::int64_t{inner} + map->box_inner > map->inner;
  if (ends_inside && map->inner * element % static_cast<std::int64_t>(kPiece) != 0) {
    throw Fault("a box is stored where rows end within 16 bytes");
  }
}

void Box::check_stored_fenced(GlobalMemory& memory) const {
  const auto element = static_cast<std::size_t>(storage_bytes(map->element));
  for_each_piece(*this, element, [&](std::uint64_t address, std::size_t, std::size_t bytes) {
    if (bytes > 0) memory.check_stored_fenced(address, bytes);
  });
}

void Box::load(std::byte* target, GlobalMemory& memory, bool behind_launch) const {
  const auto element = static_cast<std::size_t>(storage_bytes(map->element));
  for_each_piece(*this, element, [&](std::uint64_t address, std::size_t place, std::size_t bytes) {
    std::memset(target + place, 0, kPiece);
    for (std::size_t at = 0; at < bytes; at += element)
      memory.check(address + at, element, false, behind_launch);
    std::memcpy(target + place, reinterpret_cast<const void*>(address), bytes);
  });
}

void Box::store(const std::byte* source, GlobalMemory& memory, const Actor& actor) const {
  const auto element = static_cast<std::size_t>(storage_bytes(map->element));
  for_each_piece(*this, element, [&](std::uint64_t address, std::size_t place, std::size_t bytes) {
    if (bytes == 0) return;
    memory.access(address, kPiece, true, actor);
    std::memcpy(reinterpret_cast<void*>(address), source + place, kPiece);
  });
}

}  // namespace autotune::emulator
