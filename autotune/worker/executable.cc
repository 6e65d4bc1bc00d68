// Where the executable is that workers run.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "autotune/worker/pool.h"

namespace autotune::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "autotune";

bool runs(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

Expected<fs::path> named(const fs::path& path, const char* by) {
  if (runs(path)) return path;
  return fail(ErrorCode::bad_input,
              fmt::format("{} names {}, which is not an executable file; name "
                          "the autotune executable",
                          by, path.string()));
}

// The folder of the library that this code was linked into, or of the program itself.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_executable), &info) == 0 || !info.dli_fname) {
    return {};
  }
  return fs::path(info.dli_fname).parent_path();
}

fs::path from_search_path() {
  const char* list = std::getenv("PATH");
  std::string_view rest = list ? list : "";
  while (!rest.empty()) {
    const auto end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / kName;
    if (candidate.is_absolute() && runs(candidate)) return candidate;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return {};
}

}  // namespace

Expected<fs::path> find_executable(const fs::path& option) {
  if (!option.empty()) return named(option, "the worker option");
  const char* variable = std::getenv("AUTOTUNE_WORKER");
  if (variable && *variable) return named(variable, "AUTOTUNE_WORKER");
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (self.filename() == kName && runs(self)) return self;
  const fs::path folder = own_folder();
  for (const char* beside : {".", "bin", "../bin", "../../bin"}) {
    const fs::path candidate = folder / beside / kName;
    if (!folder.empty() && runs(candidate)) return candidate.lexically_normal();
  }
  if (const fs::path found = from_search_path(); !found.empty()) return found;
  return fail(ErrorCode::failed,
              "the autotune executable, which compile and measuring workers run, is neither beside "
              "this program nor in PATH; set AUTOTUNE_WORKER to it");
}

}  // namespace autotune::worker
