#include "cache/store.h"

#include <fmt/format.h>

#include "cache/impl.h"
#include "cache/schema.h"

namespace autotune::cache {

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

const std::filesystem::path& Store::path() const { return impl_->path; }
bool Store::writable() const { return impl_->writable; }
const std::string& Store::message() const { return impl_->message; }
bool Store::readable() const { return impl_->db.has_value(); }
bool Store::gives_cubins() const { return impl_->trusted; }

Expected<Transaction> Store::Impl::begin() const {
  if (writable) return begin_write(*db);
  return fail(ErrorCode::io_failed,
              fmt::format("cache {} was opened without the right to write", path.string()));
}

}  // namespace autotune::cache
