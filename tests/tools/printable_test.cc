#include "tools/common/printable.h"

#include <gtest/gtest.h>

namespace tarn::tools {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "layers.0.attn", " ~", "caf\xC3\xA9", "\xE2\x82\xAC", "\xC2\xA0", "\xFF", "\xC2", "a\\x1b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(Printable("zz\n\x1B[2J\r\x7F"), "zz\\x0a\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J\xC2\x80\xC2"),
            "\\xc2\\x9b2J\\xc2\\x80\xC2");
}

}  // namespace
}  // namespace tarn::tools
