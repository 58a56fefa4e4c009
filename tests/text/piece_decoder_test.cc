#include "runtime/text/piece_decoder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

std::string Repeat(const std::string& text, size_t times) {
  std::string made;
  for (size_t i = 0; i < times; ++i) made += text;
  return made;
}

std::string Replacements(size_t count) { return Repeat("\xEF\xBF\xBD", count); }

// Tokens: 0 to 255 are bytes of a run, 256 is "a", 257 is " b", 258 is "c ", 259 is "a", a byte that begins a
// character, and a space.
struct Tables {
  Tables() : pieces(256), ends(256), special(256, kBytePiece) {
    std::iota(pieces.begin(), pieces.end(), uint8_t{0});
    std::iota(ends.begin(), ends.end(), 1u);
    for (const std::string piece : {"a", " b", "c ", "a\xE2 "}) {
      pieces.insert(pieces.end(), piece.begin(), piece.end());
      ends.push_back(static_cast<uint32_t>(pieces.size()));
      special.push_back(0);
    }
    tables.kind = TokenizerKind::kUnigram;
    tables.vocab_size = 300;
    tables.pieces = {pieces.data(), pieces.size()};
    tables.piece_ends = {ends.data(), ends.size()};
    tables.special = {special.data(), special.size()};
    tables.max_piece_bytes = 3;
  }
  // What comes out with each token; the last one is the end.
  std::vector<std::string> Decode(const std::vector<int32_t>& ids) const {
    Utf8State state = {};
    std::vector<char> text(MaxPieceBytes(tables));
    std::vector<std::string> parts;
    for (const int32_t id : ids) {
      size_t size = 0;
      const Status status = tarn::Decode(tables, &state, id, {text.data(), text.size()}, &size);
      EXPECT_TRUE(status.ok()) << status.message();
      parts.emplace_back(text.data(), size);
    }
    const size_t size = FinishPieces(&state, text.data());
    parts.emplace_back(text.data(), size);
    EXPECT_EQ(state.flags, 0u);
    return parts;
  }

  std::vector<uint8_t> pieces;
  std::vector<uint32_t> ends;
  std::vector<uint8_t> special;
  TokenizerTables tables;
};

using Parts = std::vector<std::string>;

TEST(PieceDecoder, ARunOfBytesComesOutWhenItEnds) {
  const Tables tables;
  EXPECT_EQ(tables.Decode({0xC3, 0xA9, 256}), (Parts{"", "", "\u00e9a", ""}));
  EXPECT_EQ(tables.Decode({0xC3, 0xA9, 'x'}), (Parts{"", "", "", "\u00e9x"}));
}

TEST(PieceDecoder, ARunThatIsWrongIsReplacementsForEachByte) {
  const Tables tables;
  EXPECT_EQ(tables.Decode({'x', 0xC3, 256}), (Parts{"", "", Replacements(2) + "a", ""}));
  EXPECT_EQ(tables.Decode({'x', 0xC3, '(', 'y', 256}), (Parts{"", "", Replacements(3), Replacements(1), "a", ""}));
  EXPECT_EQ(tables.Decode({256, 'x', 0xC3}), (Parts{"a", "", "", Replacements(2)}));
}

TEST(PieceDecoder, ALongRunComesOutInWholeCharacters) {
  const Tables tables;
  std::vector<int32_t> ids = {'x'};
  for (int i = 0; i < 9; ++i) ids.insert(ids.end(), {0xE2, 0x82, 0xAC});
  const Parts parts = tables.Decode(ids);
  EXPECT_EQ(parts[23], "x" + Repeat("\u20ac", 7));  // the 24th byte is the second one of a character
  EXPECT_EQ(parts.back(), Repeat("\u20ac", 2));
}

TEST(PieceDecoder, SpacesAtTheEndsOfATextAreDropped) {
  Tables tables;
  tables.tables.first_token_drops_space = true;
  EXPECT_EQ(tables.Decode({257, 257}), (Parts{"b", " b", ""}));
  EXPECT_EQ(tables.Decode({299, 257, 257}), (Parts{"", "b", " b", ""}));  // an id without a token is none
  tables.tables.first_token_drops_space = false;
  tables.tables.text_drops_space = true;
  EXPECT_EQ(tables.Decode({' ', 257}), (Parts{"", " b", ""}));
  EXPECT_EQ(tables.Decode({' '}), (Parts{"", ""}));
  tables.tables.text_drops_space = false;
  tables.tables.last_token_drops_space = true;
  EXPECT_EQ(tables.Decode({258, 258}), (Parts{"c", " c", ""}));
  EXPECT_EQ(tables.Decode({259, 256}), (Parts{"a" + Replacements(1), " a", ""}));
}

TEST(PieceDecoder, AWholeRunCanBeTakenBeforeItEnds) {
  const Tables tables;
  Utf8State state = {};
  char text[3 * kMaxRunBytes];
  const auto decode = [&](uint32_t id) { return std::string(text, DecodePiece(tables.tables, &state, id, {text, sizeof(text)})); };
  const auto take = [&] { return std::string(text, TakeWholeRun(&state, text)); };
  EXPECT_EQ(decode('x'), "");
  EXPECT_EQ(decode(0xC3), "");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(decode(0xA9), "");
  EXPECT_EQ(take(), "x\u00e9");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(decode(0xC3), "");
  EXPECT_EQ(decode(256), Replacements(1) + "a");
}

TEST(PieceDecoder, PiecesOfAFirstToken) {
  Tables tables;
  tables.tables.first_token_drops_space = true;
  const uint32_t ids[] = {256, 257}, ends[] = {1, 3};
  const uint8_t pieces[] = {'A', ' ', 'B'};
  tables.tables.first = {ids, pieces, ends};
  EXPECT_EQ(tables.Decode({256, 256}), (Parts{"A", "a", ""}));
  EXPECT_EQ(tables.Decode({257, 257}), (Parts{" B", " b", ""}));
  EXPECT_EQ(tables.Decode({258, 257}), (Parts{"c ", " b", ""}));
}

TEST(PieceDecoder, AStateThatIsNoneIsRefused) {
  const Tables tables;
  char text[128];
  size_t size = 0;
  for (const uint32_t flags : {0u, 2u, 0xFFFFFFFFu}) {
    Utf8State state = {};
    state.flags = flags;
    state.pending_bytes = 24;
    EXPECT_EQ(Decode(tables.tables, &state, 'x', text, &size).code(), TARN_INVALID_ARGUMENT);
    EXPECT_EQ(FinishPieces(&state, text), 0u);
  }
}

}  // namespace
}  // namespace tarn
