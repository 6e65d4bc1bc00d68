#include "autotune/gpu/library.h"

#include <array>
#include <string>
#include <utility>

#include "test/support/catch.h"

using namespace autotune;
using gpu::Library;

TEST_CASE("the first name that opens is taken, and its symbols are found") {
  const std::array<std::string, 2> names{"libdoes-not-exist.so.7", "libm.so.6"};
  auto library = Library::open(names, {}, ErrorCode::failed);
  REQUIRE(library);
  CHECK(library->name() == "libm.so.6");
  double (*cosine)(double) = nullptr;
  REQUIRE(gpu::resolve(*library, "cos", cosine));
  CHECK(cosine(0.0) == 1.0);
  CHECK(!gpu::resolve(*library, "no_such_function", cosine));
  CHECK(cosine == nullptr);

  Library moved = std::move(*library);
  CHECK(moved.symbol("sin") != nullptr);
  CHECK(library->symbol("sin") == nullptr);
}

TEST_CASE("a missing library is an error with the caller's code and the loader's words") {
  const std::array<std::string, 1> names{"libdoes-not-exist.so.7"};
  const auto library = Library::open(names, {}, ErrorCode::no_compiler);
  REQUIRE(!library);
  CHECK(library.error().code == ErrorCode::no_compiler);
  CHECK(library.error().message.find("libdoes-not-exist.so.7") != std::string::npos);
}
