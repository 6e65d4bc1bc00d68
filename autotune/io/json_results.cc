// The documents of tune, bench, sweep, replay, best and bundle.
#include <cmath>

#include "autotune/io/json_values.h"

namespace autotune::io {
namespace {

Json json_of(const FailureJson& failure) {
  return {
      {"config", failure.config}, {"outcome", failure.outcome}, {"what", or_null(failure.what)}};
}

Json json_of(const TuneRowJson& row) {
  return {{"problem", problem_json(row.problem)},
          {"winner", or_null(row.winner)},
          {"median_us", or_null(row.median_us)},
          {"tflops", or_null(row.tflops)},
          {"trials", row.trials},
          {"failures", array_of<FailureJson>(row.failures, json_of)},
          {"seconds", row.seconds},
          {"match", or_null(row.match)},
          {"default_us", or_null(row.default_us)},
          {"lead_percent", row.lead_percent},
          {"tie", row.tie},
          {"crowned", row.crowned},
          {"cancelled", row.cancelled},
          {"reused", row.reused},
          {"compiled", row.compiled},
          {"error", or_null(row.error)}};
}

Json json_of(const BenchRowJson& row) {
  Json json = {{"family", row.problem.family},
               {"problem", problem_json(row.problem)},
               {"config", or_null(row.config)},
               {"match", or_null(row.match)},
               {"median_us", or_null(row.median_us)},
               {"median_rel_error", row.median_rel_error},
               {"tflops", or_null(row.tflops)},
               {"floor_percent", or_null(row.floor_percent)},
               {"floor_measured", row.floor_measured},
               {"rel_error", row.rel_error},
               {"baseline", nullptr},
               {"speedup", or_null(row.speedup)},
               {"speedup_ci95", nullptr},
               {"error", or_null(row.error)}};
  if (row.baseline) {
    json["baseline"] = {{"name", row.baseline->name},
                        {"median_us", row.baseline->median_us},
                        {"candidates", row.baseline->candidates}};
  }
  if (row.speedup) json["speedup_ci95"] = Json::array({row.speedup_lo, row.speedup_hi});
  return json;
}

Json json_of(const SweepRowJson& row) {
  return {{"problem", problem_json(row.problem)},
          {"file", or_null(row.file)},
          {"trials", row.trials},
          {"best", or_null(row.best)},
          {"best_us", or_null(row.best_us)},
          {"complete", row.complete},
          {"seconds", row.seconds},
          {"error", or_null(row.error)}};
}

// Null where nothing is known yet.
Json curve_json(const std::vector<double>& curve) {
  Json array = Json::array();
  for (const double value : curve) array.push_back(std::isfinite(value) ? Json(value) : Json());
  return array;
}

Json json_of(const ReplayRowJson& row) {
  return {{"problem", problem_json(row.problem)},
          {"device", row.device},
          {"strategy", row.strategy},
          {"configs", row.configs},
          {"best_us", row.best_us},
          {"default_ratio", or_null(row.default_ratio)},
          {"median", curve_json(row.median)},
          {"worst", curve_json(row.worst)},
          {"within_1", or_null(row.within_1)},
          {"within_3", or_null(row.within_3)}};
}

Json json_of(const BestRowJson& row) {
  return {{"problem", problem_json(row.problem)}, {"config", or_null(row.config)},
          {"match", or_null(row.match)},          {"from_problem", or_null(row.from_problem)},
          {"median_us", or_null(row.median_us)},  {"all_sms_us", or_null(row.all_sms_us)},
          {"error", or_null(row.error)}};
}

Json json_of(const BundleRowJson& row) {
  return {{"problem", problem_json(row.problem)}, {"config", or_null(row.config)},
          {"match", or_null(row.match)},          {"from_problem", or_null(row.from_problem)},
          {"compiler", or_null(row.compiler)},    {"compiled", row.compiled},
          {"error", or_null(row.error)}};
}

}  // namespace

std::string to_json(const TuneJson& tune) {
  return document({{"device", tune.device},
                   {"max_sms", or_null(tune.max_sms)},
                   {"rows", array_of<TuneRowJson>(tune.rows, json_of)}});
}

std::string to_json(const BenchJson& bench) {
  return document({{"device", bench.device},
                   {"max_sms", or_null(bench.max_sms)},
                   {"rows", array_of<BenchRowJson>(bench.rows, json_of)},
                   {"geomean_speedup", or_null(bench.geomean_speedup)},
                   {"min_speedup", or_null(bench.min_speedup)}});
}

std::string to_json(const SweepJson& sweep) {
  return document(
      {{"device", sweep.device}, {"rows", array_of<SweepRowJson>(sweep.rows, json_of)}});
}

std::string to_json(const ReplayJson& replay) {
  return document({{"rows", array_of<ReplayRowJson>(replay.rows, json_of)}});
}

std::string to_json(const BestJson& best) {
  Json body = device_json(best.device, best.caps);
  if (best.suite) {
    body["suite"] = *best.suite;
    body["rows"] = array_of<BestRowJson>(best.rows, json_of);
  } else {
    body.update(json_of(best.rows.at(0)));
  }
  return document(body);
}

std::string to_json(const BundleJson& bundle) {
  return document({{"file", bundle.file},
                   {"device", bundle.device},
                   {"arch", bundle.arch},
                   {"bytes", bundle.bytes},
                   {"rows", array_of<BundleRowJson>(bundle.rows, json_of)}});
}

}  // namespace autotune::io
