// embed_configs CONFIGS_FOLDER OUTPUT: checks all of configs/ with the loaders that also read
// users' files, and writes it as C++ tables. Bad data fails the build with file and line.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "autotune/io/configs_folder.h"
#include "autotune/io/table_writer.h"

namespace autotune::io {
namespace {

int run(const std::filesystem::path& folder, const std::filesystem::path& output) {
  const Expected<Configs> configs = load_configs(folder);
  if (!configs) {
    fmt::print(stderr, "{}\n", configs.error().message);
    return 1;
  }
  std::filesystem::create_directories(output.parent_path());
  std::ofstream stream(output, std::ios::binary);
  stream << tables_source(*configs);
  stream.close();
  if (!stream) {
    fmt::print(stderr, "{}: cannot be written\n", output.string());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace autotune::io

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: embed_configs CONFIGS_FOLDER OUTPUT\n");
    return 2;
  }
  return autotune::io::run(argv[1], argv[2]);
}
