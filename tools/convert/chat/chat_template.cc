#include "tools/convert/chat/chat_template.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/convert/chat/chat_fit.h"
#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/chat/known_templates.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;  // tokenizer_config.json names every added token
constexpr char kAdvice[] = "; --chat-template NAME gives the model a known one";

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// An empty object where there is no such file.
Json ReadObject(const std::string& path) {
  if (!IsFile(path)) return Json::object();
  Json file = ParseJson(ReadFile(path, kMaxFileBytes), path);
  if (!file.is_object()) Fail(path, ": an object expected");
  return file;
}

// A Jinja template and where it stands; nothing: the checkpoint has none.
struct Source {
  std::string text, where;
};

// Errors: a list without a template of the name "default".
std::optional<Source> FindSource(const std::string& folder, const Json& config) {
  const std::string beside = folder + "/chat_template.jinja", where = folder + "/tokenizer_config.json: chat_template";
  if (IsFile(beside)) return Source{ReadFile(beside, kMaxFileBytes), beside};
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return Source{*found, where};
  if (!found->is_array()) Fail(where, ": ", ValueText(*found), ", a text or a list expected");
  std::string names;
  for (const Json& one : *found) {
    const bool is_one = one.is_object() && one.contains("name") && one["name"].is_string() && one.contains("template") &&
                        one["template"].is_string();
    if (!is_one) Fail(where, ": ", ValueText(one), ", an object with \"name\" and \"template\" expected");
    if (one["name"] == "default") return Source{one["template"], where};
    names += (names.empty() ? "" : ", ") + one["name"].get<std::string>();
  }
  Fail(where, ": a template of the name \"default\" expected, found ", names.empty() ? "none" : names);
}

// bos_token and the like, as the template sees them.
std::vector<std::pair<std::string, std::string>> SpecialTexts(const std::string& folder, const Json& config) {
  const Json map = ReadObject(folder + "/special_tokens_map.json");
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    for (const Json* file : {&config, &map}) {
      const auto found = file->find(key);
      if (found == file->end() || found->is_null()) continue;
      const Json& token = found->is_object() ? found->value("content", Json()) : *found;
      if (!token.is_string()) continue;
      texts.emplace_back(key, token.get<std::string>());
      break;
    }
  }
  return texts;
}

// The special token that `text` begins with, the longest one; -1: none.
int32_t LeadingSpecial(const TokenizerData& tokenizer, std::string_view text) {
  int32_t found = -1;
  size_t longest = 0;
  for (size_t id = 0, begin = 0; id < tokenizer.piece_ends.size(); begin = tokenizer.piece_ends[id++]) {
    const size_t bytes = tokenizer.piece_ends[id] - begin;
    if (tokenizer.special[id] == 0 || bytes <= longest || bytes > text.size()) continue;
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
  const Json config = ReadObject(request.folder + "/generation_config.json");
  const Json ends = config.value("eos_token_id", Json());
  for (const Json& id : ends.is_array() ? ends : Json::array({ends})) {
    if (id.is_number_unsigned()) add(id.get<int64_t>());
  }
  return ids;
}

std::string Listed(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + Json(text).dump();
  return list;
}

std::optional<ChatData> CompileSource(const ChatRequest& request, std::vector<std::string>* notes) {
  const Json config = ReadObject(request.folder + "/tokenizer_config.json");
  std::string where = request.folder;
  try {
    const std::optional<Source> source = FindSource(request.folder, config);
    if (!source) return std::nullopt;
    where = source->where;
    const JinjaTemplate jinja(source->text);
    ChatFit fit = FitChat(jinja, SpecialTexts(request.folder, config));
    fit.chat.name = "model";
    if (!fit.no_system.empty()) notes->push_back(where + ": without system texts: " + fit.no_system);
    if (!fit.special_contents.empty()) {
      notes->push_back(where + ": looks for " + Listed(fit.special_contents) +
                       " in contents and changes them; in the model file contents stay as they are");
    }
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
