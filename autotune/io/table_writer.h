// Writes what configs/ holds as the C++ of builtin_tables.cc.
#pragma once

#include <string>
#include <vector>

#include "autotune/io/load.h"

namespace autotune::io {

struct SuiteText {
  std::string name;
  std::string text;
};

struct Configs {
  std::vector<ArchLimits> capabilities;
  std::vector<DeviceSpec> devices;
  std::vector<search::Space> spaces;
  std::vector<SuiteText> suites;
  std::vector<TunedFile> tuned;
};

std::string tables_source(const Configs& configs);

}  // namespace autotune::io
