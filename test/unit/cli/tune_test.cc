// tune: what can be told of it where no GPU is.
#include "test/support/catch.h"
#include "test/unit/cli/run.h"

using autotune::test::contains;
using autotune::test::run;

TEST_CASE("tune's help says that a limited search stores no winner") {
  const auto ran = run({"tune", "--help"});
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "--max-sms or --exclude limits is not\nstored as the problem's"));
}
