#include "autotune/gpu/driver.h"

#include <fmt/core.h>

#include <array>

#include "autotune/gpu/library.h"

namespace autotune::gpu {
namespace {

// Tensor maps came with this driver API.
constexpr int kOldestDriver = 12000;

// A second level, so that cuda.h's mapping of the name happens before it becomes text.
#define AUTOTUNE_TEXT(name) #name
#define AUTOTUNE_SYMBOL(name) AUTOTUNE_TEXT(name)

struct Opened {
  Library library;
  DriverApi api;
};

// The first symbol that the library lacks; empty where it has all.
std::string resolve_all(Opened& opened) {
  std::string missing;
  auto find = [&](const char* symbol, auto*& function) {
    if (!resolve(opened.library, symbol, function) && missing.empty()) missing = symbol;
  };
#define AUTOTUNE_RESOLVE(name) find(AUTOTUNE_SYMBOL(name), opened.api.name);
  AUTOTUNE_DRIVER_FUNCTIONS(AUTOTUNE_RESOLVE)
#undef AUTOTUNE_RESOLVE
  // The second version of this one only reports more errors; drivers before 12.8 have the first.
  if (missing == AUTOTUNE_SYMBOL(cuEventElapsedTime) &&
      resolve(opened.library, "cuEventElapsedTime", opened.api.cuEventElapsedTime)) {
    missing.clear();
  }
  return missing;
}

Expected<void> initialise(Opened& opened) {
  const std::string missing = resolve_all(opened);
  int version = 0;
  if (opened.api.cuDriverGetVersion != nullptr) opened.api.cuDriverGetVersion(&version);
  if (!missing.empty() || version < kOldestDriver) {
    return fail(ErrorCode::no_gpu,
                fmt::format("the GPU driver is too old: it supports CUDA {}.{}{}, at least {}.{} "
                            "is needed; update the driver",
                            version / 1000, version % 1000 / 10,
                            missing.empty() ? "" : " and lacks " + missing, kOldestDriver / 1000,
                            kOldestDriver % 1000 / 10));
  }
  const CUresult result = opened.api.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) {
    return fail(ErrorCode::no_gpu, "the driver finds no GPU on this machine");
  }
  if (result != CUDA_SUCCESS) {
    const char* name = nullptr;
    opened.api.cuGetErrorName(result, &name);
    return fail(ErrorCode::no_gpu, fmt::format("the GPU driver does not start: {} ({})",
                                               name ? name : "unknown error", int{result}));
  }
  return {};
}

Expected<Opened> open_driver() {
  const std::array<std::string, 2> names{"libcuda.so.1", "libcuda.so"};
  auto library = Library::open(names, {}, ErrorCode::no_gpu);
  if (!library) {
    return fail(ErrorCode::no_gpu,
                fmt::format("no GPU driver on this machine: {}", library.error().message));
  }
  Opened opened{std::move(*library), {}};
  if (auto ready = initialise(opened); !ready) return tl::unexpected(ready.error());
  return opened;
}

}  // namespace

Expected<const DriverApi*> driver() {
  // Leaked on purpose: handles of other static objects may still call the driver at exit.
  static const auto* const opened = new Expected<Opened>(open_driver());
  if (!*opened) return tl::unexpected(opened->error());
  return &(*opened)->api;
}

std::string words(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (auto api = driver()) {
    (*api)->cuGetErrorName(result, &name);
    (*api)->cuGetErrorString(result, &text);
  }
  return fmt::format("{} ({}): {}", name ? name : "unknown error", int{result},
                     text ? text : "no description");
}

bool is_fatal(CUresult result) {
  switch (int{result}) {
    case 214:  // ECC: the GPU itself is not to be used any more
    case 226:
    case 700:
    case 702:
    case 710:  // a kernel's assert
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 721:
    case 911:
      return true;
    default:
      return false;
  }
}

tl::unexpected<Error> driver_failure(CUresult result, std::string_view what) {
  if (result == CUDA_ERROR_DEVICE_UNAVAILABLE) {
    return fail(ErrorCode::no_gpu,
                fmt::format("{}: the GPU is in exclusive mode and another process uses it", what));
  }
  if (result == CUDA_ERROR_ECC_UNCORRECTABLE) {
    return fail(ErrorCode::no_gpu, fmt::format("{}: uncorrectable memory error (ECC, 214); stop "
                                               "using this GPU",
                                               what));
  }
  const bool absent = result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_INVALID_DEVICE;
  return fail(absent ? ErrorCode::no_gpu : ErrorCode::failed,
              fmt::format("{}: {}", what, words(result)));
}

}  // namespace autotune::gpu
