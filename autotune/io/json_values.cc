#include "autotune/io/json_values.h"

#include "kernels/problem.h"

namespace autotune::io {

Json problem_json(const Problem& problem) {
  const DimensionNames names = dimension_names(problem.family);
  Json json = {{"family", problem.family},
               {names.m, problem.m},
               {names.n, problem.n},
               {names.k, problem.k},
               {"dtype", to_string(problem.dtype)},
               {"out_dtype", to_string(problem.out_dtype)},
               {"layout", to_string(problem.layout)},
               {"lda", problem.lda},
               {"ldb", problem.ldb},
               {"ldc", problem.ldc},
               {"alpha", problem.alpha},
               {"beta", problem.beta},
               {"mode", to_string(problem.mode)},
               {"exact_fp32", problem.exact_fp32}};
  if (has_activation(problem)) json["activation"] = to_string(problem.activation);
  return json;
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json or_null(std::int64_t value) { return value == 0 ? Json() : Json(value); }

Json or_null(double value) { return value == 0 ? Json() : Json(value); }

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json device_json(const std::string& device, const CapsJson& caps) {
  return {
      {"device", device}, {"max_sms", or_null(caps.max_sms)}, {"max_smem", or_null(caps.max_smem)}};
}

std::string document(const Json& body) {
  Json whole = {{"schema", kJsonSchema}};
  whole.update(body);
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace autotune::io
