#include "cache/merger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cache/cubins.h"
#include "cache/rows.h"
#include "cache/winners.h"

namespace autotune::cache {
namespace {

// All fields as text: what decides between rows that are equally good, so that the order in which
// they come never does.
class Teller {
 public:
  template <class Field>
  void operator()(const char* name, const Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      add(name, to_string(field));
    } else {
      add(name, field);
    }
  }
  void operator()(const char* name, const std::optional<Verdict>& verdict) {
    if (!verdict) return add(name, "none");
    add(name, fmt::format("{} {} {} {}", to_string(verdict->rule), verdict->required,
                          verdict->limit, verdict->constraint));
  }
  std::string take() { return std::move(text_); }

 private:
  void add(const char* name, const auto& value) { text_ += fmt::format("{}={};", name, value); }
  std::string text_;
};

std::string text_of(const TrialRecord& trial, const std::string& run) {
  Teller tell;
  visit_findings(trial, tell);
  return tell.take() + run;
}

std::string lead_of(const WinnerRecord& winner) {
  Teller tell;
  visit_lead(winner, tell);
  return tell.take();
}

// Lower is better.
auto rank(const TrialRecord& trial, const std::string& text) {
  const double us = trial.measurement.median_us;
  const bool ok = trial.outcome == Outcome::ok && std::isfinite(us);
  return std::tuple(!ok, ok ? us : 0.0, ok ? trial.time : -trial.time, text);
}

struct Stored {
  TrialRecord trial;
  std::string text;
};

Expected<std::optional<Stored>> stored_trial(const Connection& db, const TrialKey& key) {
  static const std::string sql =
      select_trials(kRunOfTrial) +
      "WHERE p.key = ? AND d.fingerprint = ? AND t.config = ? AND t.source_hash = ? AND "
      "t.compiler = ?";
  auto select = Statement::make(db, sql, key.problem_key, key.device_fingerprint, key.config,
                                key.source_hash, key.compiler);
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::nullopt;
  auto trial = read_trial(*select);
  if (!trial) return std::nullopt;
  std::string run;
  select->read(run);
  std::string text = text_of(*trial, run);
  return Stored{*std::move(trial), std::move(text)};
}

}  // namespace

Expected<void> Merger::add_run(const RunRow& run,
                               const std::map<std::string, std::int64_t>& rejected) {
  const auto device = insert_device(db_, run.info.device_fingerprint);
  if (!device) return tl::unexpected(device.error());
  const int before = sqlite3_total_changes(db_.handle());
  // Copies of a run differ only in how far it had come when they were taken.
  auto insert = Statement::make(
      db_,
      "INSERT INTO run (uid, device, device_name, compiler, driver, version, options, host, "
      "started, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0)) ON CONFLICT (uid) DO "
      "UPDATE SET started = excluded.started, ended = excluded.ended WHERE excluded.started < "
      "started OR (excluded.ended IS NOT NULL AND ended IS NULL)",
      run.uid, *device, run.info.device_name, run.info.compiler, run.info.driver, run.info.version,
      run.info.options, run.info.host, run.started, run.ended);
  if (!insert) return tl::unexpected(insert.error());
  if (const auto inserted = insert->run(); !inserted) return inserted;
  if (sqlite3_total_changes(db_.handle()) > before) ++counts_.runs;

  auto select = Statement::make(db_, "SELECT id FROM run WHERE uid = ?", run.uid);
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  std::int64_t id = 0;
  if (*row) select->read(id);
  run_ids_[run.uid] = id;
  for (const auto& [rule, configs] : rejected) {
    auto count = Statement::make(
        db_,
        "INSERT INTO rejected (run, rule, configs) VALUES (?, ?, ?) ON CONFLICT (run, rule) DO "
        "UPDATE SET configs = max(configs, excluded.configs)",
        id, rule, configs);
    if (!count) return tl::unexpected(count.error());
    if (const auto counted = count->run(); !counted) return counted;
  }
  return {};
}

