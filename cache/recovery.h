// What a writer does with a damaged file: keeps a copy of it beside, then empties it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "cache/sqlite.h"

namespace autotune::cache {

// What tells two states of a file apart: its length and header, which counts the changes made.
struct Fingerprint {
  std::int64_t bytes = 0;
  std::array<unsigned char, 100> header = {};

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// nullopt where the file cannot be read.
std::optional<Fingerprint> fingerprint_of(const Connection& connection);

// False where the disk does not give some part of the file.
bool can_be_read(const Connection& connection);

// True when the header carries our application id, whatever else is wrong with the file.
bool carries_our_mark(const Fingerprint& print);

// Moves what the file holds to <file>.corrupt-<seconds since the epoch>, its journal with it, while
// holding SQLite's exclusive lock on it. The file itself stays, empty: a process that has it open
// would write to a renamed one, and roll the journal of its successor back into it. Returns the new
// name; empty when the file is no longer as it was `seen`, because another process was faster.
Expected<std::filesystem::path> move_aside(const Connection& connection, const Fingerprint& seen);

}  // namespace autotune::cache
