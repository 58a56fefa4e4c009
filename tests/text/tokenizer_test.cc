#include "runtime/text/tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace tarn {
namespace {

constexpr TokenizerKind kBytes = TokenizerKind::kBytes;

TokenizerTables Bytes(uint32_t vocab_size) {
  TokenizerTables tables;
  tables.kind = kBytes;
  tables.vocab_size = vocab_size;
  return tables;
}

TEST(TokenizerTest, BytesRoundTripOfAllValues) {
  std::string text(256, '\0');
  std::iota(text.begin(), text.end(), static_cast<char>(0));
  std::vector<int32_t> tokens(256);
  size_t count = 0;
  ASSERT_TRUE(Tokenize(kBytes, {text.data(), text.size()}, {tokens.data(), tokens.size()}, &count).ok());
  EXPECT_EQ(count, 256u);
  for (int32_t i = 0; i < 256; ++i) EXPECT_EQ(tokens[static_cast<size_t>(i)], i);
}

TEST(TokenizerTest, TooSmallWritesWhatFitsAndSaysTheRest) {
  int32_t tokens[] = {-1, -1, -1};
  size_t count = 0;
  const Status status = Tokenize(kBytes, {"abcd", 4}, {tokens, 2}, &count);
  EXPECT_EQ(status.code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_STREQ(status.message(), "capacity is 2 tokens, the text has 4");
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(tokens[0], 'a');
  EXPECT_EQ(tokens[1], 'b');
  EXPECT_EQ(tokens[2], -1);
}

TEST(TokenizerTest, EmptyText) {
  size_t count = 7;
  EXPECT_TRUE(Tokenize(kBytes, {}, {}, &count).ok());
  EXPECT_EQ(count, 0u);
}

TEST(TokenizerTest, NoTokenizer) {
  size_t count = 7;
  Utf8State state = {};
  char text[kMaxUtf8Bytes];
  EXPECT_EQ(Tokenize(TokenizerKind::kNone, {"a", 1}, {}, &count).code(), TARN_UNSUPPORTED);
  EXPECT_EQ(Decode(TokenizerTables(), &state, 65, text, &count).code(), TARN_UNSUPPORTED);
  EXPECT_EQ(count, 7u);
}

TEST(TokenizerTest, DecodeStreamsWholeCharacters) {
  Utf8State state = {};
  char text[kMaxUtf8Bytes];
  size_t size = 99;
  const std::string euro = "\xE2\x82\xAC";
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(Decode(Bytes(256), &state, static_cast<uint8_t>(euro[i]), text, &size).ok());
    EXPECT_EQ(size, i < 2 ? 0u : 3u);
  }
  EXPECT_EQ(std::string(text, size), euro);
}

TEST(TokenizerTest, FailedDecodeChangesNothing) {
  Utf8State state = {};
  char text[kMaxUtf8Bytes];
  size_t size = 99;
  ASSERT_TRUE(Decode(Bytes(256), &state, 0xE2, text, &size).ok());
  const Utf8State before = state;
  size = 99;

  EXPECT_STREQ(Decode(Bytes(256), &state, 256, text, &size).message(), "token is 256, must be in [0, 256)");
  EXPECT_EQ(Decode(Bytes(256), &state, -1, text, &size).code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(Decode(Bytes(100), &state, 100, text, &size).code(), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(Decode(Bytes(512), &state, 300, text, &size).code(), TARN_INVALID_ARGUMENT);
  // 'A' ends the pending character: U+FFFD and the letter, 4 bytes.
  EXPECT_STREQ(Decode(Bytes(256), &state, 'A', {text, 3}, &size).message(), "capacity is 3 bytes, the text of token 65 has 4");
  EXPECT_EQ(size, 99u);
  EXPECT_EQ(std::memcmp(&state, &before, sizeof(state)), 0);

  state.pending_bytes = 4;
  EXPECT_EQ(Decode(Bytes(256), &state, 'A', text, &size).code(), TARN_INVALID_ARGUMENT);
}

TEST(TokenizerTest, MaxPieceBytesIsEnoughAndReached) {
  Utf8State state = {};
  char text[kMaxUtf8Bytes];
  size_t size = 0;
  ASSERT_TRUE(Decode(Bytes(256), &state, 0xE2, text, &size).ok());
  ASSERT_TRUE(Decode(Bytes(256), &state, 0xFF, {text, MaxPieceBytes(Bytes(256))}, &size).ok());
  EXPECT_EQ(size, MaxPieceBytes(Bytes(256)));
}

}  // namespace
}  // namespace tarn
