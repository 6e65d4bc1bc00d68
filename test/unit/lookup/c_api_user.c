/* The header in a C11 program: it compiles without warnings, and C sees what C++ does. */
#include "test/unit/lookup/c_api_user.h"

#include <string.h>

_Static_assert(AUTOTUNE_OK == 0, "success is 0");

int c_user_default_is_sound(void) {
  const autotune_problem problem = autotune_problem_default();
  const autotune_options options = autotune_options_default();
  return problem.size == sizeof problem && strcmp(problem.family, "gemm") == 0 &&
         problem.alpha == 1.0 && options.size == sizeof options && options.use_cache == 1 &&
         autotune_abi_version() == AUTOTUNE_ABI_VERSION;
}

int c_user_match(const char* cache, const char* device, int64_t size) {
  autotune_options options = autotune_options_default();
  options.cache = cache;
  options.device = device;
  autotune_session* session = NULL;
  if (autotune_session_open(&options, &session) != AUTOTUNE_OK) return -1;
  autotune_problem problem = autotune_problem_default();
  problem.m = problem.n = problem.k = size;
  autotune_answer* answer = NULL;
  const autotune_status status = autotune_session_best_config(session, &problem, &answer);
  const int match = status == AUTOTUNE_OK ? (int)autotune_answer_match(answer) : -1;
  autotune_session_free(session);
  autotune_answer_free(answer);
  return match;
}
