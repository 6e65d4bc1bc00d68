#include "autotune/gpu/workbench.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>

#include "autotune/gpu/handles.h"
#include "autotune/gpu/nvrtc.h"
#include "kernels/device_source.h"

namespace autotune::embedded {
extern const DeviceSource measure_source;
}

namespace autotune::gpu {
namespace {

constexpr std::uint64_t kHoldLimitNs = 50'000'000;
constexpr unsigned char kFlushByte = 0x5a;  // equal words XOR to zero: see flush_l2
constexpr std::int64_t kReferenceTile = 64;

// The layout of ReferenceArgs and Comparison in measure.cuh.
struct ReferenceArgs {
  std::uint64_t a, b, up, c, out;
  std::int64_t a_row_stride, a_column_stride, b_row_stride, b_column_stride, c_row_stride;
  std::int64_t m, n, k;
  double alpha, beta;
  std::int32_t in_storage, out_storage, activation;
};
struct ComparisonSums {
  double error_squares, reference_squares;
  std::uint64_t bad;
  std::uint32_t worst_bits, padding;
};

std::int32_t storage_code(DType dtype) {
  if (dtype == DType::bf16) return 0;
  return dtype == DType::fp16 ? 1 : 2;
}

struct Tools {
  CUfunction fill_normal, flush_l2, hold_stream, reference_gemm, compare, count_differences,
      count_touched, gate_products;
};

Expected<Tools> find_tools(const Module& module) {
  Tools tools{};
  const std::array<std::pair<CUfunction*, const char*>, 8> wanted{{
      {&tools.fill_normal, "fill_normal"},
      {&tools.flush_l2, "flush_l2"},
      {&tools.hold_stream, "hold_stream"},
      {&tools.reference_gemm, "reference_gemm"},
      {&tools.compare, "compare"},
      {&tools.count_differences, "count_differences"},
      {&tools.count_touched, "count_touched"},
      {&tools.gate_products, "gate_products"},
  }};
  for (const auto& [function, name] : wanted) {
    auto found = function_of(module, name);
    if (!found) return tl::unexpected(found.error());
    *function = *found;
  }
  return tools;
}

Expected<Module> compile_tools(const std::string& arch) {
  auto compiler = nvrtc();
  if (!compiler) return tl::unexpected(compiler.error());
  const CompiledCode code =
      (*compiler)->compile({embedded::measure_source.text, "reference_gemm", arch, {}});
  if (!code.ok) {
    return fail(ErrorCode::no_compiler,
                fmt::format("{} does not compile the measuring kernels for {}: {}",
                            (*compiler)->version(), arch, code.log));
  }
  return load_module(code.cubin.data());
}

}  // namespace

// Members are destroyed last to first: the context goes after everything that lives in it.
struct Workbench::Impl {
  const DriverApi* api = nullptr;
  DetectedGpu gpu;
  Context context;
  Module module;
  Tools tools{};
  Stream stream;
  DeviceMemory flush_data;
  DeviceMemory result;  // a ComparisonSums, a counter or the flush's sink
  HostBuffer flag;
  CUdeviceptr flag_address = 0;
  std::uint32_t ticket = 0;
  bool lost = false;

