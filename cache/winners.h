// Rows of the winner table.
#pragma once

#include <optional>
#include <string>

#include "cache/sqlite.h"
#include "cache/store.h"

namespace autotune::cache {

// "SELECT <all columns of a winner and its trial> [, extra] FROM ..." of the winners that count;
// the caller adds "AND ..." conditions. read_winner() takes those columns from a row.
std::string select_winners(const std::string& extra = "");
std::optional<WinnerRecord> read_winner(Statement& statement);

// Makes the trial with that id the winner of its problem and device. False where this very row was
// there already.
Expected<bool> write_winner(const Connection& db, const WinnerRecord& winner, std::int64_t trial);

}  // namespace autotune::cache
