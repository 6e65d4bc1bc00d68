// The tables, how a file is told to be ours, and the ladder from older schemas to this one.
#pragma once

#include <cstdint>

#include "cache/sqlite.h"

namespace autotune::cache {

// "ATUN": bytes 68..71 of the file's header.
inline constexpr std::uint32_t kApplicationId = 0x4154554e;
// PRAGMA user_version of the newest schema that this program knows.
inline constexpr std::int32_t kSchemaVersion = 3;

enum class Content : std::uint8_t {
  nothing,  // a new database
  older,    // ours, to be migrated
  current,
  newer,    // ours, of a later program
  foreign,  // another application's
};

// What the database holds. corrupt_file where it is ours and its tables are not all there. Call
// inside a transaction: the answer is made of several reads.
Expected<Content> content_of(const Connection& connection);

// Creates or migrates the tables in one transaction; does nothing where they are current.
// foreign_file as content_of() finds it.
Expected<void> bring_up_to_date(const Connection& connection);

// A write transaction on tables of kSchemaVersion. Since this connection was opened a newer program
// may have migrated them (foreign_file), and another process may have emptied a damaged file, which
// gets new ones.
Expected<Transaction> begin_write(const Connection& connection);

// The sentence for Content::newer and Content::foreign.
Error refusal(const Connection& connection, Content content);

}  // namespace autotune::cache
