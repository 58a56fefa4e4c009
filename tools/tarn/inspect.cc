// tarn inspect: what is in a model file, and what this machine can run.
#include <tarn/chat.h>
#include <tarn/inspect.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/output_file.h"
#include "tools/common/shape_text.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/environment.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/graph_drawing.h"
#include "tools/tarn/model.h"
#include "tools/tarn/program_graph.h"
#include "tools/tarn/report.h"
#include "tools/tarn/task.h"

namespace tarn_cli {
namespace {

struct InspectOptions {
  ModelOptions model;
  SessionOptions session;
  uint32_t batch = 1;
  bool json = false;
  // Sections. None chosen: all of the model's.
  bool cpu = false;
  bool ops = false;
  bool states = false;
  bool tensors = false;
  std::string graph;
};

// Nothing: the model has no chat template.
std::optional<tarn_chat_info> ChatInfo(const Model& model) {
  tarn_chat_info info = TARN_CHAT_INFO_INIT;
  tarn_error error;
  const tarn_status status = tarn_chat_get_info(model.get(), &info, &error);
  if (status == TARN_NOT_FOUND) return std::nullopt;
  Check(status, error);
  return info;
}

const char* TokenizerText(tarn_tokenizer_kind kind) {
  switch (kind) {
    case TARN_TOKENIZER_NONE:
      return "none";
    case TARN_TOKENIZER_BYTES:
      return "bytes";
    case TARN_TOKENIZER_BPE:
      return "bpe";
    case TARN_TOKENIZER_UNIGRAM:
      return "unigram";
    case TARN_TOKENIZER_WORDPIECE:
      return "wordpiece";
    case TARN_TOKENIZER_WORDLEVEL:
      return "wordlevel";
    case TARN_TOKENIZER_LONGEST:
      return "longest";
  }
  return "unknown";
}

std::vector<std::string> IsaNames() {
  std::vector<std::string> names;
  for (size_t i = 0; tarn_isa_name(i) != nullptr; ++i) names.push_back(tarn_isa_name(i));
  return names;
}

std::string FormatVersion(const tarn_model_info& info) {
  return std::to_string(info.format_major) + "." + std::to_string(info.format_minor);
}

// ---- Tables ----

const char* VerifiedText(tarn_verified verified) {
  switch (verified) {
    case TARN_VERIFIED_NOT:
      return "not verified";
    case TARN_VERIFIED_NOW:
      return "verified";
    case TARN_VERIFIED_BEFORE:
      return "verified before";
  }
  return "unknown";
}

std::string Number(uint64_t value) { return std::to_string(value); }

std::string Bound(uint64_t tokens) { return tokens == UINT64_MAX ? "unbounded" : Number(tokens) + " tokens"; }

std::string CpuText() {
  std::string names;
  for (const std::string& name : IsaNames()) names += (names.empty() ? "" : " ") + name;
  Table table("ll");
  table.Add({"kernels", names});
  table.Add({"fast cores", Number(tarn_fast_cores())});
  table.Add({"default threads", Number(tarn_default_threads())});
  return table.Text();
}

std::string HeaderText(const Model& model) {
  const tarn_model_info& info = model.info();
  Table table("ll");
  table.Add({"name", info.name});
  table.Add({"task", TaskName(info.task)});
  table.Add({"precision", info.precision});
  if (info.eval_scored > 0) {
    table.Add({"loss", Format("%.6f nats/token, in f32 %.6f (%+.6f), over %llu tokens", info.eval_nats, info.eval_nats_f32,
                              info.eval_nats - info.eval_nats_f32, static_cast<unsigned long long>(info.eval_scored))});
  }
  table.Add({"parameters", Number(info.parameters)});
  table.Add({"vocabulary", Number(info.vocab_size)});
  if (info.num_labels > 0) table.Add({"labels", Number(info.num_labels)});
  table.Add({"tokenizer", TokenizerText(info.tokenizer)});
  if (const auto chat = ChatInfo(model)) {
    table.Add({"chat template", std::string(chat->name) + (chat->takes_system != 0 ? "" : ", without system texts")});
  }
  if (info.bos_token >= 0) table.Add({"begin token", Number(static_cast<uint64_t>(info.bos_token))});
  if (info.eos_token >= 0) table.Add({"end token", Number(static_cast<uint64_t>(info.eos_token))});
  if (info.mask_token >= 0) table.Add({"mask token", Number(static_cast<uint64_t>(info.mask_token))});
  if (info.max_context > 0) table.Add({"context", Bound(info.max_context)});
  if (info.max_source_tokens > 0) table.Add({"longest source", Bound(info.max_source_tokens)});
  table.Add({"first position", Number(info.first_position)});
  table.Add({"file format", FormatVersion(info)});
  table.Add({"weights", VerifiedText(info.weights_verified)});
  table.Add({"fingerprint", HexText(info.fingerprint)});
  table.Add({"kernels", info.isa});
  table.Add({"dense layers", std::string(info.dense) +
                                 (info.packed_from_cache != 0 ? ", from the packed cache: --verify checks the file's own" : "")});
  return table.Text();
}

// The name of an op's kind in the schema: "silu_mul" is SiluMul.
std::string SchemaName(const std::string& kind) {
  std::string name;
  bool capital = true;
  for (const char letter : kind) {
    if (letter != '_') name += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    capital = letter == '_';
  }
  return name;
}

std::string OpsText(const Model& model) {
  Table table("lllrr"), operands("lll");
  operands.Add({"op", "reads", "writes"});
  table.Add({"op", "kind", "detail", "state B", "smaller than a KV cache after"});
  std::vector<std::string> kinds;
  std::string linked;
  for (const tarn_op_info& op : List(model, tarn_model_op)) {
    const std::string kind = SchemaName(op.kind);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      linked += (kinds.empty() ? "" : ",") + kind;
      kinds.push_back(kind);
    }
    table.Add({op.name, op.kind, op.detail, op.state_bytes == 0 ? "" : Number(op.state_bytes),
               op.kv_break_even_tokens == 0 ? "" : Number(op.kv_break_even_tokens) + " tokens"});
    operands.Add({op.name, op.inputs, op.outputs});
  }
  return "\nops, in the order in which they run\n" + table.Text("  ") + "\nwhat they read, with its columns, and write\n" +
         operands.Text("  ") + "\na library that links only these ops: -DTARN_OPS=" + linked + "\n";
}

// What is stored: states or tensors, and their sum.
template <typename Info>
std::string StorageText(const std::string& heading, const std::string& what, const std::vector<Info>& items) {
  Table table("lllr");
  table.Add({what, "type", "shape", "bytes"});
  uint64_t total = 0;
  for (const Info& item : items) {
    const std::vector<uint32_t> shape(item.shape, item.shape + item.rank);
    table.Add({item.name, item.dtype, tarn::tools::ShapeText(shape), Number(item.data_bytes)});
    total += item.data_bytes;
  }
  table.Add({"total", "", "", Number(total)});
  return "\n" + heading + "\n" + table.Text("  ");
}

// ---- JSON ----

Json CpuJson() { return {{"kernels", IsaNames()}, {"fast_cores", tarn_fast_cores()}, {"default_threads", tarn_default_threads()}}; }

// null: no bound
Json BoundJson(uint64_t tokens) { return tokens == UINT64_MAX ? Json(nullptr) : Json(tokens); }

Json HeaderJson(const Model& model) {
  const tarn_model_info& info = model.info();
  Json json = Json::Object();
  json.Add("name", info.name);
  json.Add("task", TaskName(info.task));
  json.Add("precision", info.precision);
  if (info.eval_scored > 0) {
    json.Add("eval",
             {{"scored", info.eval_scored}, {"nats_per_token_f32", info.eval_nats_f32}, {"nats_per_token", info.eval_nats}});
  }
  json.Add("parameters", info.parameters);
  json.Add("vocab_size", info.vocab_size);
  json.Add("tokenizer", TokenizerText(info.tokenizer));
  if (const auto chat = ChatInfo(model)) {
    const std::vector<int32_t> ends(chat->end_tokens, chat->end_tokens + chat->end_token_count);
    json.Add("chat_template", {{"name", chat->name}, {"takes_system", chat->takes_system != 0}, {"end_tokens", ends}});
  }
  json.Add("max_context", BoundJson(info.max_context));
  json.Add("max_source_tokens", BoundJson(info.max_source_tokens));
  json.Add("source_vocab_size", info.source_vocab_size);
  json.Add("num_labels", info.num_labels);
  json.Add("bos_token", info.bos_token);
  json.Add("eos_token", info.eos_token);
  json.Add("mask_token", info.mask_token);
  json.Add("first_position", info.first_position);
  json.Add("format_version", FormatVersion(info));
  json.Add("weights_verified", info.weights_verified != TARN_VERIFIED_NOT);
  json.Add("fingerprint", HexText(info.fingerprint));
  json.Add("isa", info.isa);
  json.Add("dense", info.dense);
  json.Add("packed_from_cache", info.packed_from_cache != 0);
  return json;
}

Json OpsJson(const Model& model) {
  Json json = Json::Array();
  for (const tarn_op_info& op : List(model, tarn_model_op)) {
    json.Add({{"name", op.name},
              {"kind", op.kind},
              {"inputs", op.inputs},
              {"outputs", op.outputs},
              {"detail", op.detail},
              {"state_bytes", op.state_bytes},
              {"kv_break_even_tokens", op.kv_break_even_tokens}});
  }
  return json;
}

template <typename Info>
Json ArraysJson(const std::vector<Info>& list) {
  Json json = Json::Array();
  for (const Info& info : list) {
    json.Add({{"name", info.name},
              {"dtype", info.dtype},
              {"shape", std::vector<uint32_t>(info.shape, info.shape + info.rank)},
              {"bytes", info.data_bytes}});
  }
  return json;
}

// ---- Picture ----

void WriteGraph(const InspectOptions& options, const Model& model) {
  const tarn_model_info& info = model.info();
  uint64_t tensors = 0, states = 0;
  for (const tarn_tensor_info& tensor : List(model, tarn_model_tensor)) tensors += tensor.data_bytes;
  for (const tarn_state_info& state : List(model, tarn_model_state)) states += state.data_bytes;
  const std::string about =
      Format("%s, %s, %llu parameters; tensors %s, states of one sequence %s", TaskName(info.task), info.precision,
             static_cast<unsigned long long>(info.parameters), FormatBytes(tensors).c_str(), FormatBytes(states).c_str());
  const std::string svg = DrawGraph(info.name, about, BuildGraph(model));
  tarn::tools::OutputFile file(options.graph, {options.model.path});
  file.Write(svg.data(), svg.size());
  file.Commit();
}

// ---- Command ----

int Inspect(InspectOptions options) {
  const bool needs_model = !options.cpu || !options.graph.empty();
  if (options.model.path.empty() && needs_model) options.model.path = Environment("TARN_MODEL");
  if (options.model.path.empty() && needs_model)
    throw UsageError("inspect: no model, expected `tarn inspect MODEL` or `tarn inspect --cpu`");
  std::string text = options.cpu ? CpuText() : "";
  Json json = Json::Object();
  if (options.cpu) json.Add("cpu", CpuJson());
  if (!options.model.path.empty()) {
    const bool all = !options.ops && !options.states && !options.tensors && options.graph.empty();
    const Model model(options.model);
    if (!options.graph.empty()) WriteGraph(options, model);
    tarn_session_config config = SessionConfig(options.session);
    config.batch = options.batch;
    const tarn_memory memory = model.Requirements(config);
    if (options.json) {
      json.Add("model", HeaderJson(model));
      json.Add("session", {{"batch", config.batch}, {"max_chunk", config.max_chunk}, {"threads", config.threads}});
      json.Add("memory", MemoryJson(memory));
      if (all || options.ops) json.Add("ops", OpsJson(model));
      if (all || options.states) json.Add("states", ArraysJson(List(model, tarn_model_state)));
      if (all || options.tensors) json.Add("tensors", ArraysJson(List(model, tarn_model_tensor)));
    } else {
      text += (options.cpu ? "\n" : "") + HeaderText(model);
      text += Format("\nmemory (%u sequence%s, chunks of %u, %u thread%s)\n", config.batch, config.batch == 1 ? "" : "s",
                     config.max_chunk, config.threads, config.threads == 1 ? "" : "s");
      text += MemoryText(memory);
      if (all || options.ops) text += OpsText(model);
      if (all || options.states) text += StorageText("states of one sequence", "state", List(model, tarn_model_state));
      if (all || options.tensors) text += StorageText("tensors", "tensor", List(model, tarn_model_tensor));
    }
  }
  WriteStdout(options.json ? JsonText(json) : text);
  return 0;
}

}  // namespace

