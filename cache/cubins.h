// The seal that a stored cubin is checked by.
#pragma once

#include <string>

#include "cache/store.h"

namespace autotune::cache {

// SHA-256 of everything that a row says: a changed key or resource is noticed like a changed image.
std::string seal_of(const CubinKey& key, const CubinRecord& cubin);

}  // namespace autotune::cache
