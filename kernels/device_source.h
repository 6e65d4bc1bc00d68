// The text of device code that is compiled at run time.
#pragma once

#include <string_view>

namespace autotune {

struct DeviceSource {
  std::string_view text;
  std::string_view sha256;  // of the text, in hex, from the build: to hash it would slow each start
};

}  // namespace autotune
