// What the tuner and its worker processes say to each other. Each message is one CBOR map behind a
// 4-byte little-endian length; see channel.h. No CUDA here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autotune/types.h"
#include "kernels/kernel.h"
#include "kernels/resources.h"
#include "kernels/trial.h"

namespace autotune::worker {

// The first message of every worker, before it reads a request: it is ready, or it cannot work here
// (no_compiler, no_gpu) and ends.
struct Hello {
  bool ok = true;
  std::string what;  // "nvrtc 13.0" of a compile worker, the driver's "13.0" of a measuring one
  ErrorCode code = ErrorCode::failed;  // where not ok
  std::string message;

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct CompileRequest {
  std::uint64_t id = 0;
  std::string source;
  std::string entry;
  std::string arch;  // "sm_90a"
  std::vector<Definition> definitions;

  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
};

struct CompileReply {
  std::uint64_t id = 0;
  // ok, compile_failed; the pool itself adds compile_crashed and timed_out for lost workers.
  Outcome outcome = Outcome::ok;
  std::string cubin;
  ActualResources actual;
  std::string log;  // errors, or ptxas' report
  double seconds = 0;

  friend bool operator==(const CompileReply&, const CompileReply&) = default;
};

// How many launches of `us` each a sample is the mean of: hot some 200 us without a pause, or ten
// launches, but of those that take longer than 200 us each as many as 2 ms hold, and two at least.
inline int launches_per_sample(TimingMode mode, double us) {
  if (mode == TimingMode::cold) return 1;
  const double least = std::clamp(2000 / us, 2.0, 10.0);
  return static_cast<int>(std::clamp(200 / us, least, 500.0));
}

struct MeasureOptions {
  double relative_error = 0.005;  // stop when the median's standard error / median is below
  int min_samples = 7;
  int max_samples = 60;
  double max_ms = 60;      // of kernel time for one config
  double behind_us = 0;    // race: stop early when clearly slower than this; 0: never
  std::uint64_t seed = 1;  // of the inputs
  int max_sms = 0;

  friend bool operator==(const MeasureOptions&, const MeasureOptions&) = default;
};

struct MeasureRequest {
  std::uint64_t id = 0;
  Problem problem;
  std::string config;  // canonical string
  std::string cubin;
  // Another config that is sampled in between, to tell what the clocks did meanwhile from what the
  // config does, and that warms the GPU up first where its launches are long (gpu/warmth.h); may be
  // empty.
  std::string reference;
  std::string reference_cubin;
  MeasureOptions options;

  friend bool operator==(const MeasureRequest&, const MeasureRequest&) = default;
};

struct MeasureReply {
  std::uint64_t id = 0;
  Outcome outcome = Outcome::ok;
  std::optional<Verdict> verdict;  // what the driver refused, where it did
  Measurement measurement;
  double reference_us = 0;  // median of the reference's samples; 0 without one
  std::string log;

  friend bool operator==(const MeasureReply&, const MeasureReply&) = default;
};

// What takes part in a comparison: a config and its code.
struct Contender {
  std::string config;  // canonical string
  std::string cubin;
  std::string second_cubin;  // of a problem with two stages

  friend bool operator==(const Contender&, const Contender&) = default;
};

// Times contenders in interleaved rounds on the same inputs: A B C, C A B, ... Where launches are
// long, those that warm the GPU up (gpu/warmth.h) do not count. With `baseline` the last of
// them is the best of cuBLASLt and cuBLAS: of those that were level in a choice ahead of it, the
// one that is the fastest here. With `sustain_s` above 0 they take turns in graphs of launches,
// back to back for so many seconds, of which the first quarter does not count.
struct CompareRequest {
  std::uint64_t id = 0;
  Problem problem;
  std::vector<Contender> contenders;
  bool baseline = false;
  int rounds = 30;  // without sustain_s
  // So many at most where those leave a ratio uncertain (see RoundRule); 0: no more.
  int most_rounds = 0;
  double sustain_s = 0;
  MeasureOptions options;

  friend bool operator==(const CompareRequest&, const CompareRequest&) = default;
};

// One contender's part of it.
struct Side {
  Outcome outcome = Outcome::ok;   // else it was not timed
  std::optional<Verdict> verdict;  // what the driver refused, where it did
  std::string log;
  Measurement measurement;
  double ratio = 0;     // median of its time over that of the first contender that was timed
  double ratio_lo = 0;  // 95 % confidence interval of that ratio
  double ratio_hi = 0;

  friend bool operator==(const Side&, const Side&) = default;
};

struct CompareReply {
  std::uint64_t id = 0;
  Outcome outcome = Outcome::ok;  // else nothing was timed
  std::string log;
  std::vector<Side> sides;      // as the contenders, the baseline behind them
  std::string baseline;         // "cublasLt #3", "cublasGemmEx"
  int baseline_candidates = 0;  // how many of them were timed

  friend bool operator==(const CompareReply&, const CompareReply&) = default;
};

// The CBOR bytes of a message, its kind included; and back. A decoder never throws: nullopt for
// anything that is not exactly that message.
std::string encode(const Hello& message);
std::string encode(const CompileRequest& message);
std::string encode(const CompileReply& message);
std::string encode(const MeasureRequest& message);
std::string encode(const MeasureReply& message);
std::string encode(const CompareRequest& message);
std::string encode(const CompareReply& message);
std::string kind_of(const std::string& bytes);  // "compile_request", ...; empty where not a message
std::optional<Hello> decode_hello(const std::string& bytes);
std::optional<CompileRequest> decode_compile_request(const std::string& bytes);
std::optional<CompileReply> decode_compile_reply(const std::string& bytes);
std::optional<MeasureRequest> decode_measure_request(const std::string& bytes);
std::optional<MeasureReply> decode_measure_reply(const std::string& bytes);
std::optional<CompareRequest> decode_compare_request(const std::string& bytes);
std::optional<CompareReply> decode_compare_reply(const std::string& bytes);

}  // namespace autotune::worker
