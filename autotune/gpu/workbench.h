// One GPU made ready for measuring: its context, one stream, and the project's own device kernels
// (measure.cuh). No CUDA header: tests use this too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "autotune/gpu/detect.h"
#include "autotune/gpu/memory.h"
#include "autotune/types.h"

namespace autotune::gpu {

// A matrix in device memory. Strides in elements between logical rows and columns; one of them
// is 1. DType::tf32 is stored as fp32.
struct Matrix {
  DeviceAddress address = 0;
  DType storage = DType::fp32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

// out = alpha * a * b + beta * c, accumulated in double and rounded once. `c` and the tight `out`
// are row-major and of one storage type; `c` is read where beta != 0. With an activation, out =
// activation(a * b) .* (a * up), where `up` is laid out as `b`.
struct ReferenceGemm {
  Matrix a;
  Matrix b;
  Matrix c;
  Matrix out;
  double alpha = 1;
  double beta = 0;
  DeviceAddress up = 0;
  std::optional<Activation> activation;
};

struct Comparison {
  double error_norm = 0;      // |out - ref|_F over finite pairs
  double reference_norm = 0;  // |ref|_F
  double worst_ratio = 0;     // largest error / (absolute + relative * |ref|)
  std::int64_t bad = 0;       // other than the reference, and one of the two NaN or infinite
};

// Everything runs on one stream, in order; what takes no result back does not wait.
// Errors: failed with the driver's words. After a fatal one lost() is true, and the process must
// end.
class Workbench {
 public:
  // Creates the context and compiles the kernels. no_gpu, no_compiler.
  static Expected<Workbench> create(int device_index);
  Workbench(Workbench&&) noexcept;
  Workbench& operator=(Workbench&&) noexcept;
  ~Workbench();

  const DetectedGpu& gpu() const;
  void* stream() const;
  bool lost() const;
  // Device memory that is free now.
  std::int64_t free_bytes() const;

  Expected<void> fill_bytes(DeviceAddress to, unsigned char value, std::size_t bytes);
  Expected<void> copy(DeviceAddress to, DeviceAddress from, std::size_t bytes);
  Expected<void> upload(DeviceAddress to, const void* from, std::size_t bytes);  // waits
  Expected<void> download(void* to, DeviceAddress from, std::size_t bytes);      // waits
  Expected<void> synchronize();                                                  // waits

  // scale * N(0, 1), the same for a seed whatever the strides.
  Expected<void> fill_normal(const Matrix& out, double scale, std::uint64_t seed);
  Expected<void> reference(const ReferenceGemm& gemm);
  // out = activation(gate) .* up, on `stream`: three row-major matrices of one storage type, of one
  // size, the first two of one row stride.
  Expected<void> gate(const Matrix& gate, DeviceAddress up, const Matrix& out,
                      Activation activation, void* stream);
  // Compares `out` with the tight row-major `reference` of the same storage type; with out.address
  // 0 only reference_norm is filled. Waits.
  Expected<Comparison> compare(const Matrix& out, DeviceAddress reference, double absolute,
                               double relative);
  // In how many 2-byte words two buffers of `bytes` differ. Waits.
  Expected<std::int64_t> count_differences(DeviceAddress a, DeviceAddress b, std::size_t bytes);
  // How many bytes in [first, last) of each of `rows` rows are no longer 0xff. Waits.
  Expected<std::int64_t> count_touched(DeviceAddress base, std::int64_t rows,
                                       std::int64_t row_bytes, std::int64_t first,
                                       std::int64_t last);

  // Reads twice the L2.
  Expected<void> flush();
  // The stream waits from here until release(), but at most 50 ms.
  Expected<void> hold();
  void release();

  // Turns a driver's code (CUresult) into an error and notes a fatal one.
  Expected<void> check(int result, std::string_view what);

 private:
  Expected<std::int64_t> counted();  // what a counting kernel left

  struct Impl;
  explicit Workbench(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu
