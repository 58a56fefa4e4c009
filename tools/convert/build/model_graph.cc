#include "tools/convert/build/model_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "tools/convert/build/layers.h"
#include "tools/convert/build/model_ops.h"
#include "tools/convert/build/stack.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using format::Slice;
using format::Time;

constexpr char kEmbeddings[] = "model.embeddings";

class ModelGraph {
 public:
  ModelGraph(const ModelConfig& config, GraphBuilder* builder) : c_(config), b_(*builder), ops_(config, builder) {}

  void LanguageModel(const char* program, const std::vector<AttentionOp>& attention) {
    const Slice tokens = Begin(program);
    Stack stack(ops_, "");
    const uint32_t table = ops_.VocabularyMatrix(kEmbeddings, c_.vocab_size);
    const Slice x = Layers(attention, &stack, stack.Embed(tokens, table));
    End(LmHead(stack, table, x));
  }

  void Classification() {
    const Slice tokens = Begin("encode");
    Stack stack(ops_, "");
    Slice x = stack.Embed(tokens, ops_.VocabularyMatrix(kEmbeddings, c_.vocab_size));
    x = stack.FinalNorm(Layers(c_.encoder, &stack, x));
    End(Classifier(x));
  }

  void Seq2Seq() {
    const Slice source = Begin("encode");
    Stack encoder(ops_, "encoder.");
    uint32_t table = ops_.VocabularyMatrix(c_.share_embeddings ? kEmbeddings : "model.encoder.embeddings", c_.source_vocab_size);
    const Slice hidden = encoder.FinalNorm(Layers(c_.encoder, &encoder, encoder.Embed(source, table)));
    Stack decoder(ops_, "decoder.", c_.decoder_block ? &*c_.decoder_block : nullptr);
    const std::vector<std::vector<uint32_t>> states = decoder.WriteSource(c_.cross, hidden);
    if (c_.shortlist) token_set_ = {AddShortlist(*c_.shortlist, source)};
    End(hidden);

    const Slice tokens = Begin("decode");
    if (!c_.share_embeddings) table = ops_.VocabularyMatrix("model.decoder.embeddings", c_.vocab_size);
    Slice x = decoder.Embed(tokens, table);
    for (size_t i = 0; i < c_.decoder.size(); ++i) {
      x = decoder.SelfAttention(i, c_.decoder[i], x);
      x = decoder.CrossAttention(i, c_.cross[i], states[i], x);
      x = decoder.Mlp(i, x);
    }
    End(LmHead(decoder, table, x));
  }

 private:
  Slice Begin(const char* program) {
    b_.BeginProgram(program);
    b_.program().num_inputs = 1;
    return b_.AddValue("tokens", 1, Time::Tokens, format::DType::I32);
  }

  void End(Slice output) { b_.program().outputs = {output.value()}; }

  Slice Layers(const std::vector<AttentionOp>& attention, Stack* stack, Slice x) const {
    for (size_t i = 0; i < attention.size(); ++i) x = stack->Layer(i, attention[i], x);
    return x;
  }

  // The op that finds the tokens that can follow a source; its state.
  uint32_t AddShortlist(const Shortlist& shortlist, Slice source) const {
    b_.Need("shortlist");
    const std::vector<uint32_t> tensors = {b_.AddIntegers("shortlist.offsets", shortlist.offsets),
                                           b_.AddIntegers("shortlist.targets", shortlist.targets)};
    const uint32_t set = b_.AddState({"shortlist", {(c_.vocab_size + 7) / 8}, format::DType::I8, format::Owner::Source});
    b_.AddOp({"shortlist", format::OpAttributes::Shortlist, NoAttributes(format::CreateShortlist), {source}, {}, tensors, {set}});
    return set;
  }

