// Loading by the name of what is built in. Apart from the parsers, for the tool that makes the
// built-in tables links the parsers alone.
#include <fmt/format.h>

#include "autotune/io/builtin.h"
#include "autotune/io/load.h"

namespace autotune::io {
namespace {

bool names_a_file(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml");
}

}  // namespace

Expected<Suite> load_suite(const std::string& name_or_file, const SuiteOverrides& overrides) {
  if (names_a_file(name_or_file)) {
    const Expected<std::string> text = read_file(name_or_file);
    if (!text) return tl::unexpected(text.error());
    return parse_suite(*text, name_or_file, overrides);
  }
  std::string known;
  for (const BuiltinText& suite : suite_texts()) {
    if (suite.name == name_or_file) {
      return parse_suite(suite.text, fmt::format("configs/suites/{}.yaml", suite.name), overrides);
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", suite.name);
  }
  return fail(ErrorCode::bad_input,
              fmt::format("'{}' is not a built-in suite; built in: {}; a file's name contains '/' "
                          "or ends in .yaml",
                          name_or_file, known));
}

Expected<DeviceSpec> load_gpu(const std::filesystem::path& file) {
  const Expected<std::string> text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  const auto capabilities = known_capabilities();
  return parse_gpu(*text, file.string(), {capabilities.begin(), capabilities.end()});
}

}  // namespace autotune::io
