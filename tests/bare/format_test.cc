// format_v_bare.cc against the C library's printf.
#include "core/format.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tarn {
namespace {

template <typename... T>
void ExpectSame(const char* format, T... values) {
  char wanted[400], found[400];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  const int wanted_bytes = std::snprintf(wanted, sizeof(wanted), format, values...);
  const size_t found_bytes = Format(found, sizeof(found), format, values...);
#pragma GCC diagnostic pop
  EXPECT_STREQ(found, wanted) << format;
  EXPECT_EQ(found_bytes, static_cast<size_t>(wanted_bytes)) << format;
}

TEST(Format, WritesTextAndIntegersAsPrintf) {
  ExpectSame("nothing to convert, 100 %%");
  ExpectSame("op '%s': %s", "embeddings", "");
  for (const int value : {0, 1, -1, 42, INT32_MAX, INT32_MIN}) {
    ExpectSame("%d|%5d|%05d|%u|%x", value, value, value, value, value);
    ExpectSame("%02x|%08x|%2u", value, value, value);
  }
  for (const int64_t value : {int64_t{0}, int64_t{-7}, INT64_MAX, INT64_MIN}) {
    const long long wide = value;
    ExpectSame("%lld|%llu|%016llx|%20lld", wide, static_cast<unsigned long long>(wide), static_cast<unsigned long long>(wide),
               wide);
    ExpectSame("%ld|%lu|%zu|%td", static_cast<long>(value), static_cast<unsigned long>(value), static_cast<size_t>(value),
               static_cast<ptrdiff_t>(value));
  }
}

TEST(Format, WritesNumbersOfSixDigitsAsPrintf) {
  for (const double value : {0.0,
                             1.0,
                             0.5,
                             1e-5,
                             0.0001,
                             0.00012345,
                             0.001,
                             3.14159265,
                             99999.9,
                             100000.0,
                             999999.0,
                             999999.7,
                             1e6,
                             123456789.0,
                             1e-3,
                             1.5e300,
                             DBL_MAX,
                             DBL_MIN,
                             5e-324,
                             static_cast<double>(FLT_MAX),
                             static_cast<double>(0.1f),
                             HUGE_VAL}) {
    ExpectSame("%g", value);
    ExpectSame("%g", -value);
  }
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double digits = static_cast<double>(state >> 11) / 9007199254740992.0;
    ExpectSame("%g", std::ldexp(digits, static_cast<int>(state % 200) - 100));
  }
}

TEST(Format, CutsWhatDoesNotFit) {
  char text[8] = "xxxxxxx";
  EXPECT_EQ(Format(text, 5, "%u tokens", 12345678u), 4u);
  EXPECT_STREQ(text, "1234");
  EXPECT_EQ(text[5], 'x');
  EXPECT_EQ(Format(text, 1, "%s", "anything"), 0u);
  EXPECT_STREQ(text, "");
}

}  // namespace
}  // namespace tarn
