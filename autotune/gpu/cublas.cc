#include "autotune/gpu/cublas.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "autotune/gpu/library.h"

namespace autotune::gpu {
namespace {

#define AUTOTUNE_TEXT(name) #name
#define AUTOTUNE_SYMBOL(name) AUTOTUNE_TEXT(name)

struct Opened {
  Library lt;
  Library classic;
  CublasApi api;
};

Expected<Opened> open_cublas() {
  const auto folders = cuda_library_folders();
  const std::array<std::string, 3> lt_names{"libcublasLt.so.13", "libcublasLt.so.12",
                                            "libcublasLt.so"};
  const std::array<std::string, 3> names{"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  // cuBLAS needs cuBLASLt: opened first, it is found wherever it lies.
  auto lt = Library::open(lt_names, folders, ErrorCode::failed);
  if (!lt) return tl::unexpected(lt.error());
  auto classic = Library::open(names, folders, ErrorCode::failed);
  if (!classic) return tl::unexpected(classic.error());
  Opened opened{std::move(*lt), std::move(*classic), {}};
  std::string missing;
  auto find = [&missing](const Library& library, const char* symbol, auto*& function) {
    if (!resolve(library, symbol, function)) missing = symbol;
  };
#define AUTOTUNE_RESOLVE(name) find(opened.classic, AUTOTUNE_SYMBOL(name), opened.api.name);
  AUTOTUNE_CUBLAS_FUNCTIONS(AUTOTUNE_RESOLVE)
#undef AUTOTUNE_RESOLVE
#define AUTOTUNE_RESOLVE(name) find(opened.lt, AUTOTUNE_SYMBOL(name), opened.api.name);
  AUTOTUNE_CUBLASLT_FUNCTIONS(AUTOTUNE_RESOLVE)
#undef AUTOTUNE_RESOLVE
  find(opened.classic, "cublasGemmEx", opened.api.cublasGemmEx);
  if (!missing.empty()) {
    return fail(ErrorCode::failed, fmt::format("{} lacks {}; cuBLAS 12.0 or newer is needed",
                                               opened.classic.name(), missing));
  }
  return opened;
}

}  // namespace

Expected<const CublasApi*> cublas() {
  static const auto* const opened = new Expected<Opened>(open_cublas());
  if (!*opened) {
    return fail(ErrorCode::failed, fmt::format("the cuBLAS baseline needs its libraries: {}; set "
                                               "AUTOTUNE_CUDA to the folder that holds them",
                                               opened->error().message));
  }
  return &(*opened)->api;
}

}  // namespace autotune::gpu
