// The columns of each record, named once: the same visit lists, binds and reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/sqlite.h"
#include "cache/store.h"
#include "kernels/problem.h"

namespace autotune::cache {

template <class Actual, class Visitor>
void visit_actual(Actual& actual, Visitor& visit) {
  visit("registers", actual.registers);
  visit("static_smem_bytes", actual.static_smem_bytes);
  visit("stack_bytes", actual.stack_bytes);
  visit("spill_store_bytes", actual.spill_store_bytes);
  visit("spill_load_bytes", actual.spill_load_bytes);
  visit("barriers", actual.barriers);
  visit("max_threads", actual.max_threads);
  visit("cluster", actual.cluster);
  visit("serialised", actual.serialised);
}

// What a trial found: all of its columns that are not its key.
template <class Trial, class Visitor>
void visit_findings(Trial& trial, Visitor& visit) {
  visit("time", trial.time);
  visit("outcome", trial.outcome);
  visit("rule", trial.verdict);
  visit("predicted_smem_bytes", trial.predicted.smem_bytes);
  visit("predicted_static_smem_bytes", trial.predicted.static_smem_bytes);
  visit("predicted_threads", trial.predicted.threads);
  visit("predicted_min_blocks", trial.predicted.min_blocks);
  visit("predicted_registers", trial.predicted.registers);
  visit("predicted_register_demand", trial.predicted.register_demand);
  visit("predicted_barriers", trial.predicted.barriers);
  visit("predicted_cluster", trial.predicted.cluster);
  visit("predicted_grid", trial.predicted.grid);
  visit("predicted_workspace_bytes", trial.predicted.workspace_bytes);
  visit_actual(trial.actual, visit);
  visit("median_us", trial.measurement.median_us);
  visit("relative_error", trial.measurement.relative_error);
  visit("samples", trial.measurement.samples);
  visit("result_error", trial.measurement.result_error);
  visit("max_error_ratio", trial.measurement.max_error_ratio);
  visit("sm_mhz", trial.measurement.sm_mhz);
  visit("throttled", trial.measurement.throttled);
  visit("raced", trial.measurement.raced);
  visit("compile_seconds", trial.compile_seconds);
  visit("log", trial.log);
}

template <class AnyProblem, class Visitor>
void visit_problem(AnyProblem& problem, Visitor& visit) {
  visit("family", problem.family);
  visit("m", problem.m);
  visit("n", problem.n);
  visit("k", problem.k);
  visit("dtype", problem.dtype);
  visit("out_dtype", problem.out_dtype);
  visit("layout", problem.layout);
  visit("lda", problem.lda);
  visit("ldb", problem.ldb);
  visit("ldc", problem.ldc);
  visit("alpha", problem.alpha);
  visit("beta", problem.beta);
  visit("mode", problem.mode);
  visit("exact_fp32", problem.exact_fp32);
  visit("activation", problem.activation);
}

template <class Winner, class Visitor>
void visit_lead(Winner& winner, Visitor& visit) {
  visit("lead_percent", winner.lead_percent);
  visit("tie", winner.tie);
  visit("default_us", winner.default_us);
  visit("seconds", winner.seconds);
}

// The one field that is several columns, all of them NULL where there is no verdict.
inline constexpr const char* kVerdictColumns[] = {"rule", "required", "allowed",
                                                  "broken_constraint"};

class Names {
 public:
  template <class Field>
  void operator()(const char* name, const Field&) {
    names.emplace_back(name);
  }
  void operator()(const char*, const std::optional<Verdict>&) {
    names.insert(names.end(), std::begin(kVerdictColumns), std::end(kVerdictColumns));
  }
  // "prefix.a, prefix.b"; without the dot where the prefix is empty.
  std::string listed(const std::string& prefix = "") const;
  std::string placeholders() const;  // "?, ?"
  std::string replacements() const;  // "a = excluded.a, b = excluded.b"
  std::vector<std::string> names;
};

class Binder {
 public:
  explicit Binder(Statement& statement) : statement_(statement) {}
  template <class Field>
  void operator()(const char*, const Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      statement_.bind(to_string(field));
    } else {
      statement_.bind(field);
    }
  }
  void operator()(const char*, const std::optional<Verdict>& verdict);

 private:
  Statement& statement_;
};

class Reader {
 public:
  explicit Reader(Statement& statement) : statement_(statement) {}
  template <class Field>
  void operator()(const char*, Field& field) {
    if constexpr (std::is_enum_v<Field>) {
      std::string name;
      statement_.read(name);
      parse(name, field);
    } else {
      statement_.read(field);
    }
  }
  void operator()(const char*, std::optional<Verdict>& verdict);

 private:
  template <class Field>
  void take(std::optional<Field> parsed, Field& field) {
    if (!parsed) return statement_.unsound();
    field = *parsed;
  }
  void parse(const std::string& name, Outcome& field) { take(parse_outcome(name), field); }
  void parse(const std::string& name, DType& field) { take(parse_dtype(name), field); }
  void parse(const std::string& name, Layout& field) { take(parse_layout(name), field); }
  void parse(const std::string& name, TimingMode& field) { take(parse_timing_mode(name), field); }
  void parse(const std::string& name, Activation& field) { take(parse_activation(name), field); }

  Statement& statement_;
};

// "SELECT <all columns of a trial> [, extra] FROM trial t JOIN problem p ... JOIN device d ...";
// the caller adds joins and conditions. read_trial() takes those columns, in order, from a row;
// what follows them is the caller's. nullopt for a row that no trial can be made of.
std::string select_trials(const std::string& extra = "");
std::optional<TrialRecord> read_trial(Statement& statement);

// An `extra` column: the uid of the trial's run, empty for none.
inline constexpr const char* kRunOfTrial =
    "coalesce((SELECT uid FROM run WHERE run.id = t.run), '')";

// The row id of a device, which is added where it is missing.
Expected<std::int64_t> insert_device(const Connection& db, const std::string& fingerprint);

// Inserts a trial, or replaces the findings of the one with the same key; returns its id.
Expected<std::int64_t> write_trial(const Connection& db, const TrialRecord& trial);

// The only column of every row.
Expected<std::vector<std::string>> read_texts(Expected<Statement> select);

}  // namespace autotune::cache
