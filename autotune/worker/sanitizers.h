// Which sanitizers this is compiled with: GCC defines a macro for each, clang answers a question.
#pragma once

#if defined(__has_feature)
#define AUTOTUNE_HAS_FEATURE(x) __has_feature(x)
#else
#define AUTOTUNE_HAS_FEATURE(x) 0
#endif

namespace autotune::worker {

#if defined(__SANITIZE_ADDRESS__) || AUTOTUNE_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || AUTOTUNE_HAS_FEATURE(thread_sanitizer) || \
    AUTOTUNE_HAS_FEATURE(memory_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kAddressSanitizer;
#endif

}  // namespace autotune::worker

#undef AUTOTUNE_HAS_FEATURE