// Problems with one key may differ in what the key leaves out (a leading dimension of the same
// alignment, alpha): the least of them stands for all.
Expected<void> Merger::settle_problem(const TrialRecord& trial) {
  const Problem& problem = trial.problem;
  const std::string seen = fmt::format("{} {} {} {} {} {}", trial.key.problem_key, problem.lda,
                                       problem.ldb, problem.ldc, problem.alpha, problem.beta);
  if (!problems_.insert(seen).second) return {};
  auto update = Statement::make(
      db_,
      "UPDATE problem SET lda = ?2, ldb = ?3, ldc = ?4, alpha = ?5, beta = ?6 WHERE key = ?1 AND "
      "(?2, ?3, ?4, ?5, ?6) < (lda, ldb, ldc, alpha, beta)",
      trial.key.problem_key, problem.lda, problem.ldb, problem.ldc, problem.alpha, problem.beta);
  if (!update) return tl::unexpected(update.error());
  return update->run();
}

Expected<void> Merger::add_trial(TrialRecord trial, const std::string& run) {
  const auto stored = stored_trial(db_, trial.key);
  if (!stored) return tl::unexpected(stored.error());
  const bool better =
      !*stored || rank(trial, text_of(trial, run)) < rank((*stored)->trial, (*stored)->text);
  if (better) {
    const auto known = run_ids_.find(run);
    trial.run = known == run_ids_.end() ? 0 : known->second;
    const auto written = write_trial(db_, trial);
    if (!written) return tl::unexpected(written.error());
    ++counts_.trials;
  }
  return settle_problem(trial);
}

Expected<void> Merger::add_cubin(const CubinKey& key, const CubinRecord& cubin) {
  const std::string seal = seal_of(key, cubin);
  auto select = Statement::make(
      db_, "SELECT seal FROM cubin WHERE source_hash = ? AND arch = ? AND compiler = ?",
      key.source_hash, key.arch, key.compiler);
  if (!select) return tl::unexpected(select.error());
  const auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (*row) {
    std::string stored;
    select->read(stored);
    if (stored <= seal) return {};
  }
  ++counts_.cubins;
  return write_cubin(db_, key, cubin);
}

void Merger::propose(WinnerRecord winner, const std::string& run) {
  const TrialKey& key = winner.trial.key;
  auto& proposals = proposals_[{key.problem_key, key.device_fingerprint}];
  std::string text = text_of(winner.trial, run);
  proposals.push_back({std::move(winner), std::move(text)});
}

Expected<void> Merger::crown_best(const IsCurrent& is_current) {
  for (const auto& [key, proposals] : proposals_) {
    if (const auto crowned = crown(proposals, is_current); !crowned) return crowned;
  }
  return {};
}

Expected<void> Merger::crown(const std::vector<Proposal>& proposals, const IsCurrent& is_current) {
  struct Candidate {
    WinnerRecord winner;
    bool current = false;
    std::string order;  // among winners by trials of the same rank
  };
  std::vector<Candidate> candidates;
  for (const Proposal& proposal : proposals) {
    auto stored = stored_trial(db_, proposal.winner.trial.key);
    if (!stored) return tl::unexpected(stored.error());
    if (!*stored || (*stored)->trial.outcome != Outcome::ok) continue;
    // Its lead was measured with the trial that is stored now, or with one that gave way.
    const bool own = (*stored)->text == proposal.text;
    Candidate candidate{proposal.winner};
    candidate.winner.trial = std::move((*stored)->trial);
    candidate.current = is_current && proposals.size() > 1 && is_current(candidate.winner.trial);
    const TrialKey& key = candidate.winner.trial.key;
    candidate.order = fmt::format("{} {} {} {} {}", key.config, key.source_hash, key.compiler,
                                  own ? 0 : 1, lead_of(proposal.winner));
    candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) return {};
  const auto best = std::min_element(
      candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tuple(!a.current, rank(a.winner.trial, a.order)) <
               std::tuple(!b.current, rank(b.winner.trial, b.order));
      });
  const auto written = write_winner(db_, best->winner, best->winner.trial.id);
  if (!written) return tl::unexpected(written.error());
  if (*written) ++counts_.winners;
  return {};
}

}  // namespace autotune::cache
