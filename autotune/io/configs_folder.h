// All of configs/, checked: what embed_configs builds into the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "autotune/io/load.h"

namespace autotune::io {

struct SuiteText {
  std::string name;  // "gemm"
  std::string text;
};

struct Configs {
  std::vector<ArchLimits> capabilities;
  std::vector<DeviceSpec> devices;  // by cc, then name
  std::vector<search::Space> spaces;
  std::vector<SuiteText> suites;
  std::vector<TunedFile> tuned;
};

// Every *.yaml of FOLDER/gpus, spaces, suites and tuned. Besides what the parsers check: a file is
// named after its GPU's slug or its family, and a tuned file's GPU has a file of its own.
Expected<Configs> load_configs(const std::filesystem::path& folder);

}  // namespace autotune::io
