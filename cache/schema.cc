#include "cache/schema.h"

#include <fmt/format.h>

#include <array>

namespace autotune::cache {
namespace {

// Step i leads from user_version i to i + 1. A step that was ever released is never changed.
// Enumerations are stored by name. REAL columns without NOT NULL hold NaN as NULL.
constexpr std::array<const char*, kSchemaVersion> kLadder = {R"sql(
CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE problem (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  family TEXT NOT NULL,
  m INTEGER NOT NULL,
  n INTEGER NOT NULL,
  k INTEGER NOT NULL,
  dtype TEXT NOT NULL,
  out_dtype TEXT NOT NULL,
  layout TEXT NOT NULL,
  lda INTEGER NOT NULL,
  ldb INTEGER NOT NULL,
  ldc INTEGER NOT NULL,
  alpha REAL NOT NULL,
  beta REAL NOT NULL,
  mode TEXT NOT NULL
) STRICT;
CREATE INDEX problem_family ON problem (family);

-- uid is the same wherever a run's rows are copied to, so that merging twice changes nothing.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  device INTEGER NOT NULL REFERENCES device (id),
  device_name TEXT NOT NULL,
  compiler TEXT NOT NULL,
  driver TEXT NOT NULL,
  version TEXT NOT NULL,
  options TEXT NOT NULL,
  host TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER
) STRICT;

CREATE TABLE rejected (
  run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  rule TEXT NOT NULL,
  configs INTEGER NOT NULL,
  PRIMARY KEY (run, rule)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial (
  id INTEGER PRIMARY KEY,
  run INTEGER REFERENCES run (id),
  problem INTEGER NOT NULL REFERENCES problem (id),
  device INTEGER NOT NULL REFERENCES device (id),
  config TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  compiler TEXT NOT NULL,
  time INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  rule TEXT,
  required INTEGER,
  allowed INTEGER,
  broken_constraint INTEGER,
  predicted_smem_bytes INTEGER NOT NULL,
  predicted_static_smem_bytes INTEGER NOT NULL,
  predicted_threads INTEGER NOT NULL,
  predicted_min_blocks INTEGER NOT NULL,
  predicted_registers INTEGER NOT NULL,
  predicted_register_demand INTEGER NOT NULL,
  predicted_barriers INTEGER NOT NULL,
  predicted_cluster INTEGER NOT NULL,
  predicted_grid INTEGER NOT NULL,
  predicted_workspace_bytes INTEGER NOT NULL,
  registers INTEGER NOT NULL,
  static_smem_bytes INTEGER NOT NULL,
  stack_bytes INTEGER NOT NULL,
  spill_store_bytes INTEGER NOT NULL,
  spill_load_bytes INTEGER NOT NULL,
  barriers INTEGER NOT NULL,
  max_threads INTEGER NOT NULL,
  cluster INTEGER NOT NULL,
  serialised INTEGER NOT NULL,
  median_us REAL,
  relative_error REAL,
  samples INTEGER NOT NULL,
  result_error REAL,
  max_error_ratio REAL,
  sm_mhz REAL,
  throttled INTEGER NOT NULL,
  raced INTEGER NOT NULL,
  compile_seconds REAL,
  log TEXT NOT NULL,
  UNIQUE (problem, device, config, source_hash, compiler)
) STRICT;

CREATE TABLE winner (
  problem INTEGER NOT NULL REFERENCES problem (id),
  device INTEGER NOT NULL REFERENCES device (id),
  trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
  lead_percent REAL,
  tie INTEGER NOT NULL,
  default_us REAL,
  seconds REAL,
  PRIMARY KEY (problem, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX winner_trial ON winner (trial);

-- seal is the SHA-256 of the key, the resources and the image: see cubins.cc.
CREATE TABLE cubin (
  id INTEGER PRIMARY KEY,
  source_hash TEXT NOT NULL,
  arch TEXT NOT NULL,
  compiler TEXT NOT NULL,
  seal TEXT NOT NULL,
  registers INTEGER NOT NULL,
  static_smem_bytes INTEGER NOT NULL,
  stack_bytes INTEGER NOT NULL,
  spill_store_bytes INTEGER NOT NULL,
  spill_load_bytes INTEGER NOT NULL,
  barriers INTEGER NOT NULL,
  max_threads INTEGER NOT NULL,
  cluster INTEGER NOT NULL,
  serialised INTEGER NOT NULL,
  image BLOB NOT NULL,
  UNIQUE (source_hash, arch, compiler)
) STRICT;
)sql",
                                                             R"sql(
ALTER TABLE problem ADD COLUMN exact_fp32 INTEGER NOT NULL DEFAULT 0;
)sql",
                                                             R"sql(
ALTER TABLE problem ADD COLUMN activation TEXT NOT NULL DEFAULT 'gelu_tanh';
)sql"};

constexpr std::int64_t kTables = 7;
constexpr const char* kCountTables =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
    "('device', 'problem', 'run', 'rejected', 'trial', 'winner', 'cubin')";

// Of the table `problem`, which each version adds one to: what a file of that version has.
constexpr std::int64_t problem_columns(std::int64_t version) { return 14 + version; }
constexpr const char* kCountProblemColumns = "SELECT count(*) FROM pragma_table_info('problem')";

Expected<std::int64_t> number(const Connection& connection, const char* sql) {
  std::int64_t value = 0;
  auto statement = Statement::make(connection, sql);
  if (!statement) return tl::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  if (*row) statement->read(value);
  return value;
}

tl::unexpected<Error> incomplete(const Connection& connection) {
  return fail(ErrorCode::corrupt_file,
              fmt::format("cache {}: its tables are not complete; it is damaged",
                          connection.path().string()));
}

}  // namespace

Expected<Content> content_of(const Connection& connection) {
  const auto application = number(connection, "PRAGMA application_id");
  if (!application) return tl::unexpected(application.error());
  const auto version = number(connection, "PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  const auto objects = number(connection, "SELECT count(*) FROM sqlite_schema");
  if (!objects) return tl::unexpected(objects.error());

  if (*application == 0 && *version == 0 && *objects == 0) return Content::nothing;
  if (*application != kApplicationId) return Content::foreign;
  if (*version > kSchemaVersion) return Content::newer;
  // Identity, version and tables are written in one transaction, from version 1 on.
  if (*version < 1) return incomplete(connection);
  const auto tables = number(connection, kCountTables);
  if (!tables) return tl::unexpected(tables.error());
  if (*tables != kTables) return incomplete(connection);
  const auto columns = number(connection, kCountProblemColumns);
  if (!columns) return tl::unexpected(columns.error());
  if (*columns != problem_columns(*version)) return incomplete(connection);
  return *version < kSchemaVersion ? Content::older : Content::current;
}

Error refusal(const Connection& connection, Content content) {
  const std::string file = connection.path().string();
  if (content == Content::newer) {
    return {ErrorCode::foreign_file,
            fmt::format("cache {} was written by a newer autotune (this one knows schemas up to "
                        "{}); it was left alone: use that version, or another file (--cache)",
                        file, kSchemaVersion)};
  }
  return {ErrorCode::foreign_file,
          fmt::format("{} is not an autotune cache; it was left alone: use another file (--cache)",
                      file)};
}

namespace {

// Within a write transaction.
Expected<void> climb(const Connection& connection) {
  const auto content = content_of(connection);
  if (!content) return tl::unexpected(content.error());
  if (*content == Content::current) return {};
  if (*content == Content::newer || *content == Content::foreign) {
    return tl::unexpected(refusal(connection, *content));
  }
  const auto version = number(connection, "PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  for (std::int64_t step = *version; step < kSchemaVersion; ++step) {
    const auto climbed = connection.execute(kLadder[step]);
    if (!climbed) return climbed;
  }
  const auto identity = fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                    kApplicationId, kSchemaVersion);
  return connection.execute(identity.c_str());
}

}  // namespace

Expected<void> bring_up_to_date(const Connection& connection) {
  auto transaction = Transaction::write(connection);
  if (!transaction) return tl::unexpected(transaction.error());
  // Looks again under the lock: another process may have been here first.
  if (const auto climbed = climb(connection); !climbed) return climbed;
  return transaction->commit();
}

Expected<Transaction> begin_write(const Connection& connection) {
  auto transaction = Transaction::write(connection);
  if (!transaction) return transaction;
  const auto version = number(connection, "PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  if (*version != kSchemaVersion) {
    if (const auto climbed = climb(connection); !climbed) return tl::unexpected(climbed.error());
  }
  return transaction;
}

}  // namespace autotune::cache
