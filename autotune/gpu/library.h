// A shared library opened at run time. Every CUDA library is reached this way, so that one program
// runs with and without them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "autotune/types.h"

namespace autotune::gpu {

// Owner of a dlopen handle. Move-only.
class Library {
 public:
  Library() = default;
  // The first that opens of: each name in the loader's own path, then each name in each folder.
  // Returns no_compiler / no_gpu / failed as `code` with the loader's words when none does.
  static Expected<Library> open(std::span<const std::string> names,
                                std::span<const std::filesystem::path> folders, ErrorCode code);

  Library(Library&& other) noexcept;
  Library& operator=(Library&& other) noexcept;
  ~Library();

  // Address of a symbol; nullptr where the library has none of that name.
  void* symbol(const char* name) const;
  // The file that was opened; a bare name where the loader's path found it.
  const std::string& name() const { return name_; }

 private:
  Library(void* handle, std::string name);
  void* handle_ = nullptr;
  std::string name_;
};

// Sets `function` to the symbol's address; false where the library lacks it.
template <class Function>
bool resolve(const Library& library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(library.symbol(name));
  return function != nullptr;
}

// Where CUDA's user libraries may be besides the loader's path, most specific first:
// $AUTOTUNE_CUDA, beside this executable and up to three folders above it (cuda/lib,
// build/cuda/lib), $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. Only folders that exist.
std::vector<std::filesystem::path> cuda_library_folders();

}  // namespace autotune::gpu
