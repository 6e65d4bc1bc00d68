// Store::merge() and Store::adopt(): what other stores and files hold joins this one.
#include <system_error>
#include <utility>

#include "cache/impl.h"
#include "cache/merger.h"
#include "cache/rows.h"
#include "cache/winners.h"

namespace autotune::cache {
namespace {

// Calls `take` with each row; it returns Expected<void>.
template <class Take>
Expected<void> for_each(const Connection& db, std::string_view sql, const Take& take) {
  auto statement = Statement::make(db, sql);
  if (!statement) return tl::unexpected(statement.error());
  for (;;) {
    const auto row = statement->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    if (Expected<void> taken = take(*statement); !taken) return taken;
  }
}

Expected<std::map<std::string, std::int64_t>> rejected_in(const Connection& from,
                                                          std::int64_t run) {
  std::map<std::string, std::int64_t> rejected;
  auto select = Statement::make(from, "SELECT rule, configs FROM rejected WHERE run = ?", run);
  if (!select) return tl::unexpected(select.error());
  for (;;) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return rejected;
    std::string rule;
    select->read(rule);
    select->read(rejected[rule]);
  }
}

Expected<void> add_runs(const Connection& from, Merger& merger) {
  constexpr std::string_view kSql =
      "SELECT r.id, r.uid, d.fingerprint, r.device_name, r.compiler, r.driver, r.version, "
      "r.options, r.host, r.started, coalesce(r.ended, 0) FROM run r JOIN device d ON d.id = "
      "r.device ORDER BY r.uid";
  return for_each(from, kSql, [&](Statement& row) -> Expected<void> {
    std::int64_t id = 0;
    RunRow run;
    row.read(id);
    row.read(run.uid);
    row.read(run.info.device_fingerprint);
    row.read(run.info.device_name);
    row.read(run.info.compiler);
    row.read(run.info.driver);
    row.read(run.info.version);
    row.read(run.info.options);
    row.read(run.info.host);
    row.read(run.started);
    row.read(run.ended);
    const auto rejected = rejected_in(from, id);
    if (!rejected) return tl::unexpected(rejected.error());
    return merger.add_run(run, *rejected);
  });
}

Expected<void> add_trials(const Connection& from, Merger& merger) {
  return for_each(from, select_trials(kRunOfTrial), [&](Statement& row) -> Expected<void> {
    auto trial = read_trial(row);
    if (!trial) return {};  // a damaged row counts as not recorded
    std::string run;
    row.read(run);
    return merger.add_trial(*std::move(trial), run);
  });
}

Expected<void> propose_winners(const Connection& from, Merger& merger) {
  return for_each(from, select_winners(kRunOfTrial), [&](Statement& row) -> Expected<void> {
    auto winner = read_winner(row);
    if (!winner) return {};
    std::string run;
    row.read(run);
    merger.propose(*std::move(winner), run);
    return {};
  });
}

Expected<std::vector<CubinKey>> cubin_keys(const Connection& from) {
  std::vector<CubinKey> keys;
  const auto listed = for_each(from, "SELECT source_hash, arch, compiler FROM cubin ORDER BY id",
                               [&](Statement& row) -> Expected<void> {
                                 CubinKey& key = keys.emplace_back();
                                 row.read(key.source_hash);
                                 row.read(key.arch);
                                 row.read(key.compiler);
                                 return {};
                               });
  if (!listed) return tl::unexpected(listed.error());
  return keys;
}

// Those that the other store gives: sound ones, from a file that nobody else could write.
Expected<void> add_cubins(const Connection& from, const Store& other, Merger& merger) {
  const auto keys = cubin_keys(from);
  if (!keys) return tl::unexpected(keys.error());
  for (const CubinKey& key : *keys) {
    const auto cubin = other.cubin(key);
    if (!cubin) return tl::unexpected(cubin.error());
    if (!*cubin) continue;
    if (const auto added = merger.add_cubin(key, **cubin); !added) return added;
  }
  return {};
}

}  // namespace

Expected<Merged> Store::merge(const std::vector<const Store*>& others,
                              const IsCurrent& is_current) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  Merger merger(*impl_->db);
  if (const auto own = propose_winners(*impl_->db, merger); !own) {
    return tl::unexpected(own.error());
  }
  for (const Store* source : others) {
    std::error_code ignored;
    const bool same = std::filesystem::equivalent(source->path(), path(), ignored);
    if (same || !source->impl_->db) continue;
    const Connection& from = *source->impl_->db;
    // One consistent state, also where it is written meanwhile; who writes waits no longer than for
    // this one to be read.
    const auto view = Transaction::read(from);
    if (!view) return tl::unexpected(view.error());
    for (const auto step : {add_runs, add_trials, propose_winners}) {
      if (const auto done = step(from, merger); !done) return tl::unexpected(done.error());
    }
    if (!impl_->trusted) continue;
    if (const auto done = add_cubins(from, *source, merger); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (const auto done = merger.crown_best(is_current); !done) return tl::unexpected(done.error());
  if (const auto committed = transaction->commit(); !committed) {
    return tl::unexpected(committed.error());
  }
  return merger.counts();
}

Expected<Merged> Store::adopt(const std::string& uid, const RunInfo& info, std::int64_t time,
                              const std::vector<WinnerRecord>& winners,
                              const IsCurrent& is_current) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  Merger merger(*impl_->db);
  if (const auto own = propose_winners(*impl_->db, merger); !own) {
    return tl::unexpected(own.error());
  }
  if (const auto added = merger.add_run({uid, info, time, time}, {}); !added) {
    return tl::unexpected(added.error());
  }
  for (WinnerRecord winner : winners) {
    if (winner.trial.time == 0) winner.trial.time = time;
    if (const auto added = merger.add_trial(winner.trial, uid); !added) {
      return tl::unexpected(added.error());
    }
    merger.propose(std::move(winner), uid);
  }
  if (const auto done = merger.crown_best(is_current); !done) return tl::unexpected(done.error());
  if (const auto committed = transaction->commit(); !committed) {
    return tl::unexpected(committed.error());
  }
  return merger.counts();
}

}  // namespace autotune::cache
