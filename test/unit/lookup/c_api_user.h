/* What the C half of the test gives to the C++ half. */
#ifndef AUTOTUNE_TEST_UNIT_LOOKUP_C_API_USER_H_
#define AUTOTUNE_TEST_UNIT_LOOKUP_C_API_USER_H_

#include "autotune/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

int c_user_default_is_sound(void);
/* An autotune_match, -1 where a call failed. */
int c_user_match(const char* cache, const char* device, int64_t size);

#ifdef __cplusplus
}
#endif

#endif
