// tarn tokenize: text to token ids with ranges, and ids to text.
#include <tarn/tokenizer.h>

#include <charconv>
#include <functional>
#include <memory>
#include <string_view>

#include "tools/common/command_line.h"
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
using tarn::tools::Detokenizer;
using tarn::tools::Encoding;
using tarn::tools::Tokenizer;

constexpr size_t kLongText = size_t{1} << 20;  // its tokens would take more memory than it does: they are found twice

struct TokenizeOptions {
  ModelOptions model;
  Input input;
  bool ids = false, offsets = false, json = false, jsonl = false;
  bool no_special = false, plain = false, detokenize = false, keep_special = false;
};

// The tokens of a text, one after the other, as often as they are asked for: memory does not grow with the text.
using Take = Tokenizer::Take;
using TokenList = std::function<void(const Take&)>;

void AppendNumber(uint64_t number, std::string* out) {
  char digits[24];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

// A list of the tokens: `append` gives the JSON of one. `indent` stands before an item, and nothing before the end.
void AppendJsonList(const TokenList& tokens, const std::string& indent, const std::string& end, StdoutBuffer* out,
                    const std::function<void(int32_t, const tarn_text_range&)>& append) {
  bool is_empty = true;
  *out->text() += '[';
  tokens([&](int32_t token, const tarn_text_range& range) {
    if (!is_empty) *out->text() += ',';
    is_empty = false;
    *out->text() += indent;
    append(token, range);
    return out->WriteIfFull();
  });
  if (!is_empty) *out->text() += end;
  *out->text() += ']';
}

// {"ids": [...], "offsets": [[begin, end], ...]}, on one line, or as Json::Dump(2) has it.
void AppendJson(const TokenList& tokens, bool is_indented, StdoutBuffer* out) {
  const auto line = [&](size_t spaces) { return is_indented ? "\n" + std::string(spaces, ' ') : std::string(); };
  const std::string field = line(2), item = line(4), inner = line(6), colon = is_indented ? "\": " : "\":";
  *out->text() += "{" + field + "\"ids" + colon;
  AppendJsonList(tokens, item, field, out,
                 [&](int32_t token, const tarn_text_range&) { AppendNumber(static_cast<uint64_t>(token), out->text()); });
  *out->text() += "," + field + "\"offsets" + colon;
  AppendJsonList(tokens, item, field, out, [&](int32_t, const tarn_text_range& range) {
    *out->text() += "[" + inner;
    AppendNumber(range.begin, out->text());
    *out->text() += "," + inner;
    AppendNumber(range.end, out->text());
    *out->text() += item + "]";
  });
  *out->text() += line(0) + "}\n";
}

// All ids in one line.
void AppendIds(const TokenList& tokens, StdoutBuffer* out) {
  bool is_first = true;
  tokens([&](int32_t token, const tarn_text_range&) {
    if (!is_first) *out->text() += ' ';
    is_first = false;
    AppendNumber(static_cast<uint64_t>(token), out->text());
    return out->WriteIfFull();
  });
  *out->text() += '\n';
}

// A line for every token: its id, with `offsets` its range, and what it adds to the text of the ids before it.
void AppendLines(const TokenList& tokens, bool offsets, const Model& model, StdoutBuffer* out) {
  Detokenizer text(model.get(), /*keep_special=*/true);
  bool is_first = true;
  tokens([&](int32_t token, const tarn_text_range& range) {
    if (!is_first) *out->text() += "\"\n";  // of the line before, to which the end of the text could add
    is_first = false;
    AppendNumber(static_cast<uint64_t>(token), out->text());
    *out->text() += '\t';
    for (const uint64_t place : {uint64_t{range.begin}, uint64_t{range.end}}) {
      if (!offsets) break;
      AppendNumber(place, out->text());
      *out->text() += '\t';
    }
    *out->text() += '"';
    tarn::tools::AppendJsonCharacters(text.Next(token), out->text());
    return out->WriteIfFull();
  });
  if (is_first) return;
  tarn::tools::AppendJsonCharacters(text.Finish(), out->text());
  *out->text() += "\"\n";
}

TokenList TokensOf(const TokenizeOptions& options, Tokenizer* tokenizer, std::string_view text) {
  return [&options, tokenizer, text](const Take& take) {
    size_t count = 0;
    tokenizer->Visit(text, !options.no_special, [&](int32_t token, const tarn_text_range& range) {
      if (++count % 4096 == 0) StopIfInterrupted();
      return take(token, range);
    });
  };
}

TokenList TokensOf(const Encoding& encoding) {
  return [&encoding](const Take& take) {
    for (size_t i = 0; i < encoding.tokens.size(); ++i) {
      if (!take(encoding.tokens[i], encoding.ranges[i])) return;
    }
  };
}

int TokenizeLines(const TokenizeOptions& options, const Model& model, Tokenizer* tokenizer) {
  StdoutBuffer out;
  VisitLines(options.input.file(), [&](const Line& line) {
    StopIfInterrupted();
    if (options.detokenize) {
      *out.text() += JsonLine(Json{{"text", Detokenize(model.get(), IdsOfLine(line), options.keep_special)}});
    } else {
      const std::string text = TextOfLine(line);
      const bool is_long = text.size() > kLongText;
      const Encoding encoding = is_long ? Encoding() : tokenizer->Encode(text, !options.no_special);
      AppendJson(is_long ? TokensOf(options, tokenizer, text) : TokensOf(encoding), /*is_indented=*/false, &out);
    }
    return out.Write();
  });
  return 0;
}

// The ids of the command line or of a text, between spaces or commas.
void VisitGivenIds(const TokenizeOptions& options, std::string_view text, const std::function<bool(int32_t)>& take) {
  const Tokens& given = options.input.tokens();
  if (given.empty()) return VisitIds(text, "the ids", take);
  for (const int32_t id : given) {
    if (!take(id)) return;
  }
}

// Throws UsageError where an id is none of the model: before the text of the others is written.
int DetokenizeIds(const TokenizeOptions& options, const Model& model) {
  InputText ids = options.input.Open();
  ids.DropNewline();
  const char* const source = options.input.tokens().empty() ? "the ids" : "--tokens";
  VisitGivenIds(options, ids.text(), [&](int32_t id) {
    RequireIds({id}, model, model.info().vocab_size, "tokenize", source);
    return true;
  });
  StdoutBuffer out;
  Detokenizer text(model.get(), options.keep_special);
  const auto append = [&](std::string_view part) {
    options.json ? tarn::tools::AppendJsonCharacters(part, out.text()) : static_cast<void>(out.text()->append(part));
    return out.WriteIfFull();
  };
  if (options.json) *out.text() += "{\n  \"text\": \"";
  VisitGivenIds(options, ids.text(), [&](int32_t id) {
    StopIfInterrupted();
    return append(text.Next(id));
  });
  append(text.Finish());
  *out.text() += options.json ? "\"\n}\n" : "\n";
  out.Write();
  return 0;
}

int RunTokenize(const TokenizeOptions& options) {
  const Model model(options.model);
  if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
    throw Failure(model.path() + ": the model has no tokenizer: it takes and gives token ids only");
  }
  if (options.detokenize && !options.jsonl) return DetokenizeIds(options, model);
  Tokenizer tokenizer(model.get(), options.plain);
  if (options.jsonl) return TokenizeLines(options, model, &tokenizer);
  const InputText text = options.input.Open();
  const TokenList tokens = TokensOf(options, &tokenizer, text.text());
  StdoutBuffer out;
  if (options.json) {
    AppendJson(tokens, /*is_indented=*/true, &out);
  } else if (options.ids) {
    AppendIds(tokens, &out);
  } else {
    AppendLines(tokens, options.offsets, model, &out);
  }
  out.Write();
  return 0;
}

}  // namespace

