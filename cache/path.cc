#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "cache/store.h"

namespace autotune::cache {
namespace {

namespace fs = std::filesystem;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

// The home folder of the account, for processes that run without HOME (services, containers).
fs::path account_home() {
  std::vector<char> buffer(16384);
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  return found == nullptr || found->pw_dir == nullptr ? fs::path{} : fs::path{found->pw_dir};
}

}  // namespace

Expected<fs::path> default_path() {
  if (const auto file = variable("AUTOTUNE_CACHE"); !file.empty()) return fs::path{file};
  // Relative folders are to be ignored, says the XDG base directory specification.
  const fs::path caches{variable("XDG_CACHE_HOME")};
  if (caches.is_absolute()) return caches / "autotune" / "cache.db";
  fs::path home{variable("HOME")};
  if (!home.is_absolute()) home = account_home();
  if (home.is_absolute()) return home / ".cache" / "autotune" / "cache.db";
  return fail(ErrorCode::bad_input,
              "there is no place for the cache: neither AUTOTUNE_CACHE, XDG_CACHE_HOME nor HOME is "
              "set and this account has no home folder; give a file (--cache)");
}

}  // namespace autotune::cache
