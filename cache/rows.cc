#include "cache/rows.h"

namespace autotune::cache {
namespace {

constexpr std::string_view kKeyColumns =
    "t.id, coalesce(t.run, 0), p.key, d.fingerprint, t.config, t.source_hash, t.compiler";

Names finding_names() {
  Names names;
  visit_findings(static_cast<const TrialRecord&>(TrialRecord{}), names);
  return names;
}

Names problem_names() {
  Names names;
  visit_problem(static_cast<const Problem&>(Problem{}), names);
  return names;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string list;
  for (const std::string& part : parts) {
    if (!list.empty()) list += ", ";
    list += part;
  }
  return list;
}

Expected<std::int64_t> id_of(const Connection& db, std::string_view sql, const std::string& key) {
  auto statement = Statement::make(db, sql, key);
  if (!statement) return tl::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  std::int64_t id = 0;
  if (*row) statement->read(id);
  return id;
}

Expected<std::int64_t> insert_problem(const Connection& db, const TrialRecord& trial) {
  static const Names names = problem_names();
  static const std::string sql = "INSERT INTO problem (key, " + names.listed() + ") VALUES (?, " +
                                 names.placeholders() + ") ON CONFLICT (key) DO NOTHING";
  auto insert = Statement::make(db, sql, trial.key.problem_key);
  if (!insert) return tl::unexpected(insert.error());
  Binder binder{*insert};
  visit_problem(trial.problem, binder);
  const auto inserted = insert->run();
  if (!inserted) return tl::unexpected(inserted.error());
  return id_of(db, "SELECT id FROM problem WHERE key = ?", trial.key.problem_key);
}

}  // namespace

std::string Names::listed(const std::string& prefix) const {
  std::vector<std::string> parts;
  for (const std::string& name : names)
    parts.push_back(prefix.empty() ? name : prefix + '.' + name);
  return joined(parts);
}

std::string Names::placeholders() const {
  return joined(std::vector<std::string>(names.size(), "?"));
}

std::string Names::replacements() const {
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(name + " = excluded." + name);
  return joined(parts);
}

void Binder::operator()(const char*, const std::optional<Verdict>& verdict) {
  if (!verdict) {
    for (std::size_t i = 0; i < std::size(kVerdictColumns); ++i) statement_.bind_null();
    return;
  }
  statement_.bind(to_string(verdict->rule));
  statement_.bind(verdict->required);
  statement_.bind(verdict->limit);
  statement_.bind(std::int64_t{verdict->constraint});
}

void Reader::operator()(const char*, std::optional<Verdict>& verdict) {
  verdict.reset();
  if (statement_.next_is_null()) {
    for (std::size_t i = 0; i < std::size(kVerdictColumns); ++i) statement_.skip();
    return;
  }
  Verdict read;
  std::string rule;
  std::int32_t constraint = 0;
  statement_.read(rule);
  statement_.read(read.required);
  statement_.read(read.limit);
  statement_.read(constraint);
  take(parse_rule(rule), read.rule);
  read.constraint = static_cast<std::int16_t>(constraint);
  verdict = read;
}

std::string select_trials(const std::string& extra) {
  static const std::string columns = std::string{kKeyColumns} + ", " + problem_names().listed("p") +
                                     ", " + finding_names().listed("t");
  return "SELECT " + columns + (extra.empty() ? "" : ", " + extra) +
         " FROM trial t JOIN problem p ON p.id = t.problem JOIN device d ON d.id = t.device ";
}

std::optional<TrialRecord> read_trial(Statement& statement) {
  TrialRecord trial;
  statement.read(trial.id);
  statement.read(trial.run);
  statement.read(trial.key.problem_key);
  statement.read(trial.key.device_fingerprint);
  statement.read(trial.key.config);
  statement.read(trial.key.source_hash);
  statement.read(trial.key.compiler);
  Reader reader{statement};
  visit_problem(trial.problem, reader);
  visit_findings(trial, reader);
  if (!statement.sound()) return std::nullopt;
  return trial;
}

Expected<std::int64_t> insert_device(const Connection& db, const std::string& fingerprint) {
  auto insert = Statement::make(
      db, "INSERT INTO device (fingerprint) VALUES (?) ON CONFLICT DO NOTHING", fingerprint);
  if (!insert) return tl::unexpected(insert.error());
  const auto inserted = insert->run();
  if (!inserted) return tl::unexpected(inserted.error());
  return id_of(db, "SELECT id FROM device WHERE fingerprint = ?", fingerprint);
}

Expected<std::int64_t> write_trial(const Connection& db, const TrialRecord& trial) {
  static const Names names = finding_names();
  static const std::string sql =
      "INSERT INTO trial (problem, device, config, source_hash, compiler, run, " + names.listed() +
      ") VALUES (?, ?, ?, ?, ?, nullif(?, 0), " + names.placeholders() +
      ") ON CONFLICT (problem, device, config, source_hash, compiler) DO UPDATE SET "
      "run = excluded.run, " +
      names.replacements() + " RETURNING id";
  const auto problem = insert_problem(db, trial);
  if (!problem) return problem;
  const auto device = insert_device(db, trial.key.device_fingerprint);
  if (!device) return device;
  auto insert = Statement::make(db, sql, *problem, *device, trial.key.config, trial.key.source_hash,
                                trial.key.compiler, trial.run);
  if (!insert) return tl::unexpected(insert.error());
  Binder binder{*insert};
  visit_findings(trial, binder);
  const auto row = insert->step();
  if (!row) return tl::unexpected(row.error());
  std::int64_t id = 0;
  insert->read(id);
  const auto done = insert->run();
  if (!done) return tl::unexpected(done.error());
  return id;
}

Expected<std::vector<std::string>> read_texts(Expected<Statement> select) {
  if (!select) return tl::unexpected(select.error());
  std::vector<std::string> found;
  for (;;) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return found;
    select->read(found.emplace_back());
  }
}

}  // namespace autotune::cache
