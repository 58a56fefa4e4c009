// tarn state: what saved states hold, and in what two of them differ.
#include <tarn/inspect.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/common/shape_text.h"
#include "tools/common/suggestion.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/model.h"
#include "tools/tarn/report.h"
#include "tools/tarn/state_content.h"

namespace tarn_cli {
namespace {

struct StateOptions {
  ModelOptions model;
  std::string action;
  std::vector<std::string> files;
  bool json = false;
};

std::string Number(uint64_t value) { return std::to_string(value); }

std::string ValueText(double value) { return Format("%.4g", value); }

// What both actions show of a file.
void AddFacts(const StateContent& content, Table* table) {
  const tarn_snapshot_info& info = content.info();
  const auto tokens = content.SequenceTokens();
  const bool is_lockstep = std::all_of(tokens.begin(), tokens.end(), [&](uint64_t of) { return of == info.tokens; });
  table->Add({"position", is_lockstep ? Number(info.tokens) + (info.tokens == 1 ? " token" : " tokens")
                                      : tarn::tools::ShapeText(tokens) + " tokens"});
  if (info.sources > 0) table->Add({"source tokens", tarn::tools::ShapeText(content.SourceTokens())});
  if (const auto& prompt = content.prompt()) {
    table->Add({"prompt cache", Number(prompt->tokens) + " tokens, read in chunks of " + Number(prompt->chunk)});
  }
}

Json FactsJson(const StateContent& content) {
  const tarn_snapshot_info& info = content.info();
  Json json = {{"file", content.path()}, {"tokens", info.tokens}};
  json.Add("sequence_tokens", content.SequenceTokens());
  json.Add("source_tokens", content.SourceTokens());
  const auto& prompt = content.prompt();
  json.Add("prompt_cache", prompt ? Json({{"tokens", prompt->tokens}, {"chunk", prompt->chunk}}) : Json(nullptr));
  return json;
}

Json ModelJson(const StateContent& content, const Model* model) {
  return {{"fingerprint", HexText(content.info().fingerprint)},
          {"name", model == nullptr ? Json(nullptr) : Json(model->info().name)}};
}

// Name, type, shape of a state; of all states where the model is not known.
std::vector<std::string> PartCells(const StatePart& part) {
  if (part.name.empty()) return {"all states", "bytes", tarn::tools::ShapeText(std::vector<uint64_t>{part.bytes})};
  return {part.name, part.dtype, tarn::tools::ShapeText(part.shape)};
}

Json PartJson(const StatePart& part) {
  if (part.name.empty())
    return {{"name", Json(nullptr)}, {"dtype", Json(nullptr)}, {"shape", Json(nullptr)}, {"bytes", part.bytes}};
  return {{"name", part.name}, {"dtype", part.dtype}, {"shape", part.shape}, {"bytes", part.bytes}};
}

const char* NamesHint(const Model* model) { return model == nullptr ? "-m MODEL names the states and reads their numbers\n" : ""; }

// ---- info ----

std::string InfoText(const StateContent& content, const Model* model, const std::vector<StatePart>& parts) {
  const tarn_snapshot_info& info = content.info();
  Table table("ll");
  table.Add({"file", content.path()});
  table.Add({"format", (content.is_delta()     ? "delta snapshot, version "
                        : content.is_compact() ? "compact snapshot, version "
                                               : "snapshot, version ") +
                           Number(info.version)});
  table.Add({"hash", HexText(info.hash)});
  if (content.is_delta()) table.Add({"base", "the snapshot with the hash " + HexText(info.base_hash)});
  table.Add({"model", (model == nullptr ? "" : std::string(model->info().name) + " ") + HexText(info.fingerprint)});
  AddFacts(content, &table);
  table.Add({"sequences", Number(info.sequences)});
  if (info.max_source > 0) table.Add({"longest source", Number(info.max_source) + " tokens"});
  table.Add({"snapshot", Number(info.snapshot_bytes) + " B"});
  const char* const how = content.is_compact() ? "%llu B, stored in %llu B: float32 matrices are rounded to int8"
                          : content.is_delta() ? "%llu B, of these %llu B in blocks that are not as in the base"
                                               : "%llu B, of these %llu B in blocks that are not zero";
  table.Add({"states",
             Format(how, static_cast<unsigned long long>(info.state_bytes), static_cast<unsigned long long>(info.stored_bytes))});
  table.Add({"not in it", "logits, sampler, grammar, text decoder: a snapshot never has them"});
  if (content.is_delta()) return table.Text();
  Table states("lllrrrr");
  states.Add({"state", "type", "shape", "bytes", "not zero", "largest", "not finite"});
  for (const StatePart& part : parts) {
    const StateNumbers numbers = Measure(content, part);
    std::vector<std::string> cells = PartCells(part);
    cells.insert(cells.end(), {Number(part.bytes), Number(numbers.stored_bytes)});
    if (numbers.has_values) cells.insert(cells.end(), {ValueText(numbers.largest), Number(numbers.not_finite)});
    states.Add(std::move(cells));
  }
  return table.Text() + "\nstates of all sequences\n" + states.Text("  ") + NamesHint(model);
}

Json InfoJson(const StateContent& content, const Model* model, const std::vector<StatePart>& parts) {
  const tarn_snapshot_info& info = content.info();
  Json json = FactsJson(content);
  json.Add("format_version", info.version);
  json.Add("hash", HexText(info.hash));
  json.Add("base_hash", content.is_delta() ? Json(HexText(info.base_hash)) : Json(nullptr));
  json.Add("model", ModelJson(content, model));
  json.Add("sequences", info.sequences);
  json.Add("sources", info.sources);
  json.Add("max_source", info.max_source);
  json.Add("snapshot_bytes", info.snapshot_bytes);
  json.Add("state_bytes", info.state_bytes);
  json.Add("stored_bytes", info.stored_bytes);
  json.Add("holds", {{"logits", false}, {"sampler", false}, {"grammar", false}, {"text_decoder", false}});
  Json states = Json::Array();
  for (const StatePart& part : parts) {
    const StateNumbers numbers = Measure(content, part);
    Json state = PartJson(part);
    state.Add("stored_bytes", numbers.stored_bytes);
    state.Add("largest", numbers.has_values ? Json(numbers.largest) : Json(nullptr));
    state.Add("not_finite", numbers.has_values ? Json(numbers.not_finite) : Json(nullptr));
    states.Add(std::move(state));
  }
  json.Add("states", std::move(states));
  return json;
}

std::string Info(const StateOptions& options, const Model* model) {
  const StateContent content(options.files[0]);
  if (model != nullptr) content.ExpectModel(*model);
  const std::vector<StatePart> parts = StateParts(content, model);
  return options.json ? JsonText(InfoJson(content, model, parts)) : InfoText(content, model, parts);
}

// ---- diff ----

struct Differences {
  std::vector<StateDifference> states;  // by part
  bool equal = true;                    // positions and sources too
};

Differences CompareAll(const StateContent& a, const StateContent& b, const std::vector<StatePart>& parts) {
  Differences all;
  all.equal = a.SequenceTokens() == b.SequenceTokens() && a.SourceTokens() == b.SourceTokens();
  for (const StatePart& part : parts) {
    all.states.push_back(Compare(a, b, part));
    all.equal = all.equal && all.states.back().differing == 0;
  }
  return all;
}

std::string RelativeText(const StateDifference& difference) {
  return difference.relative_l2 ? ValueText(*difference.relative_l2) : "a is zero";
}

std::string DiffText(const StateContent& a, const StateContent& b, const Model* model, const std::vector<StatePart>& parts,
                     const Differences& all) {
  std::string text;
  for (const StateContent* content : {&a, &b}) {
    Table table("ll");
    table.Add({content == &a ? "a" : "b", content->path()});
    AddFacts(*content, &table);
    text += table.Text() + "\n";
  }
  if (all.equal) return text + "no difference\n";
  Table states("lllrrrr");
  states.Add({"state", "type", "shape", "differ", "largest |b - a|", "relative L2", "not finite"});
  size_t differing = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const StateDifference& difference = all.states[i];
    differing += difference.differing > 0;
    std::vector<std::string> cells = PartCells(parts[i]);
    cells.push_back(Number(difference.differing) + " of " + Number(difference.elements));
    if (difference.has_values) {
      cells.insert(cells.end(), {ValueText(difference.largest), RelativeText(difference), Number(difference.not_finite)});
    }
    states.Add(std::move(cells));
  }
  text += model == nullptr ? "" : Number(differing) + " of " + Number(parts.size()) + " states differ\n";
  return text + states.Text("  ") + NamesHint(model);
}

Json DiffJson(const StateContent& a, const StateContent& b, const Model* model, const std::vector<StatePart>& parts,
              const Differences& all) {
  Json json = {{"a", FactsJson(a)}, {"b", FactsJson(b)}};
  json.Add("model", ModelJson(a, model));
  json.Add("equal", all.equal);
  Json states = Json::Array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const StateDifference& difference = all.states[i];
    Json state = PartJson(parts[i]);
    state.Add("elements", difference.elements);
    state.Add("differing", difference.differing);
    state.Add("largest_difference", difference.has_values ? Json(difference.largest) : Json(nullptr));
    state.Add("relative_l2", difference.has_values ? Json(difference.relative_l2) : Json(nullptr));
    state.Add("not_finite", difference.has_values ? Json(difference.not_finite) : Json(nullptr));
    states.Add(std::move(state));
  }
  json.Add("states", std::move(states));
  return json;
}

