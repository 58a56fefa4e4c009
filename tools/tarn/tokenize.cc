// tarn tokenize: text to token ids with ranges, and ids to text.
#include <tarn/tokenizer.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/common/printable.h"
#include "tools/common/tokenizer.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/input.h"
#include "tools/tarn/json_lines.h"
#include "tools/tarn/model.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using tarn::tools::Detokenize;
using tarn::tools::Encoding;
using tarn::tools::Tokenizer;

struct TokenizeOptions {
  ModelOptions model;
  Input input;
  bool ids = false, offsets = false, json = false, jsonl = false;
  bool no_special = false, plain = false, detokenize = false, keep_special = false;
};

std::vector<std::vector<uint64_t>> Pairs(const std::vector<tarn_text_range>& ranges) {
  std::vector<std::vector<uint64_t>> pairs;
  for (const tarn_text_range& range : ranges) pairs.push_back({range.begin, range.end});
  return pairs;
}

Json EncodingJson(const Encoding& encoding) { return {{"ids", encoding.tokens}, {"offsets", Pairs(encoding.ranges)}}; }

// A line for every token: its id, with --offsets its range, and its text; with --ids all ids in one line.
std::string EncodingText(const TokenizeOptions& options, const Model& model, const Encoding& encoding) {
  std::string text;
  for (size_t i = 0; i < encoding.tokens.size(); ++i) {
    const int32_t token = encoding.tokens[i];
    if (options.ids) {
      text += (i == 0 ? "" : " ") + std::to_string(token);
      continue;
    }
    text += std::to_string(token) + "\t";
    if (options.offsets) text += Format("%zu\t%zu\t", encoding.ranges[i].begin, encoding.ranges[i].end);
    text += tarn::tools::JsonString(Detokenize(model.get(), {token}, /*keep_special=*/true)) + "\n";
  }
  return options.ids ? text + "\n" : text;
}

int TokenizeLines(const TokenizeOptions& options, const Model& model, Tokenizer* tokenizer) {
  for (const Line& line : ReadLines(options.input.file())) {
    StopIfInterrupted();
    const Json answer = options.detokenize ? Json{{"text", Detokenize(model.get(), IdsOfLine(line), options.keep_special)}}
                                           : EncodingJson(tokenizer->Encode(TextOfLine(line), !options.no_special));
    if (!WriteStdout(answer.Dump() + "\n")) break;
  }
  return 0;
}

// Ids between spaces or commas. Throws Failure where one is no id of the model.
Tokens ReadIds(const Input& input, const Model& model) {
  const bool are_given = !input.tokens().empty();
  const Tokens tokens = are_given ? input.tokens() : ParseIds(input.Text(), "the ids");
  RequireIds(tokens, model, model.info().vocab_size, "tokenize", are_given ? "--tokens" : "the ids");
  return tokens;
}

int RunTokenize(const TokenizeOptions& options) {
  const Model model(options.model);
  if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
    throw Failure(model.path() + ": the model has no tokenizer: it takes and gives token ids only");
  }
  Tokenizer tokenizer(model.get(), options.plain);
  if (options.jsonl) return TokenizeLines(options, model, &tokenizer);
  if (options.detokenize) {
    const std::string text = Detokenize(model.get(), ReadIds(options.input, model), options.keep_special);
    WriteStdout(options.json ? JsonText(Json{{"text", text}}) : text + "\n");
    return 0;
  }
  const Encoding encoding = tokenizer.Encode(options.input.Text(/*keep_newline=*/true), !options.no_special);
  WriteStdout(options.json ? JsonText(EncodingJson(encoding)) : EncodingText(options, model, encoding));
  return 0;
}

}  // namespace

void AddTokenize(CLI::App* app, Command* command) {
  CLI::App* tokenize = app->add_subcommand("tokenize", "Turn text into token ids, or ids into text");
  const auto options = std::make_shared<TokenizeOptions>();
  RequireModelPath(tokenize, &options->model.path);
  options->input.AddOptions(tokenize, "Text", "Read the text, or ids, from a file", "Ids for --detokenize");
  CLI::Option* ids = tokenize->add_flag("--ids", options->ids, "Print the ids alone, in one line");
  tokenize->add_flag("--offsets", options->offsets, "Print where in the text each token lies, in bytes")->excludes(ids);
  CLI::Option* json = tokenize->add_flag("--json", options->json, "Print one JSON object with ids and offsets, or with the text");
  tokenize
      ->add_flag("--jsonl", options->jsonl,
                 "Read lines {\"text\": ...}, write lines {\"ids\": [...], \"offsets\": [[begin, end], ...]}; with --detokenize "
                 "the other way")
      ->excludes(json);
  CLI::Option* no_special =
      tokenize->add_flag("--no-special", options->no_special, "Without the ids that the tokenizer puts before and after a text");
  CLI::Option* detokenize = tokenize->add_flag("--detokenize", options->detokenize, "Turn ids into text")->excludes(no_special);
  AddPlain(tokenize, &options->plain)->excludes(detokenize);
  tokenize->add_flag("--keep-special", options->keep_special, "Keep special tokens in the text (default: leave them out)")
      ->needs(detokenize);
  AddModelOptions(tokenize, &options->model);
  tokenize->footer(
      "A line for every token: its id and its text, as a JSON string.\n"
      "Examples (shakespeare-*: examples/models):\n"
      "  tarn tokenize shakespeare-rfa-gate-int8.tarn -p \"To be\" --offsets\n"
      "  printf '{\"text\": \"To be\"}\\n' | tarn tokenize shakespeare-rfa-gate-int8.tarn --jsonl\n"
      "  tarn tokenize shakespeare-rfa-gate-int8.tarn --detokenize --tokens 84,111");
  tokenize->callback([=] {
    options->input.Choose("tokenize");
    if (options->input.is_nothing()) throw UsageError("tokenize: no text, expected one of -p, -f and --tokens");
    if (options->detokenize && (options->ids || options->offsets)) {
      throw UsageError("tokenize: --detokenize gives text, --ids and --offsets are for tokens; expected one of them");
    }
    if (options->jsonl && !options->input.is_file()) throw UsageError("tokenize: --jsonl reads lines of a file, expected -f");
    if (!options->input.tokens().empty() && !options->detokenize) throw UsageError("tokenize: --tokens is for --detokenize");
    *command = [=] { return RunTokenize(*options); };
  });
}

}  // namespace tarn_cli