void AddInspect(App* app, Command* command) {
  App* inspect = app->add_subcommand("inspect", "Show what a model contains, or what this machine can run");
  const auto options = std::make_shared<InspectOptions>();
  AddModelPath(inspect, &options->model.path);
  inspect->add_flag("--json", options->json, "Print one JSON object");
  inspect->add_flag("--cpu", options->cpu, "Show kernels, fast cores and default threads of this machine; needs no model");
  inspect->add_flag("--ops", options->ops,
                    "Show the ops. If none of --ops, --states, --tensors and --graph is given, ops, states and tensors are shown");
  inspect->add_flag("--states", options->states, "Show the states");
  inspect->add_flag("--tensors", options->tensors, "Show the tensors");
  inspect
      ->add_option("--graph", options->graph,
                   "Draw the programs into an SVG file: ops, states, tensors; layers that are alike are drawn once")
      ->output_file();
  tarn::tools::AddInteger<uint32_t>(inspect, "--batch", &options->batch,
                                    "Sequences of the session whose memory is shown (default: 1)", 1);
  AddSessionOptions(inspect, &options->session);
  AddModelOptions(inspect, &options->model);
  inspect->footer(
      "Examples:\n"
      "  tarn inspect shakespeare-rfa-gate-int8.tarn\n"
      "  tarn inspect shakespeare-rfa-gate-int8.tarn --states --batch 4\n"
      "  tarn inspect shakespeare-rfa-gate-int8.tarn --graph program.svg\n"
      "  tarn inspect --cpu");
  inspect->callback([=] { *command = [=] { return Inspect(*options); }; });
}

}  // namespace tarn_cli
