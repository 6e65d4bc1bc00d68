// The processes that compile and the one that measures, as everything that tunes needs them.
#pragma once

#include <chrono>
#include <filesystem>

#include "autotune/worker/pool.h"

namespace autotune::tune {

struct Workers {
  worker::CompilePool pool;
  worker::MeasureWorker measurer;
};

// `executable` empty: found (worker::find_executable). `jobs` 0: one compiler per core. A request
// may keep the GPU for `measuring` beyond what others take. Errors: no_compiler, no_gpu, failed.
Expected<Workers> start_workers(const std::filesystem::path& executable, int jobs, int device_index,
                                std::chrono::milliseconds measuring = {});

}  // namespace autotune::tune
