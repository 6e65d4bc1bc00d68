#include "autotune/gpu/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <system_error>

namespace autotune::gpu {
namespace {

namespace fs = std::filesystem;

void add_folder(std::vector<fs::path>& folders, const fs::path& folder) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) folders.push_back(folder);
}

void add_toolkit(std::vector<fs::path>& folders, const fs::path& root) {
  add_folder(folders, root / "lib64");
  add_folder(folders, root / "lib");
}

// A variable that is set to nothing is not set: "/lib64" of it would be looked for from here.
fs::path folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fs::path{} : fs::path{value};
}

}  // namespace

Library::Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

Library::Library(Library&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

Library& Library::operator=(Library&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

Expected<Library> Library::open(std::span<const std::string> names,
                                std::span<const fs::path> folders, ErrorCode code) {
  std::string reason;
  auto attempt = [&reason](const std::string& name) -> void* {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    // The refusal of a file that is there says more than "no such file".
    const char* words = handle == nullptr ? dlerror() : nullptr;
    if (words != nullptr && (reason.empty() || name.find('/') != std::string::npos)) reason = words;
    return handle;
  };
  for (const std::string& name : names) {
    if (void* handle = attempt(name)) return Library(handle, name);
  }
  for (const fs::path& folder : folders) {
    for (const std::string& name : names) {
      std::error_code ignored;
      const fs::path file = folder / name;
      if (!fs::exists(file, ignored)) continue;
      if (void* handle = attempt(file.string())) return Library(handle, file.string());
    }
  }
  return fail(code, fmt::format("cannot open {}: {}", names.front(), reason));
}

void* Library::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::vector<fs::path> cuda_library_folders() {
  std::vector<fs::path> folders;
  if (const fs::path own = folder_in("AUTOTUNE_CUDA"); !own.empty()) {
    add_folder(folders, own);
    add_toolkit(folders, own);
  }
  std::error_code ignored;
  fs::path above = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  add_folder(folders, above);
  for (int level = 0; level < 4 && above.has_relative_path(); ++level) {
    add_toolkit(folders, above / "cuda");
    add_toolkit(folders, above / "build" / "cuda");
    above = above.parent_path();
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const fs::path root = folder_in(variable); !root.empty()) add_toolkit(folders, root);
  }
  add_toolkit(folders, "/usr/local/cuda");
  return folders;
}

}  // namespace autotune::gpu
