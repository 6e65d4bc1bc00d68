// Each message's fields and their names, once, for writing and for reading. An archive is called
// with a name and a reference to the field.
#pragma once

#include "autotune/worker/messages.h"

namespace autotune::worker {

// Enumerations and how many values each has.
constexpr int count_of(DType) { return 4; }
constexpr int count_of(Layout) { return 4; }
constexpr int count_of(TimingMode) { return 2; }
constexpr int count_of(Activation) { return 4; }
constexpr int count_of(Outcome) { return kOutcomeCount; }
constexpr int count_of(Rule) { return kRuleCount; }
constexpr int count_of(ErrorCode) { return static_cast<int>(ErrorCode::failed) + 1; }

// A string that holds bytes, not text.
struct Blob {
  std::string& bytes;
};

void fields(auto& archive, Problem& x) {
  archive("family", x.family);
  archive("m", x.m);
  archive("n", x.n);
  archive("k", x.k);
  archive("dtype", x.dtype);
  archive("out_dtype", x.out_dtype);
  archive("layout", x.layout);
  archive("lda", x.lda);
  archive("ldb", x.ldb);
  archive("ldc", x.ldc);
  archive("alpha", x.alpha);
  archive("beta", x.beta);
  archive("mode", x.mode);
  archive("exact_fp32", x.exact_fp32);
  archive("activation", x.activation);
}

void fields(auto& archive, ActualResources& x) {
  archive("registers", x.registers);
  archive("static_smem_bytes", x.static_smem_bytes);
  archive("stack_bytes", x.stack_bytes);
  archive("spill_store_bytes", x.spill_store_bytes);
  archive("spill_load_bytes", x.spill_load_bytes);
  archive("barriers", x.barriers);
  archive("max_threads", x.max_threads);
  archive("cluster", x.cluster);
  archive("serialised", x.serialised);
}

void fields(auto& archive, Verdict& x) {
  archive("rule", x.rule);
  archive("required", x.required);
  archive("limit", x.limit);
  archive("constraint", x.constraint);
}

void fields(auto& archive, Measurement& x) {
  archive("median_us", x.median_us);
  archive("relative_error", x.relative_error);
  archive("samples", x.samples);
  archive("result_error", x.result_error);
  archive("max_error_ratio", x.max_error_ratio);
  archive("sm_mhz", x.sm_mhz);
  archive("throttled", x.throttled);
  archive("raced", x.raced);
}

void fields(auto& archive, MeasureOptions& x) {
  archive("relative_error", x.relative_error);
  archive("min_samples", x.min_samples);
  archive("max_samples", x.max_samples);
  archive("max_ms", x.max_ms);
  archive("behind_us", x.behind_us);
  archive("seed", x.seed);
  archive("max_sms", x.max_sms);
}

void fields(auto& archive, Hello& x) {
  archive("ok", x.ok);
  archive("what", x.what);
  archive("code", x.code);
  archive("message", x.message);
}

void fields(auto& archive, CompileRequest& x) {
  archive("id", x.id);
  archive("source", x.source);
  archive("entry", x.entry);
  archive("arch", x.arch);
  archive("definitions", x.definitions);
}

void fields(auto& archive, CompileReply& x) {
  archive("id", x.id);
  archive("outcome", x.outcome);
  archive("cubin", Blob{x.cubin});
  archive("actual", x.actual);
  archive("log", x.log);
  archive("seconds", x.seconds);
}

void fields(auto& archive, MeasureRequest& x) {
  archive("id", x.id);
  archive("problem", x.problem);
  archive("config", x.config);
  archive("cubin", Blob{x.cubin});
  archive("reference", x.reference);
  archive("reference_cubin", Blob{x.reference_cubin});
  archive("options", x.options);
}

void fields(auto& archive, MeasureReply& x) {
  archive("id", x.id);
  archive("outcome", x.outcome);
  archive("verdict", x.verdict);
  archive("measurement", x.measurement);
  archive("reference_us", x.reference_us);
  archive("log", x.log);
}

void fields(auto& archive, Contender& x) {
  archive("config", x.config);
  archive("cubin", Blob{x.cubin});
  archive("second_cubin", Blob{x.second_cubin});
}

void fields(auto& archive, CompareRequest& x) {
  archive("id", x.id);
  archive("problem", x.problem);
  archive("contenders", x.contenders);
  archive("baseline", x.baseline);
  archive("rounds", x.rounds);
  archive("most_rounds", x.most_rounds);
  archive("sustain_s", x.sustain_s);
  archive("options", x.options);
}

void fields(auto& archive, Side& x) {
  archive("outcome", x.outcome);
  archive("verdict", x.verdict);
  archive("log", x.log);
  archive("measurement", x.measurement);
  archive("ratio", x.ratio);
  archive("ratio_lo", x.ratio_lo);
  archive("ratio_hi", x.ratio_hi);
}

void fields(auto& archive, CompareReply& x) {
  archive("id", x.id);
  archive("outcome", x.outcome);
  archive("log", x.log);
  archive("sides", x.sides);
  archive("baseline", x.baseline);
  archive("baseline_candidates", x.baseline_candidates);
}

}  // namespace autotune::worker
