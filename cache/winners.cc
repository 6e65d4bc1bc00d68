#include "cache/winners.h"

#include "cache/impl.h"
#include "cache/rows.h"

namespace autotune::cache {
namespace {

Expected<std::vector<WinnerRecord>> all_of(Statement& statement) {
  std::vector<WinnerRecord> found;
  for (;;) {
    const auto row = statement.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return found;
    if (auto winner = read_winner(statement)) found.push_back(std::move(*winner));
  }
}

// The trial's row; it is written where nobody recorded it yet.
Expected<std::int64_t> trial_id(const Connection& db, const TrialRecord& trial) {
  static const std::string sql =
      "SELECT t.id FROM trial t JOIN problem p ON p.id = t.problem JOIN device d ON d.id = "
      "t.device "
      "WHERE p.key = ? AND d.fingerprint = ? AND t.config = ? AND t.source_hash = ? AND "
      "t.compiler = ?";
  const TrialKey& key = trial.key;
  auto select = Statement::make(db, sql, key.problem_key, key.device_fingerprint, key.config,
                                key.source_hash, key.compiler);
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return write_trial(db, trial);
  std::int64_t id = 0;
  select->read(id);
  return id;
}

Names lead_names() {
  Names names;
  visit_lead(static_cast<const WinnerRecord&>(WinnerRecord{}), names);
  return names;
}

}  // namespace

// A winner whose trial was recorded again and failed then is none.
std::string select_winners(const std::string& extra) {
  static const std::string columns = lead_names().listed("w");
  return select_trials(columns + (extra.empty() ? "" : ", " + extra)) +
         "JOIN winner w ON w.trial = t.id WHERE t.outcome = 'ok' ";
}

std::optional<WinnerRecord> read_winner(Statement& statement) {
  auto trial = read_trial(statement);
  if (!trial) return std::nullopt;
  WinnerRecord winner;
  winner.trial = std::move(*trial);
  Reader reader{statement};
  visit_lead(winner, reader);
  return winner;
}

Expected<bool> write_winner(const Connection& db, const WinnerRecord& winner, std::int64_t trial) {
  static const std::string same = [] {
    std::string conditions;
    for (const std::string& name : lead_names().names) conditions += name + " IS ? AND ";
    return "SELECT 1 FROM winner WHERE " + conditions + "trial = ?";
  }();
  static const std::string sql = "INSERT OR REPLACE INTO winner (problem, device, trial, " +
                                 lead_names().listed() + ") SELECT problem, device, id, " +
                                 lead_names().placeholders() + " FROM trial WHERE id = ?";
  const auto prepared = [&](const std::string& text) {
    auto statement = Statement::make(db, text);
    if (!statement) return statement;
    Binder binder{*statement};
    visit_lead(winner, binder);
    statement->bind(trial);
    return statement;
  };
  auto select = prepared(same);
  if (!select) return tl::unexpected(select.error());
  const auto there = select->step();
  if (!there) return tl::unexpected(there.error());
  if (*there) return false;
  auto insert = prepared(sql);
  if (!insert) return tl::unexpected(insert.error());
  if (const auto inserted = insert->run(); !inserted) return tl::unexpected(inserted.error());
  return true;
}

Expected<void> Store::crown(const WinnerRecord& winner) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  const auto trial = trial_id(*impl_->db, winner.trial);
  if (!trial) return tl::unexpected(trial.error());
  const auto written = write_winner(*impl_->db, winner, *trial);
  if (!written) return tl::unexpected(written.error());
  return transaction->commit();
}

Expected<std::optional<WinnerRecord>> Store::winner(const std::string& problem_key,
                                                    const std::string& device_fingerprint) const {
  if (!impl_->db) return std::nullopt;
  auto select =
      Statement::make(*impl_->db, select_winners() + "AND p.key = ? AND d.fingerprint = ?",
                      problem_key, device_fingerprint);
  if (!select) return tl::unexpected(select.error());
  auto found = all_of(*select);
  if (!found) return tl::unexpected(found.error());
  if (found->empty()) return std::nullopt;
  return std::move(found->front());
}

Expected<std::vector<WinnerRecord>> Store::winners(const std::string& family,
                                                   const std::string& device_fingerprint) const {
  if (!impl_->db) return std::vector<WinnerRecord>{};
  auto select = Statement::make(
      *impl_->db,
      select_winners() +
          "AND p.family = ?1 AND (?2 = '' OR d.fingerprint = ?2) ORDER BY d.fingerprint, p.m, p.n, "
          "p.k, p.key",
      family, device_fingerprint);
  if (!select) return tl::unexpected(select.error());
  return all_of(*select);
}

}  // namespace autotune::cache
