#include "autotune/gpu/nvrtc.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <nvrtc.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "autotune/gpu/cubin.h"
#include "autotune/gpu/library.h"
#include "kernels/compiler_options.h"

namespace autotune::gpu {

namespace fs = std::filesystem;

#define AUTOTUNE_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                   \
  X(nvrtcGetErrorString)            \
  X(nvrtcCreateProgram)             \
  X(nvrtcDestroyProgram)            \
  X(nvrtcCompileProgram)            \
  X(nvrtcGetProgramLogSize)         \
  X(nvrtcGetProgramLog)             \
  X(nvrtcGetCUBINSize)              \
  X(nvrtcGetCUBIN)                  \
  X(nvrtcGetPTXSize)                \
  X(nvrtcGetPTX)

struct Nvrtc::Api {
  Library library;
#define AUTOTUNE_DECLARE(name) decltype(&::name) name = nullptr;
  AUTOTUNE_NVRTC_FUNCTIONS(AUTOTUNE_DECLARE)
#undef AUTOTUNE_DECLARE
};

namespace {

// NVRTC opens its builtins by bare name, which fails where it lies outside the loader's path. Once
// they are loaded under that name, its own attempt finds them.
void preload_builtins(const fs::path& folder) {
  std::error_code ignored;
  fs::directory_iterator entry(folder, ignored);
  for (; entry != fs::directory_iterator(); entry.increment(ignored)) {
    const fs::path& file = entry->path();
    if (file.filename().string().starts_with("libnvrtc-builtins.so")) {
      dlopen(file.c_str(), RTLD_NOW);
    }
  }
}

Expected<Library> open_library() {
  const std::array<std::string, 3> names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::error_code ignored;
  const char* own = std::getenv("AUTOTUNE_NVRTC");
  if (own != nullptr && *own != '\0') {
    if (!fs::is_directory(own, ignored)) {
      preload_builtins(fs::path(own).parent_path());
      const std::array<std::string, 1> exactly{own};
      return Library::open(exactly, {}, ErrorCode::no_compiler);
    }
    std::array<std::string, 3> inside = names;
    for (std::string& name : inside) name = (fs::path(own) / name).string();
    preload_builtins(own);
    return Library::open(inside, {}, ErrorCode::no_compiler);
  }
  if (auto found = Library::open(names, {}, ErrorCode::no_compiler)) return found;
  const std::vector<fs::path> folders = cuda_library_folders();
  for (const fs::path& folder : folders) preload_builtins(folder);
  return Library::open(names, folders, ErrorCode::no_compiler);
}

Expected<Nvrtc> open_nvrtc() {
  auto library = open_library();
  if (!library) {
    return fail(ErrorCode::no_compiler,
                fmt::format("NVRTC is needed to compile kernels: {}; set AUTOTUNE_NVRTC to "
                            "libnvrtc.so or its folder",
                            library.error().message));
  }
  // Leaked on purpose, like the driver's table: compiling threads may outlive static objects.
  auto* api = new Nvrtc::Api{std::move(*library)};
#define AUTOTUNE_RESOLVE(function)                                                           \
  if (!resolve(api->library, #function, api->function)) {                                    \
    return fail(ErrorCode::no_compiler,                                                      \
                fmt::format("{} is too old: it lacks " #function "; NVRTC 12.0 or newer is " \
                            "needed",                                                        \
                            api->library.name()));                                           \
  }
  AUTOTUNE_NVRTC_FUNCTIONS(AUTOTUNE_RESOLVE)
#undef AUTOTUNE_RESOLVE
  int major = 0;
  int minor = 0;
  api->nvrtcVersion(&major, &minor);
  return Nvrtc(api, fmt::format("nvrtc {}.{}", major, minor));
}

constexpr std::string_view kReal = "sm_";  // how the name of an architecture begins
bool is_real(std::string_view arch) { return arch.starts_with(kReal); }

std::vector<std::string> options_for(const SourceCode& source) {
  std::vector<std::string> options{fmt::format("--gpu-architecture={}", source.arch)};
  // The report of ptxas costs nothing and changes no code.
  if (is_real(source.arch)) options.push_back("--ptxas-options=-v");
  if (source.plainly) options.push_back(fmt::format("--ptxas-options={}", kPlainLevel));
  options.insert(options.end(), std::begin(kCompilerOptions), std::end(kCompilerOptions));
  for (const auto& [name, value] : source.definitions) {
    options.push_back(fmt::format("-D{}={}", name, value));
  }
  return options;
}

std::string log_of(const Nvrtc::Api& api, nvrtcProgram program) {
  std::size_t size = 0;
  if (api.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1) return {};
  std::string log(size, '\0');
  api.nvrtcGetProgramLog(program, log.data());
  log.resize(size - 1);  // the size counts the terminating zero
  return log;
}

// One source through the compiler.
class Program {
 public:
  Program(const Nvrtc::Api& api, const SourceCode& source) : api_(api) {
    const std::string text(source.text);
    result_ = api_.nvrtcCreateProgram(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    if (result_ != NVRTC_SUCCESS) return;
    const std::vector<std::string> options = options_for(source);
    std::vector<const char*> raw;
    for (const std::string& option : options) raw.push_back(option.c_str());
    result_ = api_.nvrtcCompileProgram(program_, static_cast<int>(raw.size()), raw.data());
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) api_.nvrtcDestroyProgram(&program_);
  }

  bool ok() const { return result_ == NVRTC_SUCCESS; }
  nvrtcProgram handle() const { return program_; }

  std::string log() const {
    std::string log = program_ == nullptr ? std::string() : log_of(api_, program_);
    if (ok()) return log;
    // ptxas' own errors are not in the log: the code is then all there is.
    log += log.empty() ? "" : "\n";
    return log + api_.nvrtcGetErrorString(result_);
  }

 private:
  const Nvrtc::Api& api_;
  nvrtcProgram program_ = nullptr;
  nvrtcResult result_;
};

// Fills cubin and actual; leaves ok false and a reason in the log where that fails.
void take_cubin(const Nvrtc::Api& api, nvrtcProgram program, std::string_view entry,
                CompiledCode& out) {
  std::size_t size = 0;
  if (api.nvrtcGetCUBINSize(program, &size) != NVRTC_SUCCESS || size == 0) {
    out.log += "\nno cubin came out: the architecture must be a real one (sm_XX)";
    return;
  }
  out.cubin.resize(size);
  api.nvrtcGetCUBIN(program, out.cubin.data());
  auto actual = read_cubin(out.cubin, entry);
  if (!actual) {
    out.log += "\n" + actual.error().message;
    out.cubin.clear();
    return;
  }
  out.actual = *actual;
  add_compiler_report(out.log, entry, out.actual);
  out.ok = true;
}

}  // namespace

Nvrtc::Nvrtc(const Api* api, std::string version) : api_(api), version_(std::move(version)) {}

CompiledCode Nvrtc::compile(const SourceCode& source) const {
  const auto start = std::chrono::steady_clock::now();
  CompiledCode out;
  out.plainly = source.plainly;
  const Program program(*api_, source);
  out.log = program.log();
  if (program.ok()) take_cubin(*api_, program.handle(), source.entry, out);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

CompiledCode Nvrtc::compile_unchecked(SourceCode source) const {
  CompiledCode code = compile(source);
  if (!code.ok || !code.actual.spills()) return code;
  source.plainly = true;
  CompiledCode again = compile(source);
  return again.ok ? again : code;
}

Expected<std::string> Nvrtc::ptx(SourceCode source) const {
  const std::string arch = fmt::format("compute_{}", source.arch.substr(kReal.size()));
  source.arch = arch;
  const Program program(*api_, source);
  std::size_t size = 0;
  if (!program.ok() || api_->nvrtcGetPTXSize(program.handle(), &size) != NVRTC_SUCCESS) {
    return fail(ErrorCode::failed, program.log());
  }
  std::string text(size, '\0');
  api_->nvrtcGetPTX(program.handle(), text.data());
  text.resize(size - 1);  // the size counts the terminating zero
  return text;
}

Expected<const Nvrtc*> nvrtc() {
  static const auto* const opened = new Expected<Nvrtc>(open_nvrtc());
  if (!*opened) return tl::unexpected(opened->error());
  return &**opened;
}

}  // namespace autotune::gpu
