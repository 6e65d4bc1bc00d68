// plan --compile and --audit, with workers that only pretend to compile.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/unit/cli/run.h"

using nlohmann::json;
namespace test = autotune::test;
using test::contains;
using test::Ran;

namespace {

constexpr const char* kProduct = "gemm --m 1000 --n 1000 --k 1000";
constexpr const char* kMlp = "geglu_mlp --tokens 1000 --hidden 1000 --intermediate 2000";

// `rules`: what the fake workers do wrong.
Ran plan(const std::string& problem, const std::string& more, const std::string& rules = "") {
  std::istringstream words("plan " + problem + " --dtype fp32 --exact-fp32 --device nvidia-h200 " +
                           "--jobs 2 " + more);
  std::vector<std::string> args;
  for (std::string word; words >> word;) args.push_back(word);
  setenv("AUTOTUNE_WORKER", AUTOTUNE_FAKE_WORKER, 1);
  setenv("AUTOTUNE_FAKE_RULES", rules.c_str(), 1);
  const Ran ran = test::run(args);
  unsetenv("AUTOTUNE_FAKE_RULES");
  unsetenv("AUTOTUNE_WORKER");
  return ran;
}

json document_of(const Ran& ran) {
  INFO(ran.err);
  REQUIRE_FALSE(ran.out.empty());
  return json::parse(ran.out);
}

}  // namespace

TEST_CASE("plan --compile compiles so many survivors, --audit so many rejects, and tells of both") {
  const Ran ran = plan(kProduct, "--compile 7 --audit 5 --json -");
  const json document = document_of(ran);
  CHECK(ran.code == 0);
  CHECK(document["compile"]["compiled"] == 7);
  CHECK(document["compile"]["failed"] == 0);
  CHECK(document["audit"]["sampled"] == 5);
  CHECK(document["audit"]["false_passes"] == 0);
  CHECK(document["audit"]["false_rejects"] == 0);
  CHECK(contains(ran.err, "Compiled 7 of "));
  CHECK(contains(ran.err, "register estimate: off by "));
  CHECK(contains(ran.err, "Audited 5 rejected configs: 0 false rejects"));
}

TEST_CASE("a plan tells of nothing compiled where that was not asked for") {
  const json neither = document_of(plan(kProduct, "--json -"));
  CHECK(neither["compile"].is_null());
  CHECK(neither["audit"].is_null());
  const Ran ran = plan(kProduct, "--audit 5 --json -");
  CHECK(document_of(ran)["compile"].is_null());
  CHECK_FALSE(contains(ran.err, "Compiled"));
  CHECK_FALSE(contains(ran.err, "register estimate"));
}

TEST_CASE("plan --compile all compiles each code of the plan") {
  const std::string few = "--exclude gemv --exclude simt:block_k=8 --json - --compile ";
  const int all = document_of(plan(kProduct, few + "all"))["compile"]["compiled"];
  CHECK(all > 300);
  CHECK(document_of(plan(kProduct, few + "1000000"))["compile"]["compiled"] == all);
}

TEST_CASE(
    "a plan whose survivors cannot run as predicted fails, and says what is wrong with each") {
  struct Case {
    std::string word;
    std::string finding;
  };
  for (const Case& each : {Case{"fail", "does not compile"}, Case{"narrow", "the cubin has"},
                           Case{"greedy", "survived, but cannot run"}}) {
    INFO(each.word);
    const Ran ran = plan(kProduct, "--compile 3 --audit 1 --json -", "THREADS=>" + each.word);
    CHECK(ran.code == 1);
    CHECK(contains(ran.err, each.finding));
    const json document = document_of(ran);
    CHECK(document["compile"]["failed"] == (each.word == "fail" ? 3 : 0));
    CHECK(document["compile"]["mismatches"] == (each.word == "narrow" ? 3 : 0));
    CHECK(document["audit"]["false_passes"] == (each.word == "fail" ? 0 : 3));
    // What was found is the result, which -q leaves.
    CHECK(contains(plan(kProduct, "--compile 3 -q", "THREADS=>" + each.word).out, each.finding));
  }
}

TEST_CASE("the seed decides which survivors are compiled") {
  const auto compiled = [](const std::string& seed) {  // they fail, so that they are named
    return plan(kProduct, "--compile 3 -q --seed " + seed, "THREADS=>fail").out;
  };
  CHECK(compiled("1") == compiled("1"));
  CHECK(compiled("2") != compiled("1"));
}

TEST_CASE("survivors that spill though that was not predicted are told, and are no failure") {
  const Ran ran = plan(kProduct, "--compile 3", "THREADS=>spill");
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "3 spills not predicted"));
}

TEST_CASE("a plan fails where the first of its problems does and the last does not") {
  const Ran ran = plan(kMlp, "--compile 2 --json -", "GATED=1=>fail");
  CHECK(ran.code == 1);
  const json rows = document_of(ran)["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["compile"]["failed"] == 2);
  CHECK(rows[1]["compile"]["failed"] == 0);
}
