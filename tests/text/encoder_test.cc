#include "runtime/text/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/text/encode_text.h"
#include "runtime/text/piece_decoder.h"
#include "runtime/text/tokenizer.h"
#include "tests/support/tokenizers.h"
#include "tests/text/allocation_count.h"
#include "tests/text/counting_allocator.h"

namespace tarn {
namespace {

using nlohmann::json;

constexpr char kFolder[] = "tests/data/tokenizers/";

struct Encoding {
  std::vector<int32_t> ids;
  std::vector<std::pair<size_t, size_t>> ranges;
  bool operator==(const Encoding& other) const { return ids == other.ids && ranges == other.ranges; }
};

// A tokenizer of a fixture, and an encoder for it.
class Fixture {
 public:
  explicit Fixture(const std::string& name, EncoderConfig config = {4096, 64})
      : Fixture(test::TokenizerGraph::ReadFolder(kFolder + name), config) {}
  explicit Fixture(const convert::TokenizerData& data, EncoderConfig config = {4096, 64}) : graph_(data) {
    const Result<TokenizerTables> read = graph_.Read();
    EXPECT_TRUE(read.ok()) << read.status().message();
    tables_ = read.value();
    const Result<Encoder*> created = Encoder::Create(tables_, config, {{}, DefaultAllocator()});
    EXPECT_TRUE(created.ok()) << created.status().message();
    encoder_ = created.value();
  }
  ~Fixture() { Encoder::Destroy(encoder_); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  const TokenizerTables& tables() const { return tables_; }
  Encoder& encoder() { return *encoder_; }

  // In parts of at most `room` ids.
  Encoding Encode(const std::string& text, EncoderOptions options = {}, size_t room = 7) {
    const std::unique_ptr<char[]> exact(new char[text.size()]);  // nothing may be read behind the text
    std::copy(text.begin(), text.end(), exact.get());
    encoder_->Begin({exact.get(), text.size()}, options);
    Encoding all;
    std::vector<int32_t> ids(room);
    std::vector<TextRange> ranges(room);
    for (size_t count = room; count == room;) {
      const Status status = encoder_->Read({ids.data(), room}, {ranges.data(), room}, &count);
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) break;
      all.ids.insert(all.ids.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
      for (size_t i = 0; i < count; ++i) all.ranges.emplace_back(ranges[i].begin, ranges[i].end);
    }
    return all;
  }

  std::string DecodeAll(const std::vector<int32_t>& ids, bool keep_special) const {
    Utf8State state = {};
    std::vector<char> piece(MaxPieceBytes(tables_));
    std::string text;
    for (const int32_t id : ids) {
      if (!keep_special && IsSpecial(tables_, id)) continue;
      size_t size = 0;
      EXPECT_TRUE(Decode(tables_, &state, id, {piece.data(), piece.size()}, &size).ok());
      text.append(piece.data(), size);
    }
    return text.append(piece.data(), FinishPieces(&state, piece.data()));
  }

 private:
  test::TokenizerGraph graph_;
  TokenizerTables tables_;
  Encoder* encoder_ = nullptr;
};

std::vector<std::string> FixtureNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<json> Answers(const std::string& name) {
  std::ifstream file(kFolder + name + "/answers.jsonl");
  std::vector<json> answers;
  for (std::string line; std::getline(file, line);) answers.push_back(json::parse(line));
  EXPECT_FALSE(answers.empty()) << name;
  return answers;
}

class EncoderFixtures : public testing::TestWithParam<std::string> {};

// tools/dev/oracle/tokenizer_fixtures.py asked the package.
TEST_P(EncoderFixtures, IdsRangesAndTextsAreThoseOfThePackage) {
  Fixture fixture(GetParam());
  size_t room = 0;
  for (const json& answer : Answers(GetParam())) {
    if (answer.contains("keep")) {
      EXPECT_EQ(fixture.DecodeAll(answer["ids"], answer["keep"]), answer["text"].get<std::string>()) << answer;
      continue;
    }
    const EncoderOptions options = {answer["template"], !answer["plain"].get<bool>()};
    const Encoding found = fixture.Encode(answer["text"], options, ++room % 9 + 1);
    EXPECT_EQ(found.ids, answer["ids"].get<std::vector<int32_t>>()) << answer;
    EXPECT_EQ(found.ranges, (answer["offsets"].get<std::vector<std::pair<size_t, size_t>>>())) << answer;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderFixtures, testing::ValuesIn(FixtureNames()),
                         [](const auto& fixture) { return fixture.param; });

// The spaces that a token has taken are not tokens again, and what lies behind a text does not matter.
TEST(Encoder, SpacesThatATokenHasTakenAreNoTokens) {
  Fixture fixture("spaces_taken");
  const std::vector<std::pair<std::string, Encoding>> cases = {
      {"<right> ", {{4}, {{0, 8}}}},
      {"THE<right> ", {{1, 4}, {{0, 3}, {3, 11}}}},
      {"<right>  the", {{4, 1}, {{0, 9}, {9, 12}}}},
      {"THE<right>   ", {{1, 4}, {{0, 3}, {3, 13}}}},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(fixture.Encode(text), expected) << text;
    const std::string longer = text + "\x80";
    fixture.encoder().Begin({longer.data(), text.size()}, {});
    int32_t ids[8];
    TextRange ranges[8];
    size_t count = 0;
    ASSERT_TRUE(fixture.encoder().Read(ids, ranges, &count).ok());
    ASSERT_EQ(count, expected.ids.size()) << text;
    EXPECT_EQ(ranges[count - 1].end, text == cases[2].first ? 12 : text.size()) << text;
  }
}

// What a user writes is no special token, not even with the help of the text around it; the rest is as it was.
TEST(Encoder, SpecialTokensThatReachIntoPlainRangesAreText) {
  for (const char* name : {"gpt2", "roberta"}) {
    convert::TokenizerData data = convert::ReadTokenizer(std::string(kFolder) + name, test::TokenizerGraph::kVocabulary);
    // roberta's text gets a space before it: look for all tokens there, whose places are not those of the text.
    if (std::string(name) == "roberta") std::swap(data.raw, data.normalized);
    Fixture fixture(data);
    const std::string special = "<|sep|>", text = "ab" + special + "cd" + special + "ef";
    const int32_t sep = fixture.Encode(special, {false}).ids.back();
    const auto encode = [&](const std::vector<TextRange>& plain) {
      return fixture.Encode(text, {false, true, {plain.data(), plain.size()}}, 3);
    };
    const auto count = [&](const std::vector<TextRange>& plain) {
      const Encoding found = encode(plain);
      return std::count(found.ids.begin(), found.ids.end(), sep);
    };
    EXPECT_EQ(count({}), 2) << name;
    EXPECT_EQ(count({{0, 2}, {9, 11}, {18, 20}}), 2) << "beside them, " << name;
    EXPECT_EQ(count({{2, 9}}), 1) << name;
    EXPECT_EQ(count({{8, 9}}), 1) << "its last byte, " << name;
    EXPECT_EQ(count({{11, 12}}), 1) << "its first byte, " << name;
    EXPECT_EQ(count({{5, 5}}), 1) << "an empty content in its middle, " << name;
    EXPECT_EQ(count({{0, 3}, {10, 20}}), 0) << name;
    EXPECT_EQ(encode({{0, text.size()}}), fixture.Encode(text, {false, false})) << name;
  }
}

TEST(Encoder, NothingIsAllocatedAfterCreation) {
  for (const char* name : {"roberta", "llama2", "unigram", "unigram_bytes", "wordpiece", "wordlevel", "rwkv", "characters"}) {
    Fixture fixture(name);
    const std::string text = "The <mask> of naïve cafés,  and 1234 more <|sep|>";
    int32_t ids[8];
    TextRange ranges[8];
    const uint64_t before = AllocationCount();
    fixture.encoder().Begin({text.data(), text.size()}, {});
    size_t total = 0;
    for (size_t count = 8; count == 8; total += count) ASSERT_TRUE(fixture.encoder().Read(ids, ranges, &count).ok());
    EXPECT_EQ(AllocationCount(), before) << name;
    EXPECT_GT(total, 10u) << name;
  }
}

TEST(Encoder, LivesInOneBlockOfTheMeasuredSize) {
  const test::TokenizerGraph graph("tests/data/tokenizers/roberta");
  const TokenizerTables tables = graph.Read().value();
  const EncoderConfig config = {100, 16};
  const uint64_t bytes = Encoder::Measure(tables, config).value();
  CountingAllocator allocator{1};
  Result<Encoder*> encoder = Encoder::Create(tables, config, {{}, allocator.get()});
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ(allocator.calls, 1);
  EXPECT_EQ(allocator.size_bytes, bytes);
  Encoder::Destroy(encoder.value());
  EXPECT_EQ(allocator.live, 0);

  Result<Block> block = Block::Allocate(DefaultAllocator(), bytes, "test");
  ASSERT_TRUE(block.ok());
  const Span<uint8_t> memory = block.value().bytes();
  const Status status = Encoder::Create(tables, config, {memory.subspan(0, memory.size() - 1), allocator.get()}).status();
  EXPECT_EQ(status.code(), TARN_BUFFER_TOO_SMALL);
  encoder = Encoder::Create(tables, config, {memory, allocator.get()});
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ(allocator.calls, 1);
  Encoder::Destroy(encoder.value());
}

TEST(Encoder, AWordOfTheBoundIsTakenAndALongerOneIsRefused) {
  for (const char* name : {"gpt2", "roberta", "no_split"}) {
    Fixture large(name), small(name, {16, 1});
    const std::string fits = "<|sep|>" + std::string(std::string(name) == "roberta" ? 15 : 16, 'a');  // and a space before it
    EXPECT_EQ(small.Encode(fits), large.Encode(fits)) << name;
    const std::string text = fits + "a";
    small.encoder().Begin({text.data(), text.size()}, {});
    int32_t ids[32];
    size_t count = 99;
    const Status status = small.encoder().Read(ids, {}, &count);
    EXPECT_EQ(status.code(), TARN_BUFFER_TOO_SMALL) << name;
    EXPECT_NE(std::string(status.message()).find("16 bytes"), std::string::npos) << status.message();
    EXPECT_EQ(count, std::string(name) == "roberta" ? 2u : 1u);  // what was before the word
    EXPECT_TRUE(small.encoder().Read(ids, {}, &count).ok());
    EXPECT_EQ(count, 0u);
  }
}

// The window of a text that is changed on its way is much shorter than this one.
TEST(Encoder, ALongTextIsTheSameInAnyMemory) {
  std::string text = "x";
  for (int i = 0; i < 2000; ++i)
    text += " word" + std::to_string(i * 7919 % 1000) + (i % 9 == 0 ? " both  " : i % 7 == 0 ? "<mask>\n" : ",");
  for (const char* name : {"gpt2_trimmed", "roberta", "deepseek", "metaspace", "metaspace_first"}) {
    Fixture large(name, {1u << 16, 1u << 12}), small(name, {32, 1});
    EXPECT_EQ(small.Encode(text), large.Encode(text)) << name;
  }
}

// Words that have no end are cut where no token lies across: the memory is that of a few words.
TEST(Encoder, TextsWithoutWordsAreTheSameInAnyMemory) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += std::string(i % 5 == 0 ? "  " : " ") + (i % 7 == 0 ? "\xE5\x8C\x97\xF0\x9F\x98\x80" : "therefore");
    text += std::to_string(i * 7919 % 1000);
    if (i % 11 == 0) text += "\xED\x95\x9C\xEA\xB5\xAD caf <|sep|> both ";
  }
  for (const char* name :
       {"llama2", "bpe_unknown", "unigram", "unigram_whole", "unigram_bytes", "wordpiece", "wordlevel", "rwkv"}) {
    Fixture large(name, {1u << 18, 1u << 12}), small(name, {1024, 1});
    EXPECT_EQ(small.Encode(text), large.Encode(text)) << name;
  }
}

TEST(Encoder, CutsChangeNothing) {
  for (const char* name : {"llama2", "bpe_unknown", "unigram_whole", "unigram_bytes"}) {
    Fixture fixture(name);
    TokenizerTables uncut = fixture.tables();
    ASSERT_FALSE(uncut.joints.empty()) << name;
    uncut.joints = Joints();
    Encoder* const encoder = Encoder::Create(uncut, {1u << 16, 1}, {{}, DefaultAllocator()}).value();
    for (const json& answer : Answers(name)) {
      if (answer.contains("keep")) continue;
      std::string text = answer["text"];
      while (!text.empty() && text.size() < 2000) text += text;
      const Encoding cut = fixture.Encode(text, {false, true});
      std::vector<int32_t> ids(cut.ids.size() + 1);
      size_t count = 0;
      encoder->Begin({text.data(), text.size()}, {false, true});
      ASSERT_TRUE(encoder->Read({ids.data(), ids.size()}, {}, &count).ok());
      ids.resize(count);
      EXPECT_EQ(ids, cut.ids) << name << ": " << answer;
    }
    Encoder::Destroy(encoder);
  }
}

// Of a pair that repeats the left one merges first.
TEST(Encoder, AMillionLettersAreOneWord) {
  Fixture fixture("gpt2", {1u << 20, 16});
  const Encoding found = fixture.Encode(std::string(1u << 20, 'e'), {}, 4096);
  const Encoding pair = fixture.Encode("ee");
  ASSERT_EQ(pair.ids.size(), 1u);
  size_t at = 0;
  for (size_t i = 0; i < found.ids.size(); ++i) {
    EXPECT_EQ(found.ranges[i].first, at);
    at = found.ranges[i].second;
  }
  EXPECT_EQ(at, size_t{1} << 20);
  EXPECT_LE(found.ids.size(), size_t{1} << 19);
}

// Spaces stay, and every byte of a text is one of its words'.
bool KeepsTexts(const TokenizerTables& tables) {
  if (tables.kind != TokenizerKind::kBpe || !tables.vocabulary.strings.empty()) return false;
  for (uint32_t i = 0; i < tables.split_count; ++i) {
    if (tables.splits[i].behavior == SplitBehavior::kRemoved) return false;
  }
  return tables.space.empty() && std::count(tables.bpe.byte_ids.begin(), tables.bpe.byte_ids.end(), -1) == 0;
}

TEST(Encoder, BytesThatAreNoUtf8AreTokensToo) {
  for (const std::string& name : FixtureNames()) {
    Fixture fixture(name);
    if (!KeepsTexts(fixture.tables())) continue;
    const std::string text = "a\xFF\x80 \xC3(\xE2\x82 \xF0\x9F\x98\x80\xED\xA0\x80";
    std::string decoded;
    for (const int32_t id : fixture.Encode(text, {false, true}).ids) {
      const Span<const uint8_t> piece = fixture.tables().Piece(static_cast<uint32_t>(id));
      decoded.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    EXPECT_EQ(decoded, name == "roberta" ? " " + text : text) << name;
  }
}

// In one call, texts that are shorter than what the tokenizer makes of them.
// A model file may say so: the byte then stands for a part of a character, as well as for what is unknown.
TEST(Encoder, AByteThatIsTheUnknownTokenIsTrimmed) {
  convert::TokenizerData data = test::TokenizerGraph::ReadFolder(std::string(kFolder) + "sentencepiece_unigram_bytes");
  data.space = "\xE2\x96\x81";
  data.vocabulary.unk_id = data.vocabulary.byte_ids[0xF0];
  data.trim_offsets = true;
  Fixture fixture(data);
  const Encoding found = fixture.Encode("a \xF0\x9F\x98\x80 b", {false, true});
  const auto first = std::find(found.ids.begin(), found.ids.end(), data.vocabulary.unk_id);
  ASSERT_NE(first, found.ids.end());
  EXPECT_EQ(found.ranges[static_cast<size_t>(first - found.ids.begin())], std::make_pair(size_t{2}, size_t{6}));
}

TEST(Encoder, EncodeTextHasRoomForWhatTheTokenizerAdds) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    Fixture fixture(entry.path().filename().string());
    for (const std::string text : {"a", "\xC3\xA9", "\xEF\xB7\xBA", "hello", ""}) {
      const Encoding expected = fixture.Encode(text);
      std::vector<int32_t> ids(64);
      size_t count = 77;
      const Status status =
          EncodeText(fixture.tables(), {text.data(), text.size()}, DefaultAllocator(), {ids.data(), ids.size()}, &count);
      ASSERT_TRUE(status.ok()) << entry.path() << ": " << status.message();
      ids.resize(count);
      EXPECT_EQ(ids, expected.ids) << entry.path() << ": " << text;
    }
  }
}

TEST(Encoder, EncodeTextSetsTheCountOfAWordThatIsTooLong) {
  Fixture fixture("no_split");
  const std::string text((1u << 20) + 1, 'a');
  size_t count = 77;
  const Status status = EncodeText(fixture.tables(), {text.data(), text.size()}, DefaultAllocator(), {}, &count);
  EXPECT_EQ(status.code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_EQ(count, 0u);
}

TEST(Encoder, BytesWithoutTables) {
  TokenizerTables tables;
  tables.kind = TokenizerKind::kBytes;
  tables.vocab_size = 256;
  const Result<Encoder*> encoder = Encoder::Create(tables, {1, 1}, {{}, DefaultAllocator()});
  ASSERT_TRUE(encoder.ok());
  const std::string text = "0123456789";
  encoder.value()->Begin({text.data(), text.size()}, {});
  int32_t ids[16];
  TextRange ranges[16];
  size_t count = 0;
  ASSERT_TRUE(encoder.value()->Read(ids, ranges, &count).ok());
  EXPECT_EQ(count, 10u);
  EXPECT_EQ(ids[9], '9');
  EXPECT_EQ(ranges[9].begin, 9u);
  EXPECT_EQ(ranges[9].end, 10u);
  Encoder::Destroy(encoder.value());
  tables.kind = TokenizerKind::kNone;
  EXPECT_EQ(Encoder::Measure(tables, {1, 1}).status().code(), TARN_UNSUPPORTED);
}

}  // namespace
}  // namespace tarn
