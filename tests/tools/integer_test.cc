#include "tools/common/integer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tarn::tools {
namespace {

TEST(Integer, IsTheWholeTextWithinItsRange) {
  EXPECT_EQ(ParseInteger<uint64_t>("0", 0, UINT64_MAX), 0u);
  EXPECT_EQ(ParseInteger<uint64_t>("010", 0, UINT64_MAX), 10u);
  EXPECT_EQ(ParseInteger<uint64_t>("18446744073709551615", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(ParseInteger<int64_t>("-1", -1, INT64_MAX), -1);
  EXPECT_EQ(ParseInteger<uint32_t>("2", 2, 3), 2u);

  EXPECT_FALSE(ParseInteger<uint64_t>("18446744073709551616", 0, UINT64_MAX));
  EXPECT_FALSE(ParseInteger<uint32_t>("4294967296", 0, UINT32_MAX));
  EXPECT_FALSE(ParseInteger<int64_t>("-2", -1, INT64_MAX));
  EXPECT_FALSE(ParseInteger<uint32_t>("1", 2, 3));
  EXPECT_FALSE(ParseInteger<uint32_t>("4", 2, 3));
  for (const char* text : {"", "-1", "-0", "+1", " 1", "1 ", "1,", "1.0", "1e3", "0x10", "1'000", "one"}) {
    EXPECT_FALSE(ParseInteger<uint64_t>(text, 0, UINT64_MAX)) << text;
  }
  EXPECT_FALSE(ParseInteger<uint64_t>(std::string("1\0", 2), 0, UINT64_MAX));
}

TEST(Integer, SaysWhatItShouldHaveBeen) {
  EXPECT_EQ(NotInteger<int64_t>("-2", -1, 9), "is '-2', expected an integer from -1 to 9");
  EXPECT_EQ(NotInteger<uint64_t>("", 0, UINT64_MAX), "is '', expected an integer from 0 to 18446744073709551615");
}

}  // namespace
}  // namespace tarn::tools
