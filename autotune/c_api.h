/* The library for C: a session, its answers and kernels to launch. C11; the contracts are those of
 * session.h. Every handle is opaque and freed by its own function, which takes NULL; of the others,
 * those that return a status call NULL bad input, and the rest must not be given it. Functions are
 * thread-safe unless they say otherwise; strings are UTF-8 and end with a zero. */
#ifndef AUTOTUNE_C_API_H_
#define AUTOTUNE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Symbols that a shared library gives away. */
#if defined(__GNUC__)
#define AUTOTUNE_C_API __attribute__((visibility("default")))
#else
#define AUTOTUNE_C_API
#endif

/* Grows when a program that was compiled with an older header would no longer run. Fields that are
 * added at the end of a struct, and new functions, do not count: `size` tells them apart. */
#define AUTOTUNE_ABI_VERSION 1

/* That of the library which was loaded; a program may compare it with its own. */
AUTOTUNE_C_API uint32_t autotune_abi_version(void);

typedef enum autotune_status {
  AUTOTUNE_OK = 0,
  AUTOTUNE_BAD_INPUT = 1,
  AUTOTUNE_NOTHING_FITS = 2,
  AUTOTUNE_NO_GPU = 3,
  AUTOTUNE_NO_COMPILER = 4,
  AUTOTUNE_IO_FAILED = 5,
  AUTOTUNE_FOREIGN_FILE = 6,
  AUTOTUNE_CORRUPT_FILE = 7,
  AUTOTUNE_BUSY = 8,
  AUTOTUNE_CANCELLED = 9,
  AUTOTUNE_FAILED = 10
} autotune_status;

/* The sentence of the last call on this thread that did not return AUTOTUNE_OK; "" before any.
 * Valid until the next such call on this thread. */
AUTOTUNE_C_API const char* autotune_error_message(void);

typedef enum autotune_dtype {
  AUTOTUNE_BF16 = 0,
  AUTOTUNE_FP16 = 1,
  AUTOTUNE_TF32 = 2,
  AUTOTUNE_FP32 = 3
} autotune_dtype;

/* Of A[m,k] and B[k,n], in this order. A: T row-major, N column-major. B: N column-major, T
 * row-major. C[m,n] is row-major. */
typedef enum autotune_layout {
  AUTOTUNE_TN = 0,
  AUTOTUNE_TT = 1,
  AUTOTUNE_NN = 2,
  AUTOTUNE_NT = 3
} autotune_layout;

typedef enum autotune_timing { AUTOTUNE_COLD = 0, AUTOTUNE_HOT = 1 } autotune_timing;

typedef enum autotune_activation {
  AUTOTUNE_GELU_TANH = 0,
  AUTOTUNE_GELU_ERF = 1,
  AUTOTUNE_SILU = 2,
  AUTOTUNE_RELU = 3
} autotune_activation;

/* Family "gemm": C = alpha * A * B + beta * C; "geglu": C = activation(A * B) .* (A * Up), Up
 * stored as B is; "geglu_mlp": y = (activation(x * Wg) .* (x * Wu)) * Wd, where m is tokens, n
 * intermediate and k hidden. Start from autotune_problem_default(). */
typedef struct autotune_problem {
  size_t size;        /* sizeof(autotune_problem), as the caller's header has it */
  const char* family; /* "gemm", "geglu" or "geglu_mlp" */
  int64_t m, n, k;
  int32_t dtype;         /* autotune_dtype */
  int32_t out_dtype;     /* autotune_dtype, of C: as dtype, or FP32; of TF32 only that */
  int32_t layout;        /* autotune_layout */
  int64_t lda, ldb, ldc; /* leading dimensions in elements; 0: tight */
  double alpha, beta;    /* used as fp32; 1 and 0 of the gated families */
  int32_t timing;        /* autotune_timing. COLD: the L2 holds no operand; HOT: called in a loop */
  /* Not 0: dtype FP32 by fp32 multiply-adds alone, see Problem in types.h. 64 bits, so that it lies
     behind the padding that ended this struct before it had the field. */
  int64_t exact_fp32;
  int64_t activation; /* autotune_activation, of the families geglu and geglu_mlp */
} autotune_problem;

/* bf16, layout TN, alpha 1, beta 0, cold, gelu_tanh. */
static inline autotune_problem autotune_problem_default(void) {
  autotune_problem problem = {sizeof(autotune_problem),
                              "gemm",
                              0,
                              0,
                              0,
                              AUTOTUNE_BF16,
                              AUTOTUNE_BF16,
                              AUTOTUNE_TN,
                              0,
                              0,
                              0,
                              1.0,
                              0.0,
                              AUTOTUNE_COLD,
                              0,
                              AUTOTUNE_GELU_TANH};
  return problem;
}

