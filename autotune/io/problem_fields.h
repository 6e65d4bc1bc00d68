// What a problem is made of besides its dimensions, as keys of a YAML map; for suites and tuned
// files alike.
#pragma once

#include <string>

#include "autotune/io/yaml_map.h"
#include "kernels/kernel.h"

namespace autotune::io {

// The family under the key `family`; null after a mistake, which finish() then reports with the
// families that are known.
const Family* read_family(YamlMap& map);

// Reads the keys that are there over what `problem` holds: dtype, layout, out_dtype, mode,
// exact_fp32, activation. Returns whether out_dtype is among them.
bool read_types(YamlMap& map, Problem& problem);

// read_types() and alpha, beta, lda, ldb, ldc.
bool read_fields(YamlMap& map, Problem& problem);

// checked(), its error placed at the map.
Expected<Problem> checked_at(const YamlMap& map, const Problem& problem);

}  // namespace autotune::io
