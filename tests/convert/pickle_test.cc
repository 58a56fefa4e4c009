#include "tools/convert/checkpoint/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/convert/convert_testing.h"

namespace tarn::convert {
namespace {

using std::string_literals::operator""s;

constexpr PickleGlobal kKnown[] = {{"collections", "OrderedDict"}, {"torch", "make"}};

Pickle Read(const std::string& bytes) {
  return ReadPickle(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "p", kKnown);
}

// What stands behind the protocol, up to the end.
Pickle Body(const std::string& body) {
  static std::string bytes;  // which the result borrows
  bytes = "\x80\x02" + body + ".";
  return Read(bytes);
}

const PickleNode& Root(const Pickle& pickle) { return pickle.nodes[pickle.root]; }

TEST(Pickle, Numbers) {
  EXPECT_EQ(Root(Body("N")).kind, PickleKind::kNone);
  EXPECT_EQ(Root(Body("\x88")).integer, 1);
  EXPECT_EQ(Root(Body("\x89")).integer, 0);
  EXPECT_EQ(Root(Body("J\xFE\xFF\xFF\xFF")).integer, -2);
  EXPECT_EQ(Root(Body("K\xFF")).integer, 255);
  EXPECT_EQ(Root(Body("M\x01\x02")).integer, 0x201);
  EXPECT_EQ(Root(Body("\x8A\x00"s)).integer, 0);
  EXPECT_EQ(Root(Body("\x8A\x01\xFF")).integer, -1);
  EXPECT_EQ(Root(Body("\x8A\x02\xFF\x00"s)).integer, 255);
  EXPECT_EQ(Root(Body("\x8B\x01\x00\x00\x00\x07"s)).integer, 7);
  EXPECT_EQ(Root(Body("\x8A\x09"
                      "123456789"))
                .text,
            "123456789");
  EXPECT_EQ(Root(Body("G\x40\x09\x00\x00\x00\x00\x00\x00"s)).number, 3.125);
}

TEST(Pickle, Texts) {
  for (const std::string& body :
       {"X\x02\x00\x00\x00hi"s, "\x8C\x02hi"s, "\x8D\x02\x00\x00\x00\x00\x00\x00\x00hi"s, "U\x02hi"s, "T\x02\x00\x00\x00hi"s}) {
    EXPECT_EQ(Root(Body(body)).kind, PickleKind::kText);
    EXPECT_EQ(Root(Body(body)).text, "hi");
  }
  EXPECT_EQ(Root(Body("C\x01x")).kind, PickleKind::kBytes);
  EXPECT_EQ(Root(Body("B\x01\x00\x00\x00x"s)).text, "x");
}

TEST(Pickle, Containers) {
  EXPECT_EQ(Root(Body("(K\x01K\x02t")).items.size(), 2u);
  EXPECT_EQ(Root(Body("K\x01K\x02K\x03\x87")).items.size(), 3u);
  EXPECT_EQ(Root(Body("](K\x01K\x02"
                      "e"))
                .items.size(),
            2u);
  EXPECT_EQ(Root(Body("]K\x01"
                      "a"))
                .items.size(),
            1u);
  EXPECT_EQ(Root(Body("}K\x01K\x02s")).items.size(), 2u);
  EXPECT_EQ(Root(Body("}(K\x01K\x02K\x03K\x04u")).items.size(), 4u);
  const Pickle itself = Body(
      "]q\x01h\x01"
      "a");  // a list that holds itself
  EXPECT_EQ(Root(itself).items, (std::vector<uint32_t>{itself.root}));
  EXPECT_EQ(Root(Body("K\x05\x94h\x00\x86"s)).items.size(), 2u);
}

TEST(Pickle, CallsAreNodes) {
  const Pickle call = Body("ctorch\nmake\nK\x01\x85R}b");
  EXPECT_EQ(Root(call).kind, PickleKind::kCall);
  EXPECT_EQ(call.nodes[Root(call).items[0]].integer, 1);
  EXPECT_EQ(call.nodes[Root(call).items[1]].items.size(), 1u);
  EXPECT_EQ(Root(Body("\x8C\x05torch\x8C\x04make\x93)R(K\x01K\x02u")).items.size(), 4u);
  EXPECT_EQ(Root(Body("K\x07Q")).kind, PickleKind::kPersistent);
}

TEST(Pickle, GlobalsAreRefusedByTheirNames) {
  for (const char* body : {"cos\nsystem\n", "\x8C\x02os\x8C\x06system\x93", "(ios\nsystem\n", "(\x8C\x02lscos\nsystem\n"}) {
    EXPECT_TRUE(FailsWith([&] { Body(body); }, {"p: byte ", "it names os.system, which no file of tensors needs"})) << body;
  }
  EXPECT_TRUE(FailsWith([] { Body("ctorch\nload\n"); }, {"it names torch.load"}));
  EXPECT_TRUE(FailsWith([] { Body("(icollections\nOrderedDict\n"); }, {"an instance of a class"}));
  EXPECT_TRUE(FailsWith([] { Body("c" + std::string(1000, 'x') + "\n"); }, {"a name without an end"}));
  EXPECT_TRUE(FailsWith([] { Body("N)R"); }, {"a call of None with a tuple"}));
  EXPECT_TRUE(FailsWith([] { Body("]}b"); }, {"attributes for a list"}));
  EXPECT_TRUE(FailsWith([] { Body("K\x01K\x02\x93"); }, {"a global without a name"}));
}

TEST(Pickle, WhatIsDamaged) {
  EXPECT_TRUE(FailsWith([] { Read(""); }, {"p: byte 0: no pickle of protocol 2 to 5"}));
  EXPECT_TRUE(FailsWith([] { Read("\x80\x01N."); }, {"no pickle of protocol 2 to 5"}));
  EXPECT_TRUE(FailsWith([] { Read("\x80\x06N."); }, {"no pickle of protocol 2 to 5"}));
  EXPECT_TRUE(FailsWith([] { Read("\x80\x02N"); }, {"byte 3: ", "ends at byte 3"}));
  EXPECT_TRUE(FailsWith([] { Body(""); }, {"there is no object"}));
  EXPECT_TRUE(FailsWith([] { Body("NN"); }, {"before its objects are complete"}));
  EXPECT_TRUE(FailsWith([] { Body("(N"); }, {"before its objects are complete"}));
  EXPECT_TRUE(FailsWith([] { Body("t"); }, {"there is no mark"}));
  EXPECT_TRUE(FailsWith([] { Body("N(\x85"); }, {"there is no object"}));  // below the mark
  EXPECT_TRUE(FailsWith([] { Body("h\x07"); }, {"object 7 was not put there"}));
  EXPECT_TRUE(FailsWith([] { Body("}(Nu"); }, {"a key without a value"}));
  EXPECT_TRUE(FailsWith([] { Body("NNa"); }, {"items for None"}));
  EXPECT_TRUE(FailsWith([] { Body("\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"); }, {"inside this"}));
  EXPECT_TRUE(FailsWith([] { Body("\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"); }, {"truncated; copy it again"}));
  EXPECT_TRUE(FailsWith([] { Body("o"); }, {"opcode 111, which no file of tensors needs"}));
  EXPECT_TRUE(FailsWith([] { Body(std::string(4'000'001, ')')); }, {"more than 4000000 objects"}));
}

}  // namespace
}  // namespace tarn::convert
