// The documents of plan and explain.
#include "autotune/io/json_values.h"

namespace autotune::io {
namespace {

Json json_of(const RankedJson& ranked) {
  return {{"config", ranked.config},
          {"predicted_us", ranked.predicted_us},
          {"resources",
           {{"smem_bytes", ranked.smem_bytes},
            {"threads", ranked.threads},
            {"registers", ranked.registers},
            {"blocks_per_sm", ranked.blocks_per_sm}}}};
}

Json json_of(const CompileJson& compile) {
  return {{"compiled", compile.compiled},
          {"failed", compile.failed},
          {"mismatches", compile.mismatches},
          {"seconds", compile.seconds}};
}

Json json_of(const AuditJson& audit) {
  return {{"sampled", audit.sampled},
          {"false_passes", audit.false_passes},
          {"false_rejects", audit.false_rejects}};
}

Json json_of(const PlanRowJson& row) {
  return {{"problem", problem_json(row.problem)},
          {"generated", row.generated},
          {"rejected", row.rejected},
          {"survivors", row.survivors},
          {"default_config", or_null(row.default_config)},
          {"ranked", array_of<RankedJson>(row.ranked, json_of)},
          {"compile", row.compile ? json_of(*row.compile) : Json()},
          {"audit", row.audit ? json_of(*row.audit) : Json()},
          {"error", or_null(row.error)}};
}

Json json_of(const TermJson& term) {
  return {{"label", term.label}, {"expression", term.expression}, {"value", term.value}};
}

Json json_of(const TimeTermJson& term) { return {{"label", term.label}, {"us", term.us}}; }

Json json_of(const VerdictJson& verdict) {
  return {{"rule", verdict.rule},
          {"required", verdict.required},
          {"limit", verdict.limit},
          {"text", verdict.text}};
}

}  // namespace

std::string to_json(const PlanJson& plan) {
  Json body = device_json(plan.device, plan.caps);
  if (plan.suite) {
    body["suite"] = or_null(*plan.suite);
    body["rows"] = array_of<PlanRowJson>(plan.rows, json_of);
  } else {
    body.update(json_of(plan.rows.at(0)));
  }
  return document(body);
}

namespace {

Json body_of(const ExplainJson& explain) {
  Json body = device_json(explain.device, explain.caps);
  body.update(Json({{"problem", problem_json(explain.problem)},
                    {"config", explain.config},
                    {"fits", explain.fits},
                    {"resources",
                     {{"smem_bytes", explain.smem_bytes},
                      {"static_smem_bytes", explain.static_smem_bytes},
                      {"threads", explain.threads},
                      {"registers", explain.registers},
                      {"register_demand", explain.register_demand},
                      {"barriers", explain.barriers},
                      {"cluster", explain.cluster},
                      {"blocks_per_sm", explain.blocks_per_sm},
                      {"grid", explain.grid},
                      {"cooperative", explain.cooperative},
                      {"workspace_bytes", explain.workspace_bytes}}},
                    {"terms",
                     {{"smem", array_of<TermJson>(explain.smem_terms, json_of)},
                      {"threads", array_of<TermJson>(explain.thread_terms, json_of)},
                      {"registers", array_of<TermJson>(explain.register_terms, json_of)}}},
                    {"verdicts", array_of<VerdictJson>(explain.verdicts, json_of)},
                    {"tried_instead", or_null(explain.tried_instead)},
                    {"predicted_us", or_null(explain.predicted_us)},
                    {"time_terms", array_of<TimeTermJson>(explain.time_terms, json_of)},
                    {"nearest", or_null(explain.nearest)},
                    {"nearest_predicted_us", or_null(explain.nearest_predicted_us)}}));
  return body;
}

}  // namespace

std::string to_json(const ExplainJson& explain) { return document(body_of(explain)); }

std::string to_json(const ExplainStagesJson& explain) {
  return document({{"stages", array_of<ExplainJson>(explain.stages, body_of)},
                   {"together", or_null(explain.together)}});
}

}  // namespace autotune::io
