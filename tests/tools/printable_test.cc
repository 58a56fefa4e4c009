#include "tools/common/printable.h"

#include <gtest/gtest.h>

namespace tarn::tools {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "layers.0.attn", " ~", "caf\xC3\xA9", "\xE2\x82\xAC", "\xC2\xA0", "\xF0\x9F\x90\xBB", "a\\x1b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(Printable("zz\n\x1B[2J\r\x7F"), "zz\\x0a\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J\xC2\x80"),
            "\\xc2\\x9b2J\\xc2\\x80");
}

TEST(Printable, ShowsWhatHidesOrReordersText) {
  EXPECT_EQ(Printable("a\xE2\x80\xA8z"), "a\\xe2\\x80\\xa8z");    // U+2028
  EXPECT_EQ(Printable("\xE2\x80\xAEgpj"), "\\xe2\\x80\\xaegpj");  // U+202E
  EXPECT_EQ(Printable("\xEF\xBB\xBFz"), "\\xef\\xbb\\xbfz");      // U+FEFF
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(Printable("a\x9Bz"), "a\\x9bz");
  EXPECT_EQ(Printable("\xFF\xC2"), "\\xff\\xc2");
  EXPECT_EQ(Printable("\xED\xA0\x80\xE2\x82"), "\\xed\\xa0\\x80\\xe2\\x82");
}

TEST(JsonString, IsAsciiWithoutControlCharacters) {
  EXPECT_EQ(JsonString(""), "\"\"");
  EXPECT_EQ(JsonString("a \"b\"\\c"), "\"a \\\"b\\\"\\\\c\"");
  EXPECT_EQ(JsonString(std::string_view("\n\t\0\x1b\x7f", 5)), "\"\\n\\t\\u0000\\u001b\\u007f\"");
  EXPECT_EQ(JsonString("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\"caf\\u00e9 \\u20ac \\ud83d\\ude00\"");
  EXPECT_EQ(JsonString("\xFF \xE2\x82"), "\"\\ufffd \\ufffd\\ufffd\"");
}

TEST(ErrorLine, LeavesOutTheMiddleOfALongText) {
  EXPECT_EQ(ErrorLine("a\nb"), "a\\x0ab");
  EXPECT_EQ(ErrorLine(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(ErrorLine(std::string(700, 'x') + std::string(5'000'000, '9') + std::string(400, 'y')),
            std::string(600, 'x') + " [5000100 bytes left out] " + std::string(400, 'y'));
}

TEST(ErrorLine, CutsBetweenCharacters) {
  std::string text = "x";
  for (int i = 0; i < 1000; ++i) text += "\xC3\xA9";
  const std::string line = ErrorLine(text);
  EXPECT_EQ(line.substr(0, 599), text.substr(0, 599));
  EXPECT_EQ(line.substr(599, 27), " [1002 bytes left out] \xC3\xA9\xC3\xA9");
  // However it is filled: four characters a byte.
  EXPECT_LE(ErrorLine(std::string(1 << 20, '\x9B')).size(), 4 * 1003 + 40u);
}

}  // namespace
}  // namespace tarn::tools
