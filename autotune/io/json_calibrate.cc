// The document of calibrate.
#include "autotune/io/device_fields.h"
#include "autotune/io/json_values.h"

namespace autotune::io {

std::string to_json(const CalibrateJson& result) {
  Json errors = Json::array();
  for (const ModelErrorJson& row : result.errors) {
    errors.push_back({{"of", row.of},
                      {"trials", row.trials},
                      {"median", row.median},
                      {"p90", row.p90},
                      {"first_choice", row.first_choice}});
  }
  Json model = Json::object();
  visit_model(result.model, [&model](std::string_view name, double value, double, double) {
    model[std::string(name)] = value;
  });
  return document({{"device", result.device},
                   {"problems", result.problems},
                   {"trials", result.trials},
                   {"read", result.read},
                   {"errors", errors},
                   {"model", model}});
}

}  // namespace autotune::io
