// The tables that embed_configs writes at build time (builtin_tables.cc). Only builtin.cc reads
// them.
#pragma once

#include <vector>

#include "autotune/io/builtin.h"

namespace autotune::io::tables {

std::vector<ArchLimits> capabilities();
std::vector<DeviceSpec> devices();
std::vector<search::Space> spaces();
std::vector<BuiltinText> suites();
std::vector<BuiltinTuned> tuned();

}  // namespace autotune::io::tables
