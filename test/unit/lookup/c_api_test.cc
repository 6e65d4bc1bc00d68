// The C border: handles, statuses, messages, structs of other sizes.
#include "autotune/c_api.h"

#include <string>
#include <thread>

#include "test/unit/lookup/c_api_user.h"
#include "test/unit/lookup/setting.h"

using namespace autotune;
using test::Setting;

namespace {

autotune_session* open(const Setting& setting, const autotune_options& changes) {
  autotune_options options = changes;
  options.cache = setting.file.c_str();
  options.device = "nvidia-h200";
  autotune_session* session = nullptr;
  REQUIRE(autotune_session_open(&options, &session) == AUTOTUNE_OK);
  return session;
}

autotune_problem square(std::int64_t size) {
  autotune_problem problem = autotune_problem_default();
  problem.m = problem.n = problem.k = size;
  return problem;
}

std::string message() { return autotune_error_message(); }

}  // namespace

TEST_CASE("a C program gets the answers of the C++ one") {
  const Setting setting;
  setting.fill();
  // Faster than the model expects anything there to be, so that its neighbours take it.
  setting.crown(setting.problem, setting.config, 120);
  CHECK(c_user_default_is_sound() == 1);
  CHECK(c_user_match(setting.file.c_str(), "nvidia-h200", 4096) == AUTOTUNE_EXACT);
  CHECK(c_user_match(setting.file.c_str(), "nvidia-h200", 4032) == AUTOTUNE_NEAREST_PROBLEM);
  CHECK(c_user_match(setting.file.c_str(), "nvidia-h200", 16) == AUTOTUNE_DEFAULT_CONFIG);
  CHECK(c_user_match(setting.file.c_str(), "voodoo-3", 16) == -1);
}

TEST_CASE("a family that is none is refused with those that are") {
  const Setting setting;
  autotune_session* session = open(setting, autotune_options_default());
  autotune_answer* answer = nullptr;
  autotune_problem problem = square(4096);
  problem.family = "foo";
  CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  const std::string message = autotune_error_message();
  CHECK(message.find("foo; the kernel families are gemm, geglu, geglu_mlp") != std::string::npos);
  autotune_session_free(session);
}

TEST_CASE("what an answer says") {
  const Setting setting;
  setting.fill();
  autotune_session* session = open(setting, autotune_options_default());
  CHECK(std::string(autotune_session_device(session)) == "NVIDIA H200");
  CHECK(std::string(autotune_session_message(session)).empty());
  autotune_answer* answer = nullptr;
  autotune_problem problem = square(4096);
  REQUIRE(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_OK);
  CHECK(autotune_answer_config(answer) == to_string(setting.config));
  CHECK(std::string(autotune_answer_from_problem(answer)).empty());
  CHECK(autotune_answer_median_us(answer) == Approx(210));
  autotune_answer_free(answer);
  autotune_session_free(session);
}

TEST_CASE("what is wrong is told by status and message, per thread, and leaves no handle") {
  const Setting setting;
  setting.fill();
  autotune_options options = autotune_options_default();
  options.allow_compile = 0;
  autotune_session* session = open(setting, options);

  auto* answer = reinterpret_cast<autotune_answer*>(1);
  autotune_problem problem = square(0);
  CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(answer == nullptr);
  CHECK(message().find("m = 0") != std::string::npos);
  std::thread([] { CHECK(message().empty()); }).join();

  for (const std::int32_t wrong : {77, 256, -256}) {
    problem = square(64);
    problem.layout = wrong;
    CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
    CHECK(message().find("layout") != std::string::npos);
  }
  CHECK(autotune_session_best_config(nullptr, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(autotune_session_best_config(session, nullptr, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(autotune_session_best_config(session, &problem, nullptr) == AUTOTUNE_BAD_INPUT);

  autotune_kernel* kernel = nullptr;
  problem = square(4096);
  CHECK(autotune_session_kernel(session, &problem, &kernel) == AUTOTUNE_NO_GPU);
  problem = square(64);
  CHECK(autotune_session_kernel(session, &problem, &kernel) == AUTOTUNE_NO_COMPILER);
  CHECK(message().find("may not compile") != std::string::npos);
  CHECK(kernel == nullptr);
  CHECK(autotune_kernel_launch(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        AUTOTUNE_BAD_INPUT);

  autotune_session_free(session);
  autotune_session_free(nullptr);
  autotune_answer_free(nullptr);
  autotune_kernel_free(nullptr);
}

TEST_CASE("an exact_fp32 problem is answered by FFMA, and refused of another type") {
  const Setting setting;
  autotune_session* session = open(setting, autotune_options_default());
  autotune_problem problem = square(1024);
  problem.exact_fp32 = 1;
  autotune_answer* answer = nullptr;
  CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(message().find("exact_fp32") != std::string::npos);
  problem.dtype = problem.out_dtype = AUTOTUNE_FP32;
  REQUIRE(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_OK);
  CHECK(std::string(autotune_answer_config(answer)).rfind("simt:", 0) == 0);
  autotune_answer_free(answer);
  autotune_session_free(session);
}

TEST_CASE("a gated problem is answered, and its activation is looked at") {
  const Setting setting;
  autotune_session* session = open(setting, autotune_options_default());
  autotune_problem problem = square(1024);
  problem.family = "geglu";
  problem.activation = AUTOTUNE_SILU;
  autotune_answer* answer = nullptr;
  REQUIRE(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_OK);
  autotune_answer_free(answer);
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{256}, std::int64_t{1} << 32}) {
    problem.activation = wrong;
    CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
    CHECK(message().find("activation") != std::string::npos);
  }
  CHECK(autotune_kernel_launch_gated(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                     nullptr) == AUTOTUNE_BAD_INPUT);
  autotune_session_free(session);
}

TEST_CASE("an MLP is answered by two configs, and launched by a call of its own") {
  const Setting setting;
  autotune_session* session = open(setting, autotune_options_default());
  autotune_problem problem = square(1024);
  problem.family = "geglu_mlp";
  autotune_answer* answer = nullptr;
  REQUIRE(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_OK);
  CHECK(std::string(autotune_answer_config(answer)).find(" + ") != std::string::npos);
  autotune_answer_free(answer);
  problem.m = 0;
  CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(message().find("tokens = 0") != std::string::npos);
  CHECK(autotune_kernel_launch_mlp(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr) == AUTOTUNE_BAD_INPUT);
  CHECK(message() == "kernel is null");
  autotune_session_free(session);
}

TEST_CASE("structs of an older header keep the defaults of what they lack") {
  const Setting setting;
  setting.fill();
  autotune_session* session = open(setting, autotune_options_default());
  autotune_problem problem = square(4096);
  problem.layout = AUTOTUNE_NT;  // beyond what the older header had
  problem.size = offsetof(autotune_problem, layout);
  autotune_answer* answer = nullptr;
  REQUIRE(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_OK);
  CHECK(autotune_answer_match(answer) == AUTOTUNE_EXACT);
  autotune_answer_free(answer);
  problem.size = 0;
  CHECK(autotune_session_best_config(session, &problem, &answer) == AUTOTUNE_BAD_INPUT);
  CHECK(message().find("autotune_problem_default()") != std::string::npos);
  autotune_session_free(session);
}
