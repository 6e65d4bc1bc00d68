// What a Store is made of; for the files of this room only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cache/sqlite.h"
#include "cache/store.h"

namespace autotune::cache {

struct Store::Impl {
  std::filesystem::path path;
  std::optional<Connection> db;  // nullopt: a store without content
  bool writable = false;
  bool trusted = false;
  std::string message;
  std::optional<Statement> known;  // of known_winner(), prepared once; goes before db

  // A write transaction, or why nothing can be written here.
  Expected<Transaction> begin() const;
};

}  // namespace autotune::cache
