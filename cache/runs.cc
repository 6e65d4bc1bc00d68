#include <fmt/format.h>

#include <ctime>

#include "cache/impl.h"
#include "cache/rows.h"

namespace autotune::cache {

Expected<std::int64_t> Store::begin_run(const RunInfo& info) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  const Connection& db = *impl_->db;
  const auto device = insert_device(db, info.device_fingerprint);
  if (!device) return device;
  auto insert = Statement::make(db,
                                "INSERT INTO run (uid, device, device_name, compiler, driver, "
                                "version, options, host, started)"
                                " VALUES (lower(hex(randomblob(16))), ?, ?, ?, ?, ?, ?, ?, ?)",
                                *device, info.device_name, info.compiler, info.driver, info.version,
                                info.options, info.host, std::int64_t{std::time(nullptr)});
  if (!insert) return tl::unexpected(insert.error());
  const auto inserted = insert->run();
  if (!inserted) return tl::unexpected(inserted.error());
  const std::int64_t run = sqlite3_last_insert_rowid(db.handle());
  const auto committed = transaction->commit();
  if (!committed) return tl::unexpected(committed.error());
  return run;
}

Expected<void> Store::end_run(std::int64_t run,
                              const std::map<std::string, std::int64_t>& rejected) {
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  const Connection& db = *impl_->db;
  auto update = Statement::make(db, "UPDATE run SET ended = ? WHERE id = ?",
                                std::int64_t{std::time(nullptr)}, run);
  if (!update) return tl::unexpected(update.error());
  if (const auto updated = update->run(); !updated) return updated;
  if (sqlite3_changes(db.handle()) == 0) {
    return fail(ErrorCode::bad_input, fmt::format("cache {} has no run {}", path().string(), run));
  }
  for (const auto& [rule, configs] : rejected) {
    auto insert =
        Statement::make(db, "INSERT OR REPLACE INTO rejected (run, rule, configs) VALUES (?, ?, ?)",
                        run, rule, configs);
    if (!insert) return tl::unexpected(insert.error());
    if (const auto inserted = insert->run(); !inserted) return inserted;
  }
  return transaction->commit();
}

}  // namespace autotune::cache
