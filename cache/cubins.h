// Rows of the cubin table and the seal that they are checked by.
#pragma once

#include <string>

#include "cache/sqlite.h"
#include "cache/store.h"

namespace autotune::cache {

// SHA-256 of everything that a row says: a changed key or resource is noticed like a changed image.
std::string seal_of(const CubinKey& key, const CubinRecord& cubin);

// Puts it in the place of the one under the same key.
Expected<void> write_cubin(const Connection& db, const CubinKey& key, const CubinRecord& cubin);

}  // namespace autotune::cache
