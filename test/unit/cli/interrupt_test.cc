#include "autotune/cli/interrupt.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "test/support/catch.h"

using autotune::cli::Interrupt;

TEST_CASE("the first signal sets the flag, and what was before comes back") {
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  {
    const Interrupt interrupt;
    CHECK_FALSE(interrupt.flag());
    raise(SIGINT);
    CHECK(interrupt.flag());
  }
  struct sigaction after {};
  sigaction(SIGINT, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  const Interrupt fresh;
  CHECK_FALSE(fresh.flag());
}

TEST_CASE("the second signal ends the process") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const Interrupt interrupt;
    raise(SIGINT);
    raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}
