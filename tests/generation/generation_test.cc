// Sampler, grammar and text stream go back with the session: what they give from a place on is the same every time.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tarn/checkpoints.h"
#include "tarn/grammar.h"

namespace {

constexpr char kModel[] = "examples/models/shakespeare-rfa-gate-int8.tarn";
constexpr uint64_t kRingBytes = uint64_t{64} << 20;

tarn_error error;

#define OK(call) ASSERT_EQ(call, TARN_OK) << error.message

template <typename T>
using Owner = std::unique_ptr<T, void (*)(T*)>;

// What makes a text, and the text: a token and what the stream gives out for it, by position.
class Text {
 public:
  struct Piece {
    int32_t token;
    std::string text;
    bool operator==(const Piece& other) const { return token == other.token && text == other.text; }
  };

  void Create(const std::string& rules, const tarn_sampler_config& chain, uint32_t grammar_bytes = 0) {
    tarn_source source = TARN_SOURCE_INIT;
    source.path = kModel;
    tarn_model* model = nullptr;
    OK(tarn_model_open(&source, nullptr, &model, &error));
    model_.reset(model);
    tarn_session* session = nullptr;
    OK(tarn_session_create(model, nullptr, &session, &error));
    session_.reset(session);
    tarn_sampler_config config = chain;
    if (!rules.empty()) {
      tarn_grammar* grammar = nullptr;
      OK(tarn_grammar_create(model, rules.data(), rules.size(), nullptr, &grammar, &error));
      grammar_.reset(grammar);
      config.grammar = grammar;
    }
    tarn_sampler* sampler = nullptr;
    OK(tarn_sampler_create(256, &config, &sampler, &error));
    sampler_.reset(sampler);
    const tarn_stop_string stops[] = {{"zzzz", 4}, {"the quick brown fox", 19}};
    tarn_text_stream_config text = TARN_TEXT_STREAM_CONFIG_INIT;
    text.stop_strings = stops;
    text.stop_string_count = 2;
    tarn_text_stream* stream = nullptr;
    OK(tarn_text_stream_create(model, &text, &stream, &error));
    stream_.reset(stream);
    tarn_generation generation = TARN_GENERATION_INIT;
    generation.session = session;
    generation.sampler = sampler;
    generation.grammar = grammar_.get();
    generation.text_stream = stream;
    tarn_checkpoints_config checkpoints = TARN_CHECKPOINTS_CONFIG_INIT;
    checkpoints.ring_bytes = kRingBytes;
    checkpoints.spacing = 25;
    checkpoints.grammar_bytes = grammar_bytes;
    tarn_checkpoints* created = nullptr;
    OK(tarn_checkpoints_create(&generation, &checkpoints, &created, &error));
    checkpoints_.reset(created);
  }

  void Prompt(const std::string& prompt) { Read(prompt, /*is_fed=*/false); }

  // In one call; `is_fed`: as what the model generated.
  void Read(const std::string& bytes, bool is_fed) {
    const auto take = is_fed ? tarn_text_stream_feed : tarn_text_stream_prompt;
    std::vector<int32_t> tokens;
    for (const char byte : bytes) tokens.push_back(static_cast<unsigned char>(byte));
    OK(tarn_session_prefill(session_.get(), tokens.data(), tokens.size(), &logits_, &error));
    for (const int32_t token : tokens) {
      tarn_sampler_accept(sampler_.get(), token);
      OK(take(stream_.get(), token, buffer_, sizeof(buffer_), &size_, &error));
      pieces_.push_back({token, std::string(buffer_, size_)});
    }
    OK(tarn_checkpoints_record(checkpoints_.get(), tokens.data(), tokens.size(), logits_, &error));
  }

  void Go(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      int32_t token = 0;
      OK(tarn_sampler_sample(sampler_.get(), logits_, &token, &error));
      OK(tarn_text_stream_feed(stream_.get(), token, buffer_, sizeof(buffer_), &size_, &error));
      pieces_.push_back({token, std::string(buffer_, size_)});
      OK(tarn_session_step(session_.get(), &token, &logits_, &error));
      OK(tarn_checkpoints_record(checkpoints_.get(), &token, 1, logits_, &error));
    }
  }