  template <class... Arguments>
  CUresult launch(CUfunction function, std::int64_t blocks, unsigned threads,
                  Arguments... arguments) const {
    return launch_on(stream.get(), function, blocks, threads, arguments...);
  }
  template <class... Arguments>
  CUresult launch_on(CUstream on, CUfunction function, std::int64_t blocks, unsigned threads,
                     Arguments... arguments) const {
    std::array<void*, sizeof...(Arguments)> pointers{static_cast<void*>(&arguments)...};
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(blocks);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = on;
    return api->cuLaunchKernelEx(&config, function, pointers.data(), nullptr);
  }
  // Blocks that fill the GPU a few times over, for the kernels that stride over any size.
  std::int64_t many_blocks() const { return std::int64_t{gpu.spec.sm_count} * 8; }
};

Workbench::Workbench(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Workbench::Workbench(Workbench&&) noexcept = default;
Workbench& Workbench::operator=(Workbench&&) noexcept = default;
Workbench::~Workbench() = default;

Expected<Workbench> Workbench::create(int device_index) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  auto gpu = detect_gpu(device_index);
  if (!gpu) return tl::unexpected(gpu.error());
  auto context = Context::create(device_index);
  if (!context) return tl::unexpected(context.error());
  auto module = compile_tools(gpu->spec.limits.arch);
  if (!module) return tl::unexpected(module.error());
  auto tools = find_tools(*module);
  if (!tools) return tl::unexpected(tools.error());
  auto stream = create_stream();
  if (!stream) return tl::unexpected(stream.error());
  auto flush_data = DeviceMemory::allocate(2 * static_cast<std::size_t>(gpu->spec.l2_bytes));
  if (!flush_data) return tl::unexpected(flush_data.error());
  auto result = DeviceMemory::allocate(sizeof(ComparisonSums));
  if (!result) return tl::unexpected(result.error());

  auto impl = std::make_unique<Impl>();
  impl->api = *api;
  impl->gpu = std::move(*gpu);
  impl->context = std::move(*context);
  impl->module = std::move(*module);
  impl->tools = *tools;
  impl->stream = std::move(*stream);
  impl->flush_data = std::move(*flush_data);
  impl->result = std::move(*result);
  void* host = nullptr;
  CUresult code = (*api)->cuMemHostAlloc(&host, sizeof(std::uint32_t), CU_MEMHOSTALLOC_DEVICEMAP);
  if (code != CUDA_SUCCESS) return driver_failure(code, "cannot allocate pinned memory");
  impl->flag = HostBuffer(host);
  *static_cast<std::uint32_t*>(host) = 0;
  code = (*api)->cuMemHostGetDevicePointer(&impl->flag_address, host, 0);
  if (code != CUDA_SUCCESS) return driver_failure(code, "cannot map pinned memory");

  Workbench bench(std::move(impl));
  const DeviceMemory& data = bench.impl_->flush_data;
  auto ready = bench.fill_bytes(data.address(), kFlushByte, data.bytes());
  // A first launch loads the kernel's code, which must not happen behind a held stream.
  if (ready) ready = bench.flush();
  if (ready) ready = bench.hold();
  bench.release();
  if (ready) ready = bench.synchronize();
  if (!ready) return tl::unexpected(ready.error());
  return bench;
}

const DetectedGpu& Workbench::gpu() const { return impl_->gpu; }
void* Workbench::stream() const { return impl_->stream.get(); }
bool Workbench::lost() const { return impl_->lost; }

std::int64_t Workbench::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  if (impl_->api->cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return 0;
  return static_cast<std::int64_t>(free);
}

Expected<void> Workbench::check(int result, std::string_view what) {
  const auto code = static_cast<CUresult>(result);
  if (code == CUDA_SUCCESS) return {};
  if (is_fatal(code)) impl_->lost = true;
  return driver_failure(code, what);
}

Expected<void> Workbench::fill_bytes(DeviceAddress to, unsigned char value, std::size_t bytes) {
  return check(impl_->api->cuMemsetD8Async(to, value, bytes, impl_->stream.get()),
               "cannot fill device memory");
}

Expected<void> Workbench::copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) {
  return check(impl_->api->cuMemcpyDtoDAsync(to, from, bytes, impl_->stream.get()),
               "cannot copy device memory");
}

Expected<void> Workbench::upload(DeviceAddress to, const void* from, std::size_t bytes) {
  if (auto done = synchronize(); !done) return done;
  auto done = check(impl_->api->cuMemcpyHtoD(to, from, bytes), "cannot copy to the GPU");
  // The call may return once the bytes are staged, and our stream does not wait for the default
  // one.
  if (done) done = check(impl_->api->cuStreamSynchronize(nullptr), "cannot copy to the GPU");
  return done;
}

Expected<void> Workbench::download(void* to, DeviceAddress from, std::size_t bytes) {
  if (auto done = synchronize(); !done) return done;
  return check(impl_->api->cuMemcpyDtoH(to, from, bytes), "cannot copy from the GPU");
}

Expected<void> Workbench::synchronize() {
  return check(impl_->api->cuStreamSynchronize(impl_->stream.get()), "the GPU reports a fault");
}

Expected<void> Workbench::fill_normal(const Matrix& out, double scale, std::uint64_t seed) {
  return check(impl_->launch(impl_->tools.fill_normal, impl_->many_blocks(), 256, out.address,
                             out.rows, out.columns, out.row_stride, out.column_stride,
                             storage_code(out.storage), static_cast<float>(scale), seed),
               "cannot make inputs");
}

