#include "tools/convert/chat/chat_template.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/text/tokenizer_tables.h"
#include "tools/convert/chat/chat_fit.h"
#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/chat/known_templates.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/tokenizer/component.h"
#include "tools/convert/tokenizer/folder.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kMaxTemplateBytes = uint64_t{16} << 20;
constexpr char kAdvice[] = "; --chat-template NAME gives the model a known one";

// A Jinja template, or the value that should have one, and where it stands.
struct Source {
  Json value;
  std::string where;
};

// Nothing: the checkpoint has none.
std::optional<Source> FindSource(const std::string& folder, const TokenizerConfig& config) {
  const std::string beside = folder + "/chat_template.jinja";
  if (IsFile(beside)) return Source{ReadFile(beside, kMaxTemplateBytes), beside};
  const auto found = config.config().find("chat_template");
  if (found == config.config().end() || found->is_null()) return std::nullopt;
  return Source{*found, config.path() + ": chat_template"};
}

// Errors: neither a text nor a list with a template of the name "default".
std::string TemplateText(const Json& value) {
  if (value.is_string()) return value;
  if (!value.is_array()) Fail(ValueText(value), ", a text or a list expected");
  std::string names;
  for (const Json& one : value) {
    const bool is_one = one.is_object() && one.contains("name") && one["name"].is_string() && one.contains("template") &&
                        one["template"].is_string();
    if (!is_one) Fail(ValueText(one), ", an object with \"name\" and \"template\" expected");
    if (one["name"] == "default") return one["template"];
    names += (names.empty() ? "" : ", ") + one["name"].get<std::string>();
  }
  Fail("a template of the name \"default\" expected, found ", names.empty() ? "none" : names);
}

// bos_token and the like, as the template sees them.
std::vector<std::pair<std::string, std::string>> SpecialTexts(const TokenizerConfig& config) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    if (const std::optional<std::string> text = config.SpecialToken(key)) texts.emplace_back(key, *text);
  }
  return texts;
}

// The special token that `text` begins with, the longest one; -1: none.
int32_t LeadingSpecial(const TokenizerData& tokenizer, std::string_view text) {
  int32_t found = -1;
  size_t longest = 0;
  for (size_t id = 0, begin = 0; id < tokenizer.piece_ends.size(); begin = tokenizer.piece_ends[id++]) {
    const size_t bytes = tokenizer.piece_ends[id] - begin;
    if ((tokenizer.special[id] & kSpecialPiece) == 0 || bytes <= longest || bytes > text.size()) continue;
    if (!std::equal(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bytes),
                    tokenizer.pieces.begin() + static_cast<std::ptrdiff_t>(begin),
                    [](char left, uint8_t right) { return static_cast<uint8_t>(left) == right; }))
      continue;
    found = static_cast<int32_t>(id);
    longest = bytes;
  }
  return found;
}

// What ends an answer: the end token, those of generation_config.json, and the special token that follows an answer.
std::vector<uint32_t> EndTokens(const ChatRequest& request, const ChatData& chat) {
  std::vector<uint32_t> ids;
  const auto add = [&](int64_t id) {
    const bool is_new = id >= 0 && id < request.vocab_size && std::find(ids.begin(), ids.end(), id) == ids.end();
    if (is_new) ids.push_back(static_cast<uint32_t>(id));
  };
  if (request.tokenizer == nullptr) return ids;
  add(LeadingSpecial(*request.tokenizer, StripSpaces(chat.next.before, true, false)));
  add(request.eos_token);
  const Json config = ReadObjectIfThere(request.folder + "/generation_config.json");
  const Json ends = config.value("eos_token_id", Json());
  for (const Json& id : ends.is_array() ? ends : Json::array({ends})) {
    if (const std::optional<uint32_t> number = TokenId(id)) add(*number);
  }
  return ids;
}

// Where no token of the template ends an answer, a note that says so.
void NoteEnds(const ChatRequest& request, const ChatData& chat, std::vector<std::string>* notes) {
  const std::string_view behind = StripSpaces(chat.next.before, true, false);
  const bool has_mark = request.tokenizer != nullptr && LeadingSpecial(*request.tokenizer, behind) >= 0;
  if (has_mark || (request.name.empty() && !chat.end_tokens.empty())) return;
  notes->push_back("chat template " + ValueText(chat.name) + ": " +
                   (chat.end_tokens.empty() ? "no token ends an answer" : "an answer ends at the end tokens of the model alone") +
                   ": the text behind it, " + ValueText(chat.next.before) + ", begins with no special token of the model" +
                   (chat.end_tokens.empty() ? "; run it with --stop" : ""));
}

std::string Listed(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + Json(text).dump();
  return list;
}

std::optional<ChatData> CompileSource(const ChatRequest& request, std::vector<std::string>* notes) {
  const TokenizerConfig config(request.folder);
  const std::optional<Source> source = FindSource(request.folder, config);
  if (!source) return std::nullopt;
  const std::string& where = source->where;
  const std::vector<std::pair<std::string, std::string>> texts = SpecialTexts(config);
  try {
    const JinjaTemplate jinja(TemplateText(source->value));
    ChatFit fit = FitChat(jinja, texts);
    fit.chat.name = "model";
    if (!fit.no_system.empty()) notes->push_back(where + ": without system texts: " + fit.no_system);
    if (!fit.special_contents.empty()) {
      notes->push_back(where + ": looks for " + Listed(fit.special_contents) +
                       " in contents, and writes a turn that has it otherwise; the model file writes it as any other");
    }
    if (!fit.blank_content.empty()) notes->push_back(where + ": " + fit.blank_content + "; the model file writes it as any other");
    if (jinja.names_the_date()) notes->push_back(where + ": asks for the date, which the model file does not know");
    return fit.chat;
  } catch (const ConvertError& error) {
    notes->push_back(where + " is not supported: " + error.what() + kAdvice);
    return std::nullopt;
  }
}

}  // namespace

std::optional<ChatData> ReadChatTemplate(const ChatRequest& request, std::vector<std::string>* notes) {
  std::optional<ChatData> chat = request.name.empty() ? CompileSource(request, notes) : KnownTemplate(request.name);
  if (!chat) return chat;
  chat->end_tokens = EndTokens(request, *chat);
  NoteEnds(request, *chat, notes);
  return chat;
}

flatbuffers::Offset<format::ChatTemplate> WriteChatTemplate(const ChatData& chat, flatbuffers::FlatBufferBuilder* builder) {
  const auto turn = [&](const ChatTurnData& one) {
    return format::CreateChatTurn(*builder, builder->CreateString(one.before), one.trim_begin, one.trim_end);
  };
  flatbuffers::Offset<format::ChatTurn> system, after_system;
  if (chat.has_system) system = turn(chat.system);
  if (chat.has_system) after_system = turn(chat.after_system);
  const auto first = turn(chat.first), next = turn(chat.next), assistant = turn(chat.assistant);
  const auto name = builder->CreateString(chat.name), answer = builder->CreateString(chat.answer);
  const auto ends = chat.end_tokens.empty() ? 0 : builder->CreateVector(chat.end_tokens);
  return format::CreateChatTemplate(*builder, name, system, after_system, first, next, assistant, answer, ends);
}

}  // namespace tarn::convert
