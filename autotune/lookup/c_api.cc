#include "autotune/c_api.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "autotune/session.h"

using namespace autotune;

struct autotune_session {
  Session session;
};
struct autotune_answer {
  BestConfig best;
};
struct autotune_kernel {
  Kernel kernel;
};

namespace {

thread_local std::string last_message;

// The C enumerators have the C++ ones' order; a status leaves 0 to success.
template <class C, class Cpp>
constexpr bool same(C c, Cpp cpp, int shift = 0) {
  return static_cast<int>(c) == static_cast<int>(cpp) + shift;
}
static_assert(same(AUTOTUNE_BAD_INPUT, ErrorCode::bad_input, 1));
static_assert(same(AUTOTUNE_NOTHING_FITS, ErrorCode::nothing_fits, 1));
static_assert(same(AUTOTUNE_NO_GPU, ErrorCode::no_gpu, 1));
static_assert(same(AUTOTUNE_NO_COMPILER, ErrorCode::no_compiler, 1));
static_assert(same(AUTOTUNE_IO_FAILED, ErrorCode::io_failed, 1));
static_assert(same(AUTOTUNE_FOREIGN_FILE, ErrorCode::foreign_file, 1));
static_assert(same(AUTOTUNE_CORRUPT_FILE, ErrorCode::corrupt_file, 1));
static_assert(same(AUTOTUNE_BUSY, ErrorCode::busy, 1));
static_assert(same(AUTOTUNE_CANCELLED, ErrorCode::cancelled, 1));
static_assert(same(AUTOTUNE_FAILED, ErrorCode::failed, 1));
static_assert(same(AUTOTUNE_BF16, DType::bf16) && same(AUTOTUNE_FP16, DType::fp16));
static_assert(same(AUTOTUNE_TF32, DType::tf32) && same(AUTOTUNE_FP32, DType::fp32));
static_assert(same(AUTOTUNE_TN, Layout::tn) && same(AUTOTUNE_TT, Layout::tt));
static_assert(same(AUTOTUNE_NN, Layout::nn) && same(AUTOTUNE_NT, Layout::nt));
static_assert(same(AUTOTUNE_COLD, TimingMode::cold) && same(AUTOTUNE_HOT, TimingMode::hot));
static_assert(same(AUTOTUNE_GELU_TANH, Activation::gelu_tanh));
static_assert(same(AUTOTUNE_GELU_ERF, Activation::gelu_erf));
static_assert(same(AUTOTUNE_SILU, Activation::silu) && same(AUTOTUNE_RELU, Activation::relu));
static_assert(same(AUTOTUNE_EXACT, Match::exact));
static_assert(same(AUTOTUNE_NEAREST_PROBLEM, Match::nearest_problem));
static_assert(same(AUTOTUNE_OTHER_DEVICE, Match::other_device));
static_assert(same(AUTOTUNE_DEFAULT_CONFIG, Match::default_config));

autotune_status report(const Error& error) {
  last_message = error.message;
  return static_cast<autotune_status>(static_cast<int>(error.code) + 1);
}

// Nothing is thrown across the border: what is (no memory) becomes a status.
template <class Work>
autotune_status guarded(const Work& work) noexcept {
  try {
    const Expected<void> done = work();
    return done ? AUTOTUNE_OK : report(done.error());
  } catch (const std::exception& error) {
    return report({ErrorCode::failed, error.what()});
  } catch (...) {
    return report({ErrorCode::failed, "an unknown exception"});
  }
}

// The caller's struct, which may be shorter or longer than ours: what it lacks keeps its default,
// what we do not know is left alone.
template <class Struct>
Expected<Struct> whole(const Struct* given, Struct defaults, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (given == nullptr || given->size < sizeof(given->size)) {
    return fail(ErrorCode::bad_input, std::string(name) +
                                          " is null or its size is not set; start "
                                          "from " +
                                          name + "_default()");
  }
  std::memcpy(&defaults, given, given->size < sizeof(Struct) ? given->size : sizeof(Struct));
  return defaults;
}

const char* text(const char* given) { return given == nullptr ? "" : given; }

// A value outside the enumeration is refused by checked(), which names the field; one that does not
// fit into it must not become another by wrapping.
template <class Enum>
Enum enum_of(std::int64_t value) {
  constexpr int kNone = 255;
  static_assert(sizeof(Enum) == 1);
  return static_cast<Enum>(value >= 0 && value < kNone ? value : kNone);
}

Expected<Problem> problem_of(const autotune_problem* pointer) {
  const auto given = whole(pointer, autotune_problem_default(), "autotune_problem");
  if (!given) return tl::unexpected(given.error());
  Problem problem;
  problem.family = text(given->family);
  problem.m = given->m;
  problem.n = given->n;
  problem.k = given->k;
  problem.dtype = enum_of<DType>(given->dtype);
  problem.out_dtype = enum_of<DType>(given->out_dtype);
  problem.layout = enum_of<Layout>(given->layout);
  problem.lda = given->lda;
  problem.ldb = given->ldb;
  problem.ldc = given->ldc;
  problem.alpha = given->alpha;
  problem.beta = given->beta;
  problem.mode = enum_of<TimingMode>(given->timing);
  problem.exact_fp32 = given->exact_fp32 != 0;
  problem.activation = enum_of<Activation>(given->activation);
  return problem;
}

Expected<SessionOptions> options_of(const autotune_options* pointer) {
  SessionOptions options;
  if (pointer == nullptr) return options;
  const auto given = whole(pointer, autotune_options_default(), "autotune_options");
  if (!given) return tl::unexpected(given.error());
  options.cache = text(given->cache);
  options.use_cache = given->use_cache != 0;
  options.bundle = text(given->bundle);
  options.device = text(given->device);
  options.ordinal = given->ordinal;
  options.allow_compile = given->allow_compile != 0;
  return options;
}

Expected<void> require(bool given, const char* name) {
  if (given) return {};
  return fail(ErrorCode::bad_input, std::string(name) + " is null");
}

// *out from what `ask` makes of the session and the problem.
template <class Handle, class Ask>
autotune_status answer_into(const autotune_session* session, const autotune_problem* given,
                            Handle** out, const Ask& ask) {
  return guarded([&]() -> Expected<void> {
    if (auto sound = require(out != nullptr, "out"); !sound) return sound;
    *out = nullptr;
    if (auto sound = require(session != nullptr, "session"); !sound) return sound;
    const auto problem = problem_of(given);
    if (!problem) return tl::unexpected(problem.error());
    auto made = ask(session->session, *problem);
    if (!made) return tl::unexpected(made.error());
    *out = new Handle{*std::move(made)};
    return {};
  });
}

}  // namespace

