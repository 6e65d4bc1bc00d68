#include "autotune/worker/messages.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "autotune/worker/well_formed.h"
#include "test/support/catch.h"

namespace autotune::worker {
namespace {

using nlohmann::json;

Problem odd_problem() {
  Problem problem;
  problem.m = 4097;
  problem.n = 2147483647;
  problem.k = 7;
  problem.dtype = DType::tf32;
  problem.out_dtype = DType::fp32;
  problem.layout = Layout::nt;
  problem.lda = 5000;
  problem.alpha = 0.5;
  problem.beta = -1.25e-7;
  problem.mode = TimingMode::hot;
  problem.exact_fp32 = true;
  problem.activation = Activation::relu;
  return problem;
}

MeasureReply full_reply() {
  MeasureReply reply;
  reply.id = std::numeric_limits<std::uint64_t>::max();
  reply.outcome = Outcome::launch_failed;
  reply.verdict = Verdict{Rule::threads, 384, 256, 3};
  reply.measurement = {12.5, 0.004, 31, 1e-3, 0.25, 1980, true, true};
  reply.log = std::string("bytes \xff\x00 that are no UTF-8", 25);
  return reply;
}

std::string as_cbor(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("every message comes back as it was sent") {
  Hello hello{false, "", ErrorCode::no_gpu, "no GPU 3"};
  const auto hello_back = decode_hello(encode(hello));
  REQUIRE(hello_back);
  CHECK(hello_back->ok == false);
  CHECK(hello_back->code == ErrorCode::no_gpu);
  CHECK(hello_back->message == "no GPU 3");

  CompileRequest request{5, "source", "entry", "sm_90a", {{"A", "1"}, {"B", "a b"}}};
  const auto request_back = decode_compile_request(encode(request));
  REQUIRE(request_back);
  CHECK(request_back->id == 5);
  CHECK(request_back->source == "source");
  CHECK(request_back->arch == "sm_90a");
  CHECK(request_back->definitions == request.definitions);

  CompileReply compiled;
  compiled.id = 6;
  compiled.cubin = std::string(
      "\x7f"
      "ELF\x00\xff",
      6);
  compiled.actual = {255, 1024, 16, 8, 4, 3, 384, 2, true};
  compiled.seconds = 1.5;
  const auto compiled_back = decode_compile_reply(encode(compiled));
  REQUIRE(compiled_back);
  CHECK(compiled_back->cubin == compiled.cubin);
  CHECK(compiled_back->actual == compiled.actual);
  CHECK(compiled_back->seconds == 1.5);

  MeasureRequest measure;
  measure.problem = odd_problem();
  measure.config = "mma:stages=3";
  measure.options.behind_us = 17.25;
  measure.options.seed = ~std::uint64_t{0};
  const auto measure_back = decode_measure_request(encode(measure));
  REQUIRE(measure_back);
  CHECK(measure_back->problem == measure.problem);
  CHECK(measure_back->options.behind_us == 17.25);
  CHECK(measure_back->options.seed == ~std::uint64_t{0});

  const MeasureReply reply = full_reply();
  const auto reply_back = decode_measure_reply(encode(reply));
  REQUIRE(reply_back);
  CHECK(reply_back->id == reply.id);
  CHECK(reply_back->verdict == reply.verdict);
  CHECK(reply_back->measurement.median_us == 12.5);
  CHECK(reply_back->measurement.raced);
  CHECK(reply_back->log == reply.log);

  CompareRequest compare;
  compare.baseline = true;
  compare.contenders = {{"one", std::string("\0\xff", 2), ""}, {"two + three", "b", "c"}};
  compare.rounds = 9;
  compare.sustain_s = 2;
  compare.most_rounds = 240;
  const auto compare_back = decode_compare_request(encode(compare));
  REQUIRE(compare_back);
  CHECK(compare_back->baseline);
  REQUIRE(compare_back->contenders.size() == 2);
  CHECK(compare_back->contenders[0].cubin == std::string("\0\xff", 2));
  CHECK(compare_back->contenders[1].config == "two + three");
  CHECK(compare_back->contenders[1].second_cubin == "c");
  CHECK(compare_back->rounds == 9);
  CHECK(compare_back->sustain_s == 2);
  CHECK(compare_back->most_rounds == 240);

  CompareReply ratio;
  ratio.sides.resize(2);
  ratio.sides[0].verdict = Verdict{Rule::shared_memory, 300'000, 232'448};
  ratio.sides[1].ratio = 1.25;
  ratio.sides[1].ratio_hi = std::numeric_limits<double>::infinity();
  ratio.baseline_candidates = 64;
  const auto ratio_back = decode_compare_reply(encode(ratio));
  REQUIRE(ratio_back);
  REQUIRE(ratio_back->sides.size() == 2);
  CHECK(ratio_back->sides[0].verdict == ratio.sides[0].verdict);
  CHECK(ratio_back->sides[1].ratio == 1.25);
  CHECK(std::isinf(ratio_back->sides[1].ratio_hi));
  CHECK(ratio_back->baseline_candidates == 64);
}

TEST_CASE("a message is only taken for what it is") {
  const std::string reply = encode(full_reply());
  CHECK(kind_of(reply) == "measure_reply");
  CHECK_FALSE(decode_compare_reply(reply));
  CHECK_FALSE(decode_hello(reply));
  CHECK(kind_of("") == "");
  CHECK(kind_of("not a message") == "");
  CHECK(kind_of(as_cbor(json::array({1, 2}))) == "");
}

TEST_CASE("decoders refuse missing, surplus and wrong fields") {
  const json good = json::from_cbor(encode(full_reply()));
  REQUIRE(decode_measure_reply(as_cbor(good)));
  const auto refused = [&good](auto change) {
    json bad = good;
    change(bad);
    return !decode_measure_reply(as_cbor(bad));
  };
  CHECK(refused([](json& x) { x.erase("log"); }));
  CHECK(refused([](json& x) { x["more"] = 1; }));
  CHECK(refused([](json& x) { x["id"] = -1; }));
  CHECK(refused([](json& x) { x["id"] = 1.0; }));
  CHECK(refused([](json& x) { x["id"] = true; }));
  CHECK(refused([](json& x) { x["outcome"] = kOutcomeCount; }));
  CHECK(refused([](json& x) { x["outcome"] = -1; }));
  CHECK(refused([](json& x) { x["log"] = nullptr; }));
  CHECK(refused([](json& x) { x["verdict"] = json::object(); }));
  CHECK(refused([](json& x) { x["verdict"]["rule"] = kRuleCount; }));
  CHECK(refused([](json& x) { x["verdict"]["constraint"] = 70000; }));
  CHECK(refused([](json& x) { x["measurement"]["samples"] = std::int64_t{1} << 40; }));
  CHECK(refused([](json& x) { x["measurement"]["median_us"] = "12"; }));
  CHECK_FALSE(refused([](json& x) { x["verdict"] = nullptr; }));
}

TEST_CASE("bytes that nest or claim too much never reach the parser") {
  CHECK_FALSE(well_formed(std::string(1 << 20, '\x81')));            // arrays in arrays
  CHECK_FALSE(well_formed("\x9b\xff\xff\xff\xff\xff\xff\xff\xff"));  // 2^64-1 items
  CHECK_FALSE(well_formed("\x7a\xff\xff\xff\xff text"));
  CHECK_FALSE(well_formed("\x9f\xff"));  // indefinite length
  CHECK_FALSE(well_formed("\xc1\x01"));  // a tag
  CHECK_FALSE(well_formed("\x01\x01"));  // two items
  CHECK_FALSE(well_formed(""));
  CHECK(well_formed("\x81\x81\x81\x01"));
  CHECK(well_formed(std::string("\xa0", 1)));
}

TEST_CASE("cut and flipped messages are refused or read, never worse") {
  const std::string good = encode(full_reply());
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK_FALSE(decode_measure_reply(good.substr(0, length)));
  }
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    read += decode_measure_reply(bad) ? 1 : 0;
  }
  CHECK(read < 20000);
}

}  // namespace autotune::worker
