#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <sstream>

#include "cache/impl.h"
#include "cache/rows.h"

namespace autotune::cache {
namespace {

// A compiler can complain for megabytes; the first errors are the ones that count.
constexpr std::size_t kMaxLogBytes = 16384;

template <class... Values>
Expected<std::int64_t> rows_removed(const Connection& db, std::string_view sql,
                                    const Values&... values) {
  auto statement = Statement::make(db, sql, values...);
  if (!statement) return tl::unexpected(statement.error());
  const auto done = statement->run();
  if (!done) return tl::unexpected(done.error());
  return sqlite3_changes(db.handle());
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The words of a problem's key and what else they are called.
std::vector<std::string> names_of(const std::string& problem_key) {
  std::vector<std::string> names = words_of(problem_key);
  if (names.empty()) return names;
  const DimensionNames dimensions = dimension_names(names.front());
  const auto also = [&](std::size_t word, std::string_view prefix, const std::string& other) {
    if (names[word].starts_with(prefix)) names.push_back(other + names[word].substr(prefix.size()));
  };
  const std::size_t words = names.size();
  names.push_back("family=" + names.front());
  for (std::size_t i = 1; i < words; ++i) {
    also(i, "m=", fmt::format("{}=", dimensions.m));
    also(i, "n=", fmt::format("{}=", dimensions.n));
    also(i, "k=", fmt::format("{}=", dimensions.k));
    also(i, "dtype=", "");
    also(i, "layout=", "");
  }
  return names;
}

// The ids of rows (id, text) whose text is named.
template <class Named>
Expected<std::vector<std::int64_t>> ids_of(const Connection& db, std::string_view sql,
                                           const Named& named) {
  std::vector<std::int64_t> found;
  auto select = Statement::make(db, sql);
  if (!select) return tl::unexpected(select.error());
  for (;;) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return found;
    std::int64_t id = 0;
    std::string text;
    select->read(id);
    select->read(text);
    if (named(text)) found.push_back(id);
  }
}

}  // namespace

bool names_problem(std::string_view pattern, const std::string& problem_key) {
  if (pattern.empty()) return true;
  const std::vector<std::string> asked = words_of(std::string(pattern));
  const std::vector<std::string> known = names_of(problem_key);
  return !asked.empty() && std::all_of(asked.begin(), asked.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

bool names_device(const std::string& device, const std::string& fingerprint) {
  return device.empty() || slug_of(device) == slug_of(name_in_fingerprint(fingerprint));
}

Expected<void> Store::record(TrialRecord& trial) {
  if (trial.time == 0) trial.time = std::time(nullptr);
  if (trial.log.size() > kMaxLogBytes) trial.log.resize(kMaxLogBytes);
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  const auto id = write_trial(*impl_->db, trial);
  if (!id) return tl::unexpected(id.error());
  const auto committed = transaction->commit();
  if (!committed) return committed;
  trial.id = *id;
  return {};
}

Expected<std::optional<TrialRecord>> Store::trial(const TrialKey& key) const {
  if (!impl_->db) return std::nullopt;
  static const std::string sql =
      select_trials() +
      "WHERE p.key = ? AND d.fingerprint = ? AND t.config = ? AND t.source_hash = ? AND "
      "t.compiler = ?";
  auto select = Statement::make(*impl_->db, sql, key.problem_key, key.device_fingerprint,
                                key.config, key.source_hash, key.compiler);
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::nullopt;
  return read_trial(*select);
}

Expected<std::vector<TrialRecord>> Store::trials(const std::string& problem_key,
                                                 const std::string& device_fingerprint) const {
  std::vector<TrialRecord> found;
  if (!impl_->db) return found;
  static const std::string sql =
      select_trials() + "WHERE p.key = ? AND d.fingerprint = ? ORDER BY t.id";
  auto select = Statement::make(*impl_->db, sql, problem_key, device_fingerprint);
  if (!select) return tl::unexpected(select.error());
  for (;;) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return found;
    if (auto trial = read_trial(*select)) found.push_back(std::move(*trial));
  }
}

Expected<std::vector<std::string>> Store::problem_keys(
    const std::string& family, const std::string& device_fingerprint) const {
  if (!impl_->db) return std::vector<std::string>();
  auto select = Statement::make(*impl_->db,
                                "SELECT p.key FROM problem p WHERE p.family = ? AND EXISTS "
                                "(SELECT 1 FROM trial t JOIN device d ON d.id = t.device "
                                "WHERE t.problem = p.id AND d.fingerprint = ?) ORDER BY p.key",
                                family, device_fingerprint);
  return read_texts(std::move(select));
}

Expected<std::int64_t> Store::remove(const std::string& pattern, const std::string& device) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  const Connection& db = *impl_->db;
  const auto problems = ids_of(db, "SELECT id, key FROM problem",
                               [&](const std::string& key) { return names_problem(pattern, key); });
  if (!problems) return tl::unexpected(problems.error());
  const auto devices =
      ids_of(db,
             "SELECT DISTINCT t.device, coalesce(d.fingerprint, '') FROM trial t "
             "LEFT JOIN device d ON d.id = t.device",
             [&](const std::string& print) { return names_device(device, print); });
  if (!devices) return tl::unexpected(devices.error());
  std::int64_t trials = 0;
  for (const std::int64_t problem : *problems) {
    for (const std::int64_t id : *devices) {  // winners go with their trials
      const auto removed =
          rows_removed(db, "DELETE FROM trial WHERE problem = ? AND device = ?", problem, id);
      if (!removed) return removed;
      trials += *removed;
    }
  }
  const auto unused =
      rows_removed(db, "DELETE FROM problem WHERE id NOT IN (SELECT problem FROM trial)");
  if (!unused) return unused;
  const bool everything = pattern.empty() && device.empty();
  if (everything) {
    const auto cubins = rows_removed(db, "DELETE FROM cubin");
    if (!cubins) return cubins;
  }
  const auto committed = transaction->commit();
  if (!committed) return tl::unexpected(committed.error());
  // Gives the space back to the file system. Where there is none to do it in, the next rows use it.
  if (everything) (void)db.execute("VACUUM");
  return trials;
}

}  // namespace autotune::cache
