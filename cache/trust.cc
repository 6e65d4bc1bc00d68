#include "cache/trust.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace autotune::cache {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as the kernel follows

bool is_ours(uid_t owner) { return owner == geteuid(); }
bool is_ours_or_root(uid_t owner) { return is_ours(owner) || owner == 0; }

// Follows the path's symbolic links one by one; `resolved` becomes what they lead to.
std::string distrust_links(const fs::path& file, fs::path& resolved) {
  fs::path rest = file.relative_path();
  resolved = file.root_path();
  int links = 0;
  while (!rest.empty()) {
    const fs::path first = *rest.begin();
    fs::path after;
    for (auto part = std::next(rest.begin()); part != rest.end(); ++part) after /= *part;
    rest = after;
    if (first.empty() || first == ".") continue;
    if (first == "..") {
      resolved = resolved.parent_path();
      continue;
    }
    const fs::path here = resolved / first;
    struct stat info = {};
    if (lstat(here.c_str(), &info) != 0) return fmt::format("{} is not there", here.string());
    if (!S_ISLNK(info.st_mode)) {
      resolved = here;
      continue;
    }
    if (!is_ours_or_root(info.st_uid)) {
      return fmt::format("{} is another user's symbolic link", here.string());
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(here, error);
    if (error || ++links > kMaxLinks) return fmt::format("{} cannot be followed", here.string());
    if (target.is_absolute()) resolved = target.root_path();
    rest = target.relative_path() / rest;
  }
  return {};
}

std::string distrust_owner(const fs::path& path, bool root_may_own) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return fmt::format("{} is not there", path.string());
  if (!(root_may_own ? is_ours_or_root(info.st_uid) : is_ours(info.st_uid))) {
    return fmt::format("{} belongs to another user", path.string());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("{} can be written by others", path.string());
  }
  return {};
}

}  // namespace

std::string reason_to_distrust(const fs::path& file) {
  fs::path resolved;
  std::string reason = distrust_links(file, resolved);
  if (reason.empty()) reason = distrust_owner(resolved, false);
  if (reason.empty()) reason = distrust_owner(resolved.parent_path(), true);
  return reason;
}

}  // namespace autotune::cache
