// What checked() makes of a problem, or how it refuses it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/problem.h"
#include "test/support/catch.h"

namespace autotune {

inline Problem checked_or_fail(const Problem& problem) {
  const auto result = checked(problem);
  REQUIRE(result);
  return *result;
}

// The message.
inline std::string refused(const Problem& problem) {
  const auto result = checked(problem);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::bad_input);
  return result.error().message;
}

inline bool says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

}  // namespace autotune