std::string Diff(const StateOptions& options, const Model* model) {
  const StateContent a(options.files[0]), b(options.files[1]);
  b.ExpectSameShape(a);
  for (const StateContent* content : {&a, &b}) {
    if (model != nullptr) content->ExpectModel(*model);
  }
  const std::vector<StatePart> parts = StateParts(a, model);
  const Differences all = CompareAll(a, b, parts);
  return options.json ? JsonText(DiffJson(a, b, model, parts, all)) : DiffText(a, b, model, parts, all);
}

// ---- Command ----

int RunState(const StateOptions& options) {
  std::optional<Model> model;
  if (!options.model.path.empty()) model.emplace(options.model);
  const Model* const known = model ? &*model : nullptr;
  WriteStdout(options.action == "info" ? Info(options, known) : Diff(options, known));
  return 0;
}

void CheckFiles(const StateOptions& options) {
  const std::vector<std::string> actions = {"info", "diff"};
  if (std::find(actions.begin(), actions.end(), options.action) == actions.end()) {
    throw UsageError("state: the action " + tarn::tools::UnknownName(options.action, actions));
  }
  const size_t wanted = options.action == "info" ? 1 : 2;
  if (options.files.size() == wanted) return;
  throw UsageError(Format("state: %s has %zu files, expected %zu: `tarn state %s`", options.action.c_str(), options.files.size(),
                          wanted, wanted == 1 ? "info FILE" : "diff A B"));
}

}  // namespace

void AddState(App* app, Command* command) {
  App* state = app->add_subcommand("state", "Show what saved states hold, or in what two of them differ");
  const auto options = std::make_shared<StateOptions>();
  state->add_option("action", options->action, "What to do: info of a file, or diff of two")->type_name("info|diff")->required();
  state->add_option("file", options->files, "Files that `tarn run --save-state`, /save or the prompt cache wrote")
      ->input_file()
      ->required();
  state->add_option("-m,--model", options->model.path, "Model of the states: names, types and shapes are from it")->input_file();
  state->add_flag("--json", options->json, "Print one JSON object");
  AddModelOptions(state, &options->model);
  state->footer(
      "Without -m the states are shown as bytes. Elements that are not the same bit for bit count as different; NaN and "
      "infinities are counted, and left out of the other numbers. The exit status does not depend on whether states differ.\n"
      "Examples:\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p \"ROMEO:\" -n 20 --save-state a.state\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p \"JULIET:\" -n 20 --save-state b.state\n"
      "  tarn state info a.state\n"
      "  tarn state diff a.state b.state -m shakespeare-rfa-gate-int8.tarn");
  state->callback([=] {
    CheckFiles(*options);
    *command = [=] { return RunState(*options); };
  });
}

}  // namespace tarn_cli
