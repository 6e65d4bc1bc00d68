#include "cache/cubins.h"

#include <fmt/format.h>

#include "cache/impl.h"
#include "cache/rows.h"
#include "kernels/sha256.h"

namespace autotune::cache {
namespace {

Names actual_names() {
  Names names;
  visit_actual(static_cast<const ActualResources&>(ActualResources{}), names);
  return names;
}

}  // namespace

std::string seal_of(const CubinKey& key, const CubinRecord& cubin) {
  std::string text = fmt::format("{}\n{}\n{}\n", key.source_hash, key.arch, key.compiler);
  const auto append = [&text](const char* name, auto value) {
    text += fmt::format("{}={}\n", name, static_cast<std::int64_t>(value));
  };
  visit_actual(cubin.actual, append);
  return sha256_hex(text + cubin.image);
}

Expected<void> write_cubin(const Connection& db, const CubinKey& key, const CubinRecord& cubin) {
  static const Names names = actual_names();
  static const std::string sql =
      "INSERT OR REPLACE INTO cubin (source_hash, arch, compiler, seal, image, " + names.listed() +
      ") VALUES (?, ?, ?, ?, ?, " + names.placeholders() + ")";
  auto insert =
      Statement::make(db, sql, key.source_hash, key.arch, key.compiler, seal_of(key, cubin));
  if (!insert) return tl::unexpected(insert.error());
  insert->bind_blob(cubin.image);
  Binder binder{*insert};
  visit_actual(cubin.actual, binder);
  return insert->run();
}

Expected<void> Store::put_cubin(const CubinKey& key, const CubinRecord& cubin) {
  if (impl_->writable && !impl_->trusted) return {};
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  if (const auto written = write_cubin(*impl_->db, key, cubin); !written) return written;
  return transaction->commit();
}

Expected<std::optional<CubinRecord>> Store::cubin(const CubinKey& key) const {
  if (!impl_->db || !impl_->trusted) return std::nullopt;
  static const std::string sql = "SELECT seal, image, " + actual_names().listed() +
                                 " FROM cubin WHERE source_hash = ? AND arch = ? AND compiler = ?";
  CubinRecord cubin;
  std::string seal;
  bool sound = false;
  {
    auto select = Statement::make(*impl_->db, sql, key.source_hash, key.arch, key.compiler);
    if (!select) return tl::unexpected(select.error());
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return std::nullopt;
    select->read(seal);
    select->read(cubin.image);
    Reader reader{*select};
    visit_actual(cubin.actual, reader);
    sound = select->sound();
  }
  if (sound && seal == seal_of(key, cubin)) return cubin;
  const bool in_a_view = sqlite3_get_autocommit(impl_->db->handle()) == 0;
  if (!impl_->writable || in_a_view) return std::nullopt;

  // The seal in the condition spares a sound one that another process has put there since.
  auto transaction = impl_->begin();
  if (!transaction) return tl::unexpected(transaction.error());
  auto drop = Statement::make(
      *impl_->db,
      "DELETE FROM cubin WHERE source_hash = ? AND arch = ? AND compiler = ? AND seal = ?",
      key.source_hash, key.arch, key.compiler, seal);
  if (!drop) return tl::unexpected(drop.error());
  if (const auto dropped = drop->run(); !dropped) return tl::unexpected(dropped.error());
  if (const auto committed = transaction->commit(); !committed) {
    return tl::unexpected(committed.error());
  }
  return std::nullopt;
}

}  // namespace autotune::cache
