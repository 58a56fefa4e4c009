#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "core/allocator.h"
#include "core/arith.h"
#include "core/bump.h"
#include "core/result.h"

namespace tarn {
namespace {

TEST(Status, OkHasNoMessage) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), TARN_OK);
  EXPECT_STREQ(status.message(), "");
}

TEST(Status, ContextStandsBeforeTheMessage) {
  const Status status = Error(TARN_IO, "cannot read %d bytes", 7).In("file '%s'", "x");
  EXPECT_EQ(status.code(), TARN_IO);
  EXPECT_STREQ(status.message(), "file 'x': cannot read 7 bytes");
  EXPECT_TRUE(Ok().In("never %d", 1).ok());
}

TEST(Status, LongMessagesAreCutAndTerminated) {
  const std::string lengthy(1000, 'a');
  const Status status = Error(TARN_IO, "%s", lengthy.c_str()).In("%s", lengthy.c_str());
  EXPECT_EQ(std::strlen(status.message()), Status::kMessageBytes - 1);
}

TEST(Status, AMessageIsOneLineThatCannotSteerATerminal) {
  EXPECT_STREQ(Error(TARN_IO, "file '%s'", "a\nb\x1b[2J\x7f").message(), "file 'a?b?[2J?'");
  for (const char* hidden : {"\x9B", "\xC2\x9B", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAE", "\xE2\x81\xA6",
                             "\xEF\xBB\xBF", "\xF3\xA0\x81\x81", "\xED\xA0\x80", "\xC0\x8A", "\xE0\x82\x9B", "\xF5\x80\x80\x80"}) {
    const std::string marks(std::strlen(hidden), '?');
    EXPECT_STREQ(Error(TARN_IO, "a%sb", hidden).message(), ("a" + marks + "b").c_str());
  }
  for (const char* shown : {"caf\xC3\xA9", "\xC2\xA0", "\xE2\x82\xAC", "\xF0\x9F\x90\xBB", "\xF4\x8F\xBF\xBD"}) {
    EXPECT_STREQ(Error(TARN_IO, "%s", shown).message(), shown);
  }
}

TEST(Status, AMessageThatIsCutInACharacterIsUtf8) {
  std::string text = "x";
  for (int i = 0; i < 250; ++i) text += "\xC3\xA9";
  const std::string message = Error(TARN_IO, "%s", ("x" + text).c_str()).message();
  EXPECT_EQ(message.substr(0, 250), "x" + text.substr(0, 249));
  EXPECT_EQ(message.substr(250), "?");
}

TEST(Status, EveryCodeHasWords) {
#define TARN_EXPECT_TEXT(name, number, text)     \
  EXPECT_STREQ(StatusString(TARN_##name), text); \
  EXPECT_EQ(static_cast<int>(TARN_##name), number);
  TARN_STATUS_TABLE(TARN_EXPECT_TEXT)
#undef TARN_EXPECT_TEXT
  EXPECT_STREQ(StatusString(static_cast<tarn_status>(15)), "unknown status");
}

Result<int> Half(int x) {
  if (x % 2 != 0) return Error(TARN_INVALID_ARGUMENT, "%d is odd", x);
  return x / 2;
}

Result<int> Quarter(int x) {
  TARN_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Result, CarriesValueOrStatus) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_STREQ(Quarter(6).status().message(), "3 is odd");
}

TEST(Arith, NoticesOverflow) {
  uint64_t result = 0;
  EXPECT_TRUE(CheckedMul(1ull << 32, (1ull << 32) - 1, &result));
  EXPECT_FALSE(CheckedMul(1ull << 32, 1ull << 32, &result));
  EXPECT_TRUE(CheckedAdd(UINT64_MAX - 1, 1, &result));
  EXPECT_FALSE(CheckedAdd(UINT64_MAX, 1, &result));
  EXPECT_EQ(AlignUp(0), 0u);
  EXPECT_EQ(AlignUp(1), 64u);
  EXPECT_EQ(AlignUp(64), 64u);
}

TEST(Bump, CountsWhatItWouldHandOut) {
  Bump count;
  EXPECT_EQ(count.Take(1), nullptr);
  EXPECT_EQ(count.Take(65), nullptr);
  EXPECT_EQ(count.used(), 64u + 128u + 2 * kRedZone);

  alignas(64) uint8_t block[192 + 2 * kRedZone];
  Bump bump{Span<uint8_t>(block)};
  EXPECT_EQ(bump.Take(1), block);
  EXPECT_EQ(bump.Take(65), block + 64 + kRedZone);
  EXPECT_EQ(bump.Take(1), nullptr);
  Unpoison(block, sizeof(block));
}

TEST(Block, RefusedMemoryIsAnErrorWithTheSize) {
  const Allocator empty = {[](void*, size_t, size_t) -> void* { return nullptr; }, [](void*, void*, size_t) {}, nullptr};
  const Result<Block> block = Block::Allocate(empty, 12345, "thing");
  EXPECT_EQ(block.status().code(), TARN_OUT_OF_MEMORY);
  EXPECT_STREQ(block.status().message(), "thing: cannot allocate 12345 bytes");
}

TEST(Block, MemoryOfTheCallerIsCheckedUsedAndGivenBack) {
  alignas(64) static uint8_t lent[256];
  const Allocator refuses = {[](void*, size_t, size_t) -> void* { return nullptr; }, [](void*, void*, size_t) { FAIL(); }, nullptr};
  const auto from = [&](uint8_t* memory, size_t size_bytes) { return Block::From({{memory, size_bytes}, refuses}, 192, "thing"); };
  EXPECT_EQ(from(nullptr, 0).status().code(), TARN_OUT_OF_MEMORY);
  EXPECT_STREQ(from(nullptr, 192).status().message(), "block is NULL, block_bytes is 192");
  EXPECT_STREQ(from(lent + 4, 192).status().message(), "block lies 4 bytes past a multiple of 64, a multiple expected");
  EXPECT_STREQ(from(lent, 191).status().message(), "thing: the block has 191 bytes, 192 expected");
  EXPECT_EQ(from(lent, 191).status().code(), TARN_BUFFER_TOO_SMALL);
  {
    const Result<Block> block = from(lent, sizeof(lent));
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(block.value().bytes().data(), lent);
    EXPECT_EQ(block.value().bytes().size(), 192u);
    Bump bump(block.value().bytes());
    ASSERT_NE(bump.Take(1), nullptr);  // with AddressSanitizer, what lies behind it is poisoned
  }
  std::memset(lent, 1, sizeof(lent));
}

TEST(Block, GivesBackWhatItTookOnce) {
  struct Counts {
    int live = 0;
    size_t bytes = 0;
  } counts;
  const Allocator counting = {[](void* context, size_t bytes, size_t alignment) -> void* {
                                ++static_cast<Counts*>(context)->live;
                                static_cast<Counts*>(context)->bytes += bytes;
                                return DefaultAllocator().allocate(nullptr, bytes, alignment);
                              },
                              [](void* context, void* pointer, size_t bytes) {
                                --static_cast<Counts*>(context)->live;
                                static_cast<Counts*>(context)->bytes -= bytes;
                                DefaultAllocator().release(nullptr, pointer, bytes);
                              },
                              &counts};
  {
    Result<Block> block = Block::Allocate(counting, 100, "thing");
    Block moved = std::move(block.value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(moved.bytes().data()) % kAlignment, 0u);
    EXPECT_EQ(counts.live, 1);
  }
  EXPECT_EQ(counts.live, 0);
  EXPECT_EQ(counts.bytes, 0u);
}

}  // namespace
}  // namespace tarn