uint32_t autotune_abi_version(void) { return AUTOTUNE_ABI_VERSION; }

const char* autotune_error_message(void) { return last_message.c_str(); }

autotune_status autotune_session_open(const autotune_options* given, autotune_session** out) {
  return guarded([&]() -> Expected<void> {
    if (auto sound = require(out != nullptr, "out"); !sound) return sound;
    *out = nullptr;
    const auto options = options_of(given);
    if (!options) return tl::unexpected(options.error());
    auto session = Session::open(*options);
    if (!session) return tl::unexpected(session.error());
    *out = new autotune_session{*std::move(session)};
    return {};
  });
}

void autotune_session_free(autotune_session* session) { delete session; }

const char* autotune_session_device(const autotune_session* session) {
  return session->session.device().c_str();
}

const char* autotune_session_message(const autotune_session* session) {
  return session->session.message().c_str();
}

autotune_status autotune_session_best_config(const autotune_session* session,
                                             const autotune_problem* problem,
                                             autotune_answer** out) {
  return answer_into(session, problem, out,
                     [](const Session& of, const Problem& asked) { return of.best_config(asked); });
}

void autotune_answer_free(autotune_answer* answer) { delete answer; }

const char* autotune_answer_config(const autotune_answer* answer) {
  return answer->best.config.c_str();
}

const char* autotune_answer_from_problem(const autotune_answer* answer) {
  return answer->best.from_problem.c_str();
}

autotune_match autotune_answer_match(const autotune_answer* answer) {
  return static_cast<autotune_match>(answer->best.match);
}

double autotune_answer_median_us(const autotune_answer* answer) { return answer->best.median_us; }

autotune_status autotune_session_kernel(const autotune_session* session,
                                        const autotune_problem* problem, autotune_kernel** out) {
  return answer_into(session, problem, out,
                     [](const Session& of, const Problem& asked) { return of.kernel(asked); });
}

void autotune_kernel_free(autotune_kernel* kernel) { delete kernel; }

int64_t autotune_kernel_workspace_bytes(const autotune_kernel* kernel) {
  return kernel->kernel.workspace_bytes();
}

autotune_status autotune_kernel_launch(const autotune_kernel* kernel, const void* a, const void* b,
                                       void* c, void* stream, void* workspace) {
  return guarded([&]() -> Expected<void> {
    if (auto sound = require(kernel != nullptr, "kernel"); !sound) return sound;
    return kernel->kernel.launch(a, b, c, stream, workspace);
  });
}

autotune_status autotune_kernel_launch_gated(const autotune_kernel* kernel, const void* a,
                                             const void* b, const void* up, void* c, void* stream,
                                             void* workspace) {
  return guarded([&]() -> Expected<void> {
    if (auto sound = require(kernel != nullptr, "kernel"); !sound) return sound;
    return kernel->kernel.launch(a, b, c, stream, workspace, up);
  });
}

autotune_status autotune_kernel_launch_mlp(const autotune_kernel* kernel, const void* x,
                                           const void* gate, const void* up, const void* down,
                                           void* y, void* stream, void* workspace) {
  return guarded([&]() -> Expected<void> {
    if (auto sound = require(kernel != nullptr, "kernel"); !sound) return sound;
    return kernel->kernel.launch(x, gate, y, stream, workspace, up, down);
  });
}
