// tarn fill: what a masked language model puts where a text has gaps.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/tokenizer.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/files.h"
#include "tools/tarn/input.h"
#include "tools/tarn/probabilities.h"
#include "tools/tarn/report.h"
#include "tools/tarn/sources.h"
#include "tools/tarn/task.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;

struct FillOptions {
  ModelOptions model;
  SessionOptions session;
  Input input;
  std::string mask;  // a token of the text, or an id; empty: "_" and the model's mask token
  uint32_t most = 5;
  bool json = false;
};

struct Gap {
  uint32_t position;
  std::vector<Probability> fillings;
};

// Whether a token is `text`, perhaps behind a space.
bool HasText(const Model& model, int32_t token, const std::string& text) {
  const std::string found = tarn::tools::Detokenize(model.get(), {token}, /*keep_special=*/true);
  const size_t space = found.size() > text.size() && found[0] == ' ' ? 1 : 0;
  return found.compare(space, std::string::npos, text) == 0;
}

// The tokens that `mark` is inside a word and after a space, where it is one token there.
Tokens TokensOfMark(const Model& model, const std::string& mark) {
  tarn::tools::Tokenizer tokenizer(model.get());
  Tokens found;
  for (const std::string& text : {mark, " " + mark}) {
    const Tokens tokens = tokenizer.Encode(text, /*with_template=*/false).tokens;
    // The token of what is unknown has another text.
    if (tokens.size() == 1 && HasText(model, tokens[0], mark)) found.push_back(tokens[0]);
  }
  return found;
}

// What --mask is in a text: a token, or an id.
Tokens GapTokensOfText(const Model& model, const std::string& mark) {
  const Tokens gaps = TokensOfMark(model, mark);
  if (!gaps.empty()) return gaps;
  int32_t id = 0;
  const char* const end = mark.data() + mark.size();
  const auto [read, failed] = std::from_chars(mark.data(), end, id);
  if (failed == std::errc() && read == end && id >= 0) return {id};
  throw UsageError("fill: --mask is '" + mark + "', expected one token of the model's tokenizer, or an id");
}

// What stands for a gap in the input.
Tokens GapTokens(const FillOptions& options, const Model& model) {
  const int32_t mask_token = model.info().mask_token;
  const bool has_ids = !options.input.tokens().empty() || model.info().tokenizer == TARN_TOKENIZER_NONE;
  if (!has_ids) {
    if (!options.mask.empty()) return GapTokensOfText(model, options.mask);
    Tokens gaps = TokensOfMark(model, "_");
    if (mask_token >= 0) gaps.push_back(mask_token);
    if (gaps.empty()) throw UsageError("fill: _ is no token of the model: say with --mask TEXT what marks a gap");
    return gaps;
  }
  if (!options.mask.empty()) {
    const Tokens ids = IdsOption(options.mask, "fill", "--mask");
    RequireIds(ids, model, model.info().source_vocab_size, "fill", "--mask");
    if (ids.size() == 1) return ids;
    throw UsageError(Format("fill: --mask is %zu ids, expected one", ids.size()));
  }
  if (mask_token >= 0) return {mask_token};
  throw UsageError("fill: the model does not say which token is its mask: give it with --mask ID");
}

// Finds the gaps of `tokens` and puts the model's mask token there, if it has one.
std::vector<uint32_t> MaskGaps(const Model& model, const Tokens& gaps, Tokens* tokens) {
  std::vector<uint32_t> positions;
  for (size_t i = 0; i < tokens->size(); ++i) {
    if (std::find(gaps.begin(), gaps.end(), (*tokens)[i]) == gaps.end()) continue;
    positions.push_back(static_cast<uint32_t>(i));
    if (model.info().mask_token >= 0) (*tokens)[i] = model.info().mask_token;
  }
  if (positions.empty()) throw Failure(Format("nothing to fill: no token of the text is the mask, %d", gaps.front()));
  return positions;
}

std::vector<Gap> FillGaps(const FillOptions& options, const Model& model, const Tokens& tokens,
                          const std::vector<uint32_t>& positions) {
  tarn_session_config config = SessionConfig(options.session);
  config.max_source = static_cast<uint32_t>(tokens.size());
  config.max_logits_rows = static_cast<uint32_t>(positions.size());
  const Session session = CreateSession(model, config);
  const float* logits = nullptr;
  tarn_error error;
  Check(tarn_session_fill(session.get(), tokens.data(), tokens.size(), positions.data(), positions.size(), &logits, &error), error);
  std::vector<Gap> gaps;
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint32_t vocab_size = model.info().vocab_size;
    gaps.push_back({positions[i], MostProbable(logits + i * vocab_size, vocab_size, options.most)});
  }
  return gaps;
}

