// SHA-256 (FIPS 180-4): keys of cubins and the check of what the cache gives back.
#pragma once

#include <string>
#include <string_view>

namespace autotune {

// The digest of `data` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view data);

}  // namespace autotune
