#include "autotune/worker/messages.h"

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
  reply.reference_us = 12.25;
  reply.log = std::string("bytes \xff\x00 that are no UTF-8", 25);
  return reply;
}

std::string as_cbor(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return bytes;
}

}  // namespace

// No field of these has its default value.
TEST_CASE("every message comes back as it was sent") {
  const std::string bytes(
      "\x7f"
      "ELF\x00\xff",
      6);
  const Hello hello{false, "13.0", ErrorCode::no_gpu, "no GPU 3"};
  CHECK(decode_hello(encode(hello)) == hello);

  const CompileRequest request{5, "source", "entry", "sm_90a", {{"A", "1"}, {"B", "a b"}}};
  CHECK(decode_compile_request(encode(request)) == request);

  const CompileReply compiled{
      6, Outcome::compile_failed, bytes, {255, 1024, 16, 8, 4, 3, 384, 2, true}, "log", 1.5};
  CHECK(decode_compile_reply(encode(compiled)) == compiled);

  const MeasureOptions options{0.25, 8, 61, 62, 17.25, ~std::uint64_t{0}, 7};
  const MeasureRequest measure{7,           odd_problem(), "mma:stages=3", bytes,
                               "reference", bytes + "2",   options};
  CHECK(decode_measure_request(encode(measure)) == measure);
  CHECK(decode_measure_reply(encode(full_reply())) == full_reply());

  const CompareRequest compare{8,
                               odd_problem(),
                               {{"one", std::string("\0\xff", 2), ""}, {"two + three", "b", "c"}},
                               true,
                               9,
                               240,
                               2,
                               options};
  CHECK(decode_compare_request(encode(compare)) == compare);

  const Side side{Outcome::launch_failed,
                  Verdict{Rule::shared_memory, 300'000, 232'448},
                  "refused",
                  full_reply().measurement,
                  1.25,
                  1.125,
                  std::numeric_limits<double>::infinity()};
  const CompareReply ratio{9, Outcome::faulted, "log", {side, Side{}}, "cublasLt #3", 64};
  CHECK(decode_compare_reply(encode(ratio)) == ratio);
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
  CHECK(well_formed(std::string(8, '\x81') + '\x01'));  // as deep as any may be
  CHECK_FALSE(well_formed(std::string(9, '\x81') + '\x01'));
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
