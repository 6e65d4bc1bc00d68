// A cache as the first version of its schema had it.
#pragma once

#include <sqlite3.h>

#include <filesystem>

#include "test/support/catch.h"

namespace autotune::test {

// Takes a cache of today back to the first schema.
inline void make_older(const std::filesystem::path& file) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  const char* back =
      "ALTER TABLE problem DROP COLUMN exact_fp32; ALTER TABLE problem DROP COLUMN activation; "
      "PRAGMA user_version = 1";
  REQUIRE(sqlite3_exec(db, back, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

}  // namespace autotune::test