  void BackTo(uint64_t position) {
    OK(tarn_checkpoints_rewind(checkpoints_.get(), position, &logits_, &error));
    ASSERT_EQ(tarn_session_tokens(session_.get()), position);
    pieces_.resize(position);
  }

  void BackToTag(uint64_t tag, uint64_t position) {
    OK(tarn_checkpoints_rewind_to_tag(checkpoints_.get(), tag, &logits_, &error));
    ASSERT_EQ(tarn_session_tokens(session_.get()), position);
    pieces_.resize(position);
  }

  tarn_sampler* sampler() { return sampler_.get(); }
  tarn_checkpoints* checkpoints() { return checkpoints_.get(); }
  const float* logits() const { return logits_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  Owner<tarn_model> model_{nullptr, tarn_model_close};
  Owner<tarn_session> session_{nullptr, tarn_session_destroy};
  Owner<tarn_grammar> grammar_{nullptr, tarn_grammar_destroy};
  Owner<tarn_sampler> sampler_{nullptr, tarn_sampler_destroy};
  Owner<tarn_text_stream> stream_{nullptr, tarn_text_stream_destroy};
  Owner<tarn_checkpoints> checkpoints_{nullptr, tarn_checkpoints_destroy};
  const float* logits_ = nullptr;
  char buffer_[1000];
  size_t size_ = 0;
  std::vector<Piece> pieces_;
};

tarn_sampler_config EveryState() {
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  chain.seed = 5;
  chain.repeat_penalty = 1.1f;
  chain.dry_multiplier = 0.5f;
  chain.mirostat = 2;
  return chain;
}

void ExpectSameText(const std::string& rules, const tarn_sampler_config& chain) {
  Text plain, rewound;
  plain.Create(rules, chain);
  rewound.Create(rules, chain);
  constexpr size_t kPrompt = 21, kTokens = 300;
  for (Text* text : {&plain, &rewound}) text->Prompt("ROMEO: the quick brow");
  plain.Go(kTokens);
  std::mt19937 random(3);
  while (rewound.pieces().size() < kPrompt + kTokens) {
    rewound.Go(std::min<size_t>(1 + random() % 60, kPrompt + kTokens - rewound.pieces().size()));
    if (random() % 3 != 0) rewound.BackTo(std::max<size_t>(kPrompt, rewound.pieces().size() - random() % 40));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(rewound.pieces(), plain.pieces());
  rewound.BackTo(kPrompt);
  rewound.Go(kTokens);
  EXPECT_EQ(rewound.pieces(), plain.pieces());
}

TEST(Generation, TheTextIsTheSameEveryTime) { ExpectSameText("", EveryState()); }

TEST(Generation, WithXtcAndPenalties) {
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  chain.xtc_probability = 0.5f;
  chain.frequency_penalty = 0.1f;
  ExpectSameText("", chain);
}

TEST(Generation, AGrammarGoesBackToo) {
  ExpectSameText(
      "root ::= list\nlist ::= \"[\" item (\", \" item)* \"]\"\nitem ::= list | [a-z ]{2,9} | \"\\\"\" [^\"]{20,} \"\\\"\"\n",
      EveryState());
}

TEST(Generation, AnotherSeedIsAnotherText) {
  Text text;
  text.Create("", EveryState());
  text.Prompt("JULIET: ");
  OK(tarn_checkpoints_mark(text.checkpoints(), 1, text.logits(), &error));
  text.Go(60);
  const std::vector<Text::Piece> first = text.pieces();
  text.BackTo(8);
  tarn_sampler_set_seed(text.sampler(), 6);
  OK(tarn_checkpoints_mark(text.checkpoints(), 2, text.logits(), &error));
  text.Go(60);
  const std::vector<Text::Piece> second = text.pieces();
  EXPECT_FALSE(first == second);
  text.BackTo(30);
  text.Go(38);
  EXPECT_EQ(text.pieces(), second);
  text.BackToTag(1, 8);
  text.Go(60);
  EXPECT_EQ(text.pieces(), first);
}

TEST(Generation, WhatComesAfterATagIsForgottenWhereItStands) {
  Text text;
  text.Create("", EveryState());
  text.Prompt("JULIET: ");
  OK(tarn_checkpoints_mark(text.checkpoints(), 1, text.logits(), &error));
  text.Go(40);
  const std::vector<Text::Piece> first = text.pieces();
  text.BackTo(8);
  tarn_sampler_set_seed(text.sampler(), 6);
  OK(tarn_checkpoints_mark(text.checkpoints(), 2, text.logits(), &error));
  text.BackToTag(1, 8);
  text.BackTo(8);
  text.Go(40);
  EXPECT_EQ(text.pieces(), first);
  EXPECT_EQ(tarn_checkpoints_rewind_to_tag(text.checkpoints(), 2, nullptr, &error), TARN_NOT_FOUND);
}

TEST(Generation, ASeedThatWasMarkedHoldsInTheMiddleOfTheNextCall) {
  Text expected, rewound;
  for (Text* text : {&expected, &rewound}) {
    text->Create("", EveryState());
    text->Prompt("JULIET: ");
    tarn_sampler_set_seed(text->sampler(), 6);
    OK(tarn_checkpoints_mark(text->checkpoints(), 1, text->logits(), &error));
  }
  expected.Prompt("a");
  rewound.Prompt("abc");
  rewound.BackTo(9);
  for (Text* text : {&expected, &rewound}) text->Go(30);
  EXPECT_EQ(rewound.pieces(), expected.pieces());
}

// In the middle of a call, the text has taken the call's tokens up to there, in the way it took them the first time.
TEST(Generation, ARewindIntoACallTakesTheTextThere) {
  const std::string prompt = "a\xC3\xA9zz\xE2\x82\xAC";  // a, é, zz (which may become a stop string), €
  for (const bool is_fed : {false, true}) {
    for (size_t position = 1; position <= prompt.size(); ++position) {
      Text once, rewound;
      for (Text* text : {&once, &rewound}) text->Create("", EveryState());
      once.Read(prompt.substr(0, position), is_fed);
      rewound.Read("b", is_fed);
      rewound.BackTo(0);
      rewound.Read(prompt, is_fed);
      rewound.BackTo(position);
      for (Text* text : {&once, &rewound}) text->Read("\xA9zz\x82\xAC", true);
      EXPECT_EQ(rewound.pieces(), once.pieces()) << position << " of the tokens, " << (is_fed ? "fed" : "of a prompt");
      rewound.BackTo(position);
      rewound.Read("\xA9zz\x82\xAC", true);
      EXPECT_EQ(rewound.pieces(), once.pieces()) << position << " of the tokens, again";
      rewound.BackTo(position / 2);
      once.BackTo(position / 2);
      for (Text* text : {&once, &rewound}) text->Read("\xA9zz", true);
      EXPECT_EQ(rewound.pieces(), once.pieces()) << position / 2 << " of the tokens, after that";
    }
  }
}

// Rules that nest deeper than a checkpoint has room for.
TEST(Generation, AGrammarThatNeedsMoreRoomIsNamed) {
  const tarn_logit_bias deeper = {'(', 100};
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  chain.logit_bias = &deeper;
  chain.logit_bias_count = 1;
  Text text;
  text.Create("root ::= \"(\" (root | \"x\") \")\"\n", chain, /*grammar_bytes=*/200);
  text.Prompt("A");
  text.Go(100);
  EXPECT_EQ(tarn_checkpoints_mark(text.checkpoints(), 1, nullptr, &error), TARN_CONTEXT_FULL);
  EXPECT_NE(std::string(error.message).find("a checkpoint has room for 200 (grammar_bytes)"), std::string::npos) << error.message;
  // Those that the log reaches from a checkpoint before are there all the same.
  const std::vector<Text::Piece> all = text.pieces();
  text.BackTo(70);
  text.Go(31);
  EXPECT_EQ(text.pieces(), all);
}

}  // namespace
