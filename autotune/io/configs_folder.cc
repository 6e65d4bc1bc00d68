#include "autotune/io/configs_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autotune/io/yaml_node.h"

namespace autotune::io {
namespace {

struct File {
  std::string name;    // "gemm"
  std::string origin;  // "configs/suites/gemm.yaml"
  std::string text;
};

Expected<std::vector<File>> read_folder(const std::filesystem::path& configs,
                                        const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(configs / folder, error)) {
    if (entry.path().extension() != ".yaml") continue;
    const Expected<std::string> text = read_file(entry.path());
    if (!text) return tl::unexpected(text.error());
    const std::string name = entry.path().stem().string();
    files.push_back({name, fmt::format("configs/{}/{}.yaml", folder, name), *text});
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  return files;
}

Expected<void> check_file_name(const File& file, const std::string& device) {
  if (slug_of(device) == file.name) return {};
  return tl::unexpected(
      error_at(file.origin, 1,
               fmt::format("the file of {} must be named {}.yaml", device, slug_of(device))));
}

Expected<void> load_gpus(const std::filesystem::path& folder, Configs& configs) {
  const auto files = read_folder(folder, "gpus");
  if (!files) return tl::unexpected(files.error());
  const std::string table = "compute_capabilities";
  for (const File& file : *files) {
    if (file.name != table) continue;
    auto capabilities = parse_compute_capabilities(file.text, file.origin);
    if (!capabilities) return tl::unexpected(capabilities.error());
    configs.capabilities = *std::move(capabilities);
  }
  for (const File& file : *files) {
    if (file.name == table) continue;
    auto device = parse_gpu(file.text, file.origin, configs.capabilities);
    if (!device) return tl::unexpected(device.error());
    if (const auto named = check_file_name(file, device->name); !named) return named;
    configs.devices.push_back(*std::move(device));
  }
  std::sort(configs.devices.begin(), configs.devices.end(),
            [](const DeviceSpec& a, const DeviceSpec& b) {
              return std::pair(a.limits.cc, a.name) < std::pair(b.limits.cc, b.name);
            });
  return {};
}

Expected<void> load_spaces(const std::filesystem::path& folder, Configs& configs) {
  const auto files = read_folder(folder, "spaces");
  if (!files) return tl::unexpected(files.error());
  for (const File& file : *files) {
    auto space = parse_space(file.text, file.origin);
    if (!space) return tl::unexpected(space.error());
    if (space->family != file.name) {
      return tl::unexpected(error_at(
          file.origin, 1, fmt::format("the space of {0} must be named {0}.yaml", space->family)));
    }
    configs.spaces.push_back(*std::move(space));
  }
  return {};
}

// A suite may stand here before its family does: then only its YAML is checked, and loading it is
// an error that names the families there are.
bool family_is_known(const YamlNode& root) {
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text == "family") return find_family(root.items[i].text) != nullptr;
  }
  return true;  // the parser says what is missing
}

Expected<void> load_suites(const std::filesystem::path& folder, Configs& configs) {
  const auto files = read_folder(folder, "suites");
  if (!files) return tl::unexpected(files.error());
  for (const File& file : *files) {
    const auto root = parse_yaml(file.text, file.origin);
    if (!root) return tl::unexpected(root.error());
    if (family_is_known(*root)) {
      const auto suite = parse_suite(file.text, file.origin, {});
      if (!suite) return tl::unexpected(suite.error());
    }
    configs.suites.push_back({file.name, file.text});
  }
  return {};
}

Expected<void> load_tuned(const std::filesystem::path& folder, Configs& configs) {
  const auto files = read_folder(folder, "tuned");
  if (!files) return tl::unexpected(files.error());
  for (const File& file : *files) {
    auto tuned = parse_tuned(file.text, file.origin);
    if (!tuned) return tl::unexpected(tuned.error());
    if (const auto named = check_file_name(file, tuned->device); !named) return named;
    const bool known =
        std::any_of(configs.devices.begin(), configs.devices.end(),
                    [&](const DeviceSpec& device) { return device.name == tuned->device; });
    if (!known) {
      return tl::unexpected(error_at(
          file.origin, 1, fmt::format("{} has no file in configs/gpus", in_quotes(tuned->device))));
    }
    configs.tuned.push_back(*std::move(tuned));
  }
  return {};
}

}  // namespace

Expected<Configs> load_configs(const std::filesystem::path& folder) {
  Configs configs;
  for (const auto load : {load_gpus, load_spaces, load_suites, load_tuned}) {
    if (const auto done = load(folder, configs); !done) return tl::unexpected(done.error());
  }
  if (configs.capabilities.empty() || configs.devices.empty() || configs.spaces.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: expected gpus/compute_capabilities.yaml, GPUs and spaces",
                            folder.string()));
  }
  return configs;
}

}  // namespace autotune::io