  // The rows that somebody wants logits of are selected first, so that norm and head see no others. `table`: of a tied head.
  Slice LmHead(const Stack& stack, uint32_t table, Slice x) const {
    const Slice selected = b_.AddValue("select_outputs", x.width(), Time::Outputs);
    b_.AddOp({"select_outputs",
              format::OpAttributes::SelectOutputs,
              NoAttributes(format::CreateSelectOutputs),
              {x},
              {selected.value()},
              {},
              {}});
    Slice y = stack.FinalNorm(selected);
    if (c_.head_transform) {
      y = ops_.Dense("lm_head.dense", "lm_head.dense", c_.hidden_size, /*bias=*/true, y);
      y = AddActivation(&b_, "lm_head.act", c_.head_act, y);
      y = ops_.Norm("lm_head.norm", "lm_head.norm", y);
    }
    if (c_.tie_word_embeddings) {
      b_.AddTied({"lm_head.weight", b_.graph().tensors[table].parts[0], "tie_word_embeddings"});
    } else {
      table = ops_.VocabularyMatrix("lm_head", c_.vocab_size);
    }
    std::vector<uint32_t> tensors = {table};
    if (c_.lm_head_bias) {
      tensors.push_back(b_.AddConstant("lm_head.bias", {c_.vocab_size}, {{"lm_head.bias", {c_.vocab_size}, Init::kZero}}));
    }
    const Slice logits = b_.AddValue("logits", c_.vocab_size, Time::Outputs);
    const bool all = token_set_.empty();
    b_.AddOp({"lm_head",
              all ? format::OpAttributes::FullyConnected : format::OpAttributes::DenseShortlist,
              all ? NoAttributes(format::CreateFullyConnected) : NoAttributes(format::CreateDenseShortlist),
              {y},
              {logits.value()},
              std::move(tensors),
              token_set_});
    if (c_.logits_soft_cap > 0) {
      return AddActivation(&b_, "logits.cap", format::ActivationKind::SoftCap, logits, c_.logits_soft_cap);
    }
    return logits;
  }

  Slice Classifier(Slice x) const {
    const Slice pooled = b_.AddValue("pool", x.width(), Time::Fixed, format::DType::F32, 1);
    const auto attributes = [kind = c_.pooling](FlatBufferBuilder& builder) { return format::CreatePool(builder, kind).Union(); };
    b_.AddOp({"pool", format::OpAttributes::Pool, attributes, {x}, {pooled.value()}, {}, {}});
    Slice y = pooled;
    if (c_.head_transform) {
      y = ops_.Dense("classifier.dense", "classifier.dense", c_.hidden_size, /*bias=*/true, y);
      y = AddActivation(&b_, "classifier.act", c_.head_act, y);
      if (c_.head_norm) y = ops_.Norm("classifier.norm", "classifier.norm", y);
    }
    return ops_.Dense("classifier", "classifier", c_.num_labels, /*bias=*/true, y);
  }

  const ModelConfig& c_;
  GraphBuilder& b_;
  const ModelOps ops_;
  std::vector<uint32_t> token_set_;  // the state of a shortlist, if there is one
};

}  // namespace

void BuildModel(const ModelConfig& config, GraphBuilder* builder) {
  Graph& graph = builder->graph();
  graph.task = config.task;
  graph.vocab_size = config.vocab_size;
  if (config.task == format::Task::Seq2Seq) graph.source_vocab_size = config.source_vocab_size;
  graph.bos_token = config.bos_token;
  graph.eos_token = config.eos_token;
  graph.mask_token = config.mask_token;
  graph.first_position = config.first_position;
  graph.tokenizer = config.tokenizer == TokenizerFiles::kBytes ? format::TokenizerKind::Bytes : format::TokenizerKind::None;
  graph.source = config.text;

  ModelGraph model(config, builder);
  switch (config.task) {
    case format::Task::CausalLm:
      model.LanguageModel("decode", config.decoder);
      break;
    case format::Task::Seq2Seq:
      model.Seq2Seq();
      break;
    case format::Task::Classification:
      model.Classification();
      break;
    case format::Task::MaskedLm:
      model.LanguageModel("encode", config.encoder);
      break;
  }
  builder->CheckRules();
}

}  // namespace tarn::convert
