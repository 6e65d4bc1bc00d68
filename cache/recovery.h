// What a writer does with a damaged file: moves it out of the way, never deletes or overwrites it.
#pragma once

#include <filesystem>

#include "cache/sqlite.h"

namespace autotune::cache {

// True when the file's header still carries our application id, whatever else is wrong with it.
bool carries_our_mark(const Connection& connection);

// Renames the file to <file>.corrupt-<seconds since the epoch>, its journal with it, while holding
// SQLite's exclusive lock on it. Returns the new name; empty when another process was faster.
Expected<std::filesystem::path> move_aside(const Connection& connection);

}  // namespace autotune::cache