// The text that tokens are; empty for a model without tokenizer.
std::string TextOf(const Model& model, const Tokens& tokens) {
  std::string text;
  if (model.info().tokenizer == TARN_TOKENIZER_NONE) return text;
  std::vector<char> piece(tarn_max_piece_bytes(model.get()));
  tarn_text_decoder decoder = {};
  for (const int32_t token : tokens) {
    tarn_error error;
    size_t size = 0;
    Check(tarn_text_decode(model.get(), &decoder, token, piece.data(), piece.size(), &size, &error), error);
    text.append(piece.data(), size);
  }
  return text.append(piece.data(), tarn_text_finish(&decoder, piece.data()));
}

std::string GapsText(const Model& model, const std::vector<Gap>& gaps) {
  Table table("rrlr");
  table.Add({"position", "token", "text", "probability"});
  for (const Gap& gap : gaps) {
    for (const Probability& filling : gap.fillings) {
      const bool first = &filling == &gap.fillings.front();
      table.Add({first ? std::to_string(gap.position) : "", std::to_string(filling.id),
                 TextOf(model, {static_cast<int32_t>(filling.id)}), Format("%.4f", filling.value)});
    }
  }
  return table.Text();
}

Json GapsJson(const Model& model, const std::vector<Gap>& gaps) {
  Json list = Json::Array();
  for (const Gap& gap : gaps) {
    Json fillings = Json::Array();
    for (const Probability& filling : gap.fillings) {
      fillings.Add(
          {{"token", filling.id}, {"text", TextOf(model, {static_cast<int32_t>(filling.id)})}, {"probability", filling.value}});
    }
    list.Add({{"position", gap.position}, {"fillings", fillings}});
  }
  return list;
}

int Fill(const FillOptions& options) {
  const Model model(options.model);
  RequireTask(model, "fill", {TARN_TASK_MASKED_LM});
  const Input& input = options.input;
  RequireIds(input.tokens(), model, model.info().source_vocab_size, "fill", "--tokens");
  Tokens tokens = input.tokens().empty() ? SourceTokens(model, input.Text(), "the text") : input.tokens();
  const std::vector<uint32_t> positions = MaskGaps(model, GapTokens(options, model), &tokens);
  const std::vector<Gap> gaps = FillGaps(options, model, tokens, positions);
  for (const Gap& gap : gaps) tokens[gap.position] = static_cast<int32_t>(gap.fillings[0].id);
  if (options.json) {
    WriteStdout(JsonText(
        {{"model", model.info().name}, {"tokens", tokens}, {"text", TextOf(model, tokens)}, {"gaps", GapsJson(model, gaps)}}));
    return 0;
  }
  const std::string text = TextOf(model, tokens);
  WriteStdout((text.empty() ? "" : text + "\n\n") + GapsText(model, gaps));
  return 0;
}

}  // namespace

void AddFill(App* app, Command* command) {
  App* fill = app->add_subcommand("fill", "Fill the gaps of a text, with a masked_lm model");
  const auto options = std::make_shared<FillOptions>();
  RequireModelPath(fill, &options->model.path);
  options->input.AddOptions(fill, "Text with gaps", "Read the text from a file", "Text");
  fill->add_option("--mask", options->mask,
                   "What marks a gap: a token of the text (default: _ and the model's mask token), or a token id")
      ->type_name("TEXT|ID");
  AddInteger<uint32_t>(fill, "-k,--top-k", &options->most, "Show the N most probable tokens per gap (default: 5)", 1);
  fill->add_flag("--json", options->json, "Print one JSON object");
  AddSessionOptions(fill, &options->session);
  AddModelOptions(fill, &options->model);
  fill->footer(
      "Prints the text with the most probable tokens, then a table of the alternatives.\n"
      "Examples (tarn-convert --random-weights 1 examples/configs/roberta-base-abc-64.json -o roberta.tarn):\n"
      "  tarn fill roberta.tarn --tokens 0,713,50264,2 --mask 50264\n"
      "With a tokenizer also: tarn fill MODEL -p \"To be, or n_t to be\"");
  fill->callback([=] {
    options->input.Choose("fill");
    if (options->input.is_nothing()) throw UsageError("fill: no text, expected one of -p, -f and --tokens");
    *command = [=] { return Fill(*options); };
  });
}

}  // namespace tarn_cli