/* Start from autotune_options_default(). NULL texts are as empty ones. */
typedef struct autotune_options {
  size_t size;        /* sizeof(autotune_options), as the caller's header has it */
  const char* cache;  /* file; NULL: the user's */
  const char* bundle; /* file made by `autotune bundle`; NULL: none */
  const char* device; /* name or slug of a known GPU; NULL: the CUDA device `ordinal` */
  int32_t ordinal;
  int32_t use_cache;     /* 0: neither read nor written */
  int32_t allow_compile; /* 0: autotune_session_kernel() loads stored code only */
} autotune_options;

/* The user's cache, no bundle, the GPU 0, compiling allowed. */
static inline autotune_options autotune_options_default(void) {
  autotune_options options = {sizeof(autotune_options), NULL, NULL, NULL, 0, 1, 1};
  return options;
}

typedef struct autotune_session autotune_session;
typedef struct autotune_answer autotune_answer;
typedef struct autotune_kernel autotune_kernel;

/* `options` NULL: the defaults. Where a function fails, *out is NULL. */
AUTOTUNE_C_API autotune_status autotune_session_open(const autotune_options* options,
                                                     autotune_session** out);
/* Not while another thread uses the session; answers and kernels outlive it. */
AUTOTUNE_C_API void autotune_session_free(autotune_session* session);
/* The GPU that it answers for, and something that the user should be told once, or "". Both live as
 * long as the session. */
AUTOTUNE_C_API const char* autotune_session_device(const autotune_session* session);
AUTOTUNE_C_API const char* autotune_session_message(const autotune_session* session);

typedef enum autotune_match {
  AUTOTUNE_EXACT = 0,           /* tuned for exactly this problem on this GPU */
  AUTOTUNE_NEAREST_PROBLEM = 1, /* tuned for a similar problem on this GPU */
  AUTOTUNE_OTHER_DEVICE = 2,    /* tuned on another GPU; checked to fit this one */
  AUTOTUNE_DEFAULT_CONFIG = 3   /* never measured: the performance model's choice */
} autotune_match;

AUTOTUNE_C_API autotune_status autotune_session_best_config(const autotune_session* session,
                                                            const autotune_problem* problem,
                                                            autotune_answer** out);
AUTOTUNE_C_API void autotune_answer_free(autotune_answer* answer);
/* "mma:block_m=128,..." (of geglu_mlp two, "... + ..."), and the problem that it was tuned for
 * where that is not the one asked about, else "". Both live as long as the answer. */
AUTOTUNE_C_API const char* autotune_answer_config(const autotune_answer* answer);
AUTOTUNE_C_API const char* autotune_answer_from_problem(const autotune_answer* answer);
AUTOTUNE_C_API autotune_match autotune_answer_match(const autotune_answer* answer);
/* As measured when tuned; 0: never. */
AUTOTUNE_C_API double autotune_answer_median_us(const autotune_answer* answer);

/* The answer, loaded into the CUDA context that is current on this thread. */
AUTOTUNE_C_API autotune_status autotune_session_kernel(const autotune_session* session,
                                                       const autotune_problem* problem,
                                                       autotune_kernel** out);
/* While the context lives. */
AUTOTUNE_C_API void autotune_kernel_free(autotune_kernel* kernel);
/* Bytes of device memory that a launch needs beside A, B and C; of geglu_mlp with the intermediate.
 */
AUTOTUNE_C_API int64_t autotune_kernel_workspace_bytes(const autotune_kernel* kernel);
/* Asynchronous on `stream` (a CUstream or cudaStream_t; NULL: the default one). a, b, c and
 * workspace are device pointers aligned to 16 bytes; workspace is NULL where none is needed,
 * else its first 64 KiB are zero before the first launch: every launch leaves them so. Kernels can
 * share a workspace, but not launches that may run at the same time.
 * Allocates nothing where it succeeds and can be captured in a CUDA graph. Where parts of k wait
 * for each other, the launch is a cooperative one: it begins once all of its blocks can run, and is
 * refused where the context has too few SMs for them. With a workspace that was not zero, or that
 * another launch uses, it may never end. */
AUTOTUNE_C_API autotune_status autotune_kernel_launch(const autotune_kernel* kernel, const void* a,
                                                      const void* b, void* c, void* stream,
                                                      void* workspace);
/* The same for the family geglu: `up` is the second matrix of weights, and b is the first. */
AUTOTUNE_C_API autotune_status autotune_kernel_launch_gated(const autotune_kernel* kernel,
                                                            const void* a, const void* b,
                                                            const void* up, void* c, void* stream,
                                                            void* workspace);
/* The same for the family geglu_mlp: two kernels, one behind the other. Calls at the same time take
 * a workspace each, also on one stream. Errors call x, gate and y a, b and c. */
AUTOTUNE_C_API autotune_status autotune_kernel_launch_mlp(const autotune_kernel* kernel,
                                                          const void* x, const void* gate,
                                                          const void* up, const void* down, void* y,
                                                          void* stream, void* workspace);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* AUTOTUNE_C_API_H_ */