void AddTokenize(App* app, Command* command) {
  App* tokenize = app->add_subcommand("tokenize", "Turn text into token ids, or ids into text");
  const auto options = std::make_shared<TokenizeOptions>();
  RequireModelPath(tokenize, &options->model.path);
  options->input.AddOptions(tokenize, "Text", "Read the text, or ids, from a file", "Input of --detokenize");
  Option* ids = tokenize->add_flag("--ids", options->ids, "Print the ids alone, in one line");
  tokenize->add_flag("--offsets", options->offsets, "Print where in the text each token lies, in bytes")->excludes(ids);
  Option* json =
      tokenize->add_flag("--json", options->json, "Print one JSON object with ids and offsets, or with the text")->excludes(ids);
  tokenize
      ->add_flag("--jsonl", options->jsonl,
                 "Read lines {\"text\": ...}, write lines {\"ids\": [...], \"offsets\": [[begin, end], ...]}; with --detokenize "
                 "the other way")
      ->excludes(ids)
      ->excludes(json);
  Option* no_special =
      tokenize->add_flag("--no-special", options->no_special, "Without the ids that the tokenizer puts before and after a text");
  Option* detokenize = tokenize->add_flag("--detokenize", options->detokenize, "Turn ids into text")->excludes(no_special);
  AddPlain(tokenize, &options->plain)->excludes(detokenize);
  tokenize->add_flag("--keep-special", options->keep_special, "Keep special tokens in the text (default: leave them out)")
      ->needs(detokenize);
  AddModelOptions(tokenize, &options->model);
  tokenize->footer(
      "A line for every token: its id, and what it adds to the text, as a JSON string. If several tokens make one "
      "character, the line of the last one has it.\n"
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
