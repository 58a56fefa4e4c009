/* What a C program of this folder expects; main() returns failures != 0. EXPECT_OK shows the message of a tarn_error `error`. */
#ifndef TARN_TESTS_CAPI_EXPECT_H_
#define TARN_TESTS_CAPI_EXPECT_H_

#include <stdio.h>

static int failures = 0;

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

#define EXPECT_OK(call)                                                             \
  do {                                                                              \
    if ((call) != TARN_OK) {                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.message); \
      ++failures;                                                                   \
    }                                                                               \
  } while (0)

#endif /* TARN_TESTS_CAPI_EXPECT_H_ */
