#include <fmt/format.h>

#include "cache/cubins.h"
#include "cache/impl.h"
#include "cache/rows.h"

namespace autotune::cache {
namespace {

// Damage is what verify() is there to report; anything else stops it.
Expected<void> note(Problems& problems, const Error& error) {
  if (error.code != ErrorCode::corrupt_file) return tl::unexpected(error);
  problems.findings.push_back(error.message);
  return {};
}

// Calls `take` with every row of a query.
template <class Take>
Expected<void> for_each(const Connection& db, std::string_view sql, Problems& problems,
                        const Take& take) {
  auto statement = Statement::make(db, sql);
  if (!statement) return note(problems, statement.error());
  for (;;) {
    const auto row = statement->step();
    if (!row) return note(problems, row.error());
    if (!*row) return {};
    take(*statement);
  }
}

Expected<void> check_pages(const Connection& db, Problems& problems) {
  return for_each(db, "PRAGMA integrity_check", problems, [&](Statement& row) {
    std::string finding;
    row.read(finding);
    if (finding != "ok") problems.findings.push_back(finding);
  });
}

Expected<void> check_references(const Connection& db, Problems& problems) {
  return for_each(db, "PRAGMA foreign_key_check", problems, [&](Statement& row) {
    std::string table;
    std::int64_t id = 0;
    std::string parent;
    row.read(table);
    row.read(id);
    row.read(parent);
    problems.findings.push_back(
        fmt::format("row {} of table {} refers to a missing row of {}", id, table, parent));
  });
}

Expected<void> check_trials(const Connection& db, Problems& problems) {
  return for_each(db, select_trials("t.id"), problems, [&](Statement& row) {
    ++problems.trials;
    if (read_trial(row)) return;
    std::int64_t id = 0;
    row.read(id);
    problems.findings.push_back(fmt::format("trial {} holds a value that is none", id));
  });
}

Expected<void> check_cubins(const Connection& db, Problems& problems) {
  Names names;
  visit_actual(static_cast<const ActualResources&>(ActualResources{}), names);
  const std::string sql =
      "SELECT source_hash, arch, compiler, seal, image, " + names.listed() + " FROM cubin";
  return for_each(db, sql, problems, [&](Statement& row) {
    ++problems.cubins;
    CubinKey key;
    CubinRecord cubin;
    std::string seal;
    row.read(key.source_hash);
    row.read(key.arch);
    row.read(key.compiler);
    row.read(seal);
    row.read(cubin.image);
    Reader reader{row};
    visit_actual(cubin.actual, reader);
    if (row.sound() && seal == seal_of(key, cubin)) return;
    problems.findings.push_back(
        fmt::format("the cubin of source {} for {} ({}) is damaged; it "
                    "will be compiled again",
                    key.source_hash, key.arch, key.compiler));
  });
}

}  // namespace

Expected<Problems> Store::verify() const {
  Problems problems;
  if (!impl_->db) return problems;
  const Connection& db = *impl_->db;
  auto transaction = Transaction::read(db);
  if (!transaction) return tl::unexpected(transaction.error());
  for (const auto check : {check_pages, check_references, check_trials, check_cubins}) {
    if (const auto checked = check(db, problems); !checked) return tl::unexpected(checked.error());
  }
  const auto counted = for_each(db, "SELECT count(*) FROM winner", problems,
                                [&](Statement& row) { row.read(problems.winners); });
  if (!counted) return tl::unexpected(counted.error());
  return problems;
}

}  // namespace autotune::cache