Expected<void> Workbench::reference(const ReferenceGemm& gemm) {
  const std::int64_t tiles_m = (gemm.out.rows + kReferenceTile - 1) / kReferenceTile;
  const std::int64_t tiles_n = (gemm.out.columns + kReferenceTile - 1) / kReferenceTile;
  const ReferenceArgs arguments{gemm.a.address,
                                gemm.b.address,
                                gemm.up,
                                gemm.c.address,
                                gemm.out.address,
                                gemm.a.row_stride,
                                gemm.a.column_stride,
                                gemm.b.row_stride,
                                gemm.b.column_stride,
                                gemm.c.row_stride,
                                gemm.out.rows,
                                gemm.out.columns,
                                gemm.a.columns,
                                gemm.alpha,
                                gemm.beta,
                                storage_code(gemm.a.storage),
                                storage_code(gemm.out.storage),
                                gemm.activation ? static_cast<std::int32_t>(*gemm.activation) : -1};
  return check(impl_->launch(impl_->tools.reference_gemm, tiles_m * tiles_n, 256, arguments),
               "cannot compute the reference");
}

Expected<void> Workbench::gate(const Matrix& gate, DeviceAddress up, const Matrix& out,
                               Activation activation, void* stream) {
  const auto piece = [](DeviceAddress address) { return address % 16 == 0; };
  const std::int64_t each = out.storage == DType::bf16 || out.storage == DType::fp16 ? 8 : 4;
  const bool wide = piece(gate.address) && piece(up) && piece(out.address) &&
                    out.columns % each == 0 && gate.row_stride % each == 0 &&
                    out.row_stride % each == 0;
  return check(
      impl_->launch_on(static_cast<CUstream>(stream), impl_->tools.gate_products,
                       impl_->many_blocks(), 256, gate.address, up, out.address, out.rows,
                       out.columns, gate.row_stride, out.row_stride, storage_code(out.storage),
                       static_cast<std::int32_t>(activation), static_cast<std::int32_t>(wide)),
      "cannot gate two products");
}

Expected<Comparison> Workbench::compare(const Matrix& out, DeviceAddress reference, double absolute,
                                        double relative) {
  const DeviceAddress result = impl_->result.address();
  ComparisonSums sums{};
  auto done = fill_bytes(result, 0, sizeof(sums));
  if (done) {
    done =
        check(impl_->launch(impl_->tools.compare, impl_->many_blocks(), 256, out.address, reference,
                            out.rows, out.columns, out.row_stride, storage_code(out.storage),
                            static_cast<float>(absolute), static_cast<float>(relative), result),
              "cannot compare with the reference");
  }
  if (done) done = download(&sums, result, sizeof(sums));
  if (!done) return tl::unexpected(done.error());
  return Comparison{std::sqrt(sums.error_squares), std::sqrt(sums.reference_squares),
                    std::bit_cast<float>(sums.worst_bits), static_cast<std::int64_t>(sums.bad)};
}

Expected<std::int64_t> Workbench::count_differences(DeviceAddress a, DeviceAddress b,
                                                    std::size_t bytes) {
  const DeviceAddress result = impl_->result.address();
  auto done = fill_bytes(result, 0, sizeof(std::uint64_t));
  if (done) {
    done = check(impl_->launch(impl_->tools.count_differences, impl_->many_blocks(), 256, a, b,
                               std::uint64_t{bytes / 2}, result),
                 "cannot compare two buffers");
  }
  return done ? counted() : tl::unexpected(done.error());
}

Expected<std::int64_t> Workbench::count_touched(DeviceAddress base, std::int64_t rows,
                                                std::int64_t row_bytes, std::int64_t first,
                                                std::int64_t last) {
  if (rows <= 0 || last <= first) return 0;
  const DeviceAddress result = impl_->result.address();
  auto done = fill_bytes(result, 0, sizeof(std::uint64_t));
  if (done) {
    done = check(impl_->launch(impl_->tools.count_touched, impl_->many_blocks(), 256, base, rows,
                               row_bytes, first, last, result),
                 "cannot check the guard bands");
  }
  return done ? counted() : tl::unexpected(done.error());
}

Expected<std::int64_t> Workbench::counted() {
  std::uint64_t count = 0;
  const auto done = download(&count, impl_->result.address(), sizeof(count));
  if (!done) return tl::unexpected(done.error());
  return static_cast<std::int64_t>(count);
}

Expected<void> Workbench::flush() {
  const std::uint64_t words = impl_->flush_data.bytes() / 16;
  return check(impl_->launch(impl_->tools.flush_l2, impl_->many_blocks(), 512,
                             impl_->flush_data.address(), words, impl_->result.address()),
               "cannot flush the L2");
}

Expected<void> Workbench::hold() {
  return check(impl_->launch(impl_->tools.hold_stream, 1, 1, impl_->flag_address, ++impl_->ticket,
                             kHoldLimitNs),
               "cannot hold the stream");
}

void Workbench::release() {
  std::atomic_ref<std::uint32_t> flag(*static_cast<std::uint32_t*>(impl_->flag.get()));
  flag.store(impl_->ticket, std::memory_order_release);
}

}  // namespace autotune::gpu
