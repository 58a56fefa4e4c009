#include "tools/convert/tokenizer/post_processor.h"

#include <cstdint>
#include <map>
#include <vector>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/component.h"

namespace tarn::convert {
namespace {

uint32_t ReadId(const Json& value, const std::string& where) {
  if (const auto id = TokenId(value)) return *id;
  Fail(where, ": ", ValueText(value), " is not an id, 0 .. ", Fields::kMaxSize - 1, " expected");
}

const Json& List(Fields* fields, const char* key) {
  const Json* list = fields->Find(key);
  if (list == nullptr) fields->FailMissing(key, "a list");
  if (!list->is_array()) fields->FailAt(key, ValueText(*list) + ", a list expected");
  return *list;
}

using SpecialIds = std::map<std::string, std::vector<uint32_t>>;

// Those of a template, by their names.
SpecialIds ReadSpecialIds(Fields* fields) {
  const Json* specials = fields->Find("special_tokens");
  if (specials == nullptr) fields->FailMissing("special_tokens", "an object");
  if (!specials->is_object()) fields->FailAt("special_tokens", ValueText(*specials) + ", an object expected");
  SpecialIds found;
  for (const auto& [name, special] : specials->items()) {
    Fields one(special, fields->where() + ".special_tokens: " + ValueText(name));
    for (const char* other : {"id", "tokens"}) one.Find(other);  // the names, which the ids stand for
    std::vector<uint32_t>& ids = found[name];
    for (const Json& id : List(&one, "ids")) ids.push_back(ReadId(id, one.where() + ": ids[" + std::to_string(ids.size()) + "]"));
    one.Finish();
  }
  return found;
}

void ReadTemplate(Fields* fields, TokenizerData* data) {
  fields->Find("pair");  // of two texts
  const SpecialIds specials = ReadSpecialIds(fields);
  bool text_seen = false;
  size_t index = 0;
  for (const Json& piece : List(fields, "single")) {
    const std::string place = fields->where() + ".single[" + std::to_string(index++) + "]";
    Fields kind(piece, place);
    const Json *text = kind.Find("Sequence"), *special = kind.Find("SpecialToken");
    kind.Finish();
    if ((text == nullptr) == (special == nullptr))
      Fail(place, ": ", ValueText(piece), ", either a Sequence or a SpecialToken expected");
    Fields part(text != nullptr ? *text : *special, place + (text != nullptr ? ".Sequence" : ".SpecialToken"));
    const std::string id = part.Text("id");
    part.Find("type_id");
    part.Finish();
    if (text != nullptr) {
      if (id != "A") part.FailAt("id", ValueText(id) + ": \"A\", the only text, expected");
      if (text_seen) Fail(place, ": the text is there twice, which is not supported");
      text_seen = true;
      continue;
    }
    const auto found = specials.find(id);
    if (found == specials.end()) part.FailAt("id", ValueText(id) + " is not in special_tokens");
    std::vector<uint32_t>& ids = text_seen ? data->suffix : data->prefix;
    ids.insert(ids.end(), found->second.begin(), found->second.end());
  }
  if (!text_seen) fields->FailAt("single", "the text is missing");
}

// RobertaProcessing and BertProcessing: "cls" text "sep", each a token and its id.
void ReadClsSep(Fields* fields, TokenizerData* data) {
  const auto read = [&](const char* key) {
    const Json& pair = List(fields, key);
    if (pair.size() != 2 || !pair[0].is_string()) fields->FailAt(key, ValueText(pair) + ", a token and its id expected");
    return ReadId(pair[1], fields->where() + ": " + key + "[1]");
  };
  data->prefix.push_back(read("cls"));
  data->suffix.push_back(read("sep"));
}

void ReadTrim(Fields* fields, TokenizerData* data) {
  const bool trims = fields->Bool("trim_offsets", true), keeps_first = fields->Bool("add_prefix_space", true);
  if (data->trim_offsets) fields->FailAt("trim_offsets", "offsets are trimmed twice, which is not supported");
  data->trim_offsets = trims;
  data->trim_keeps_first = trims && keeps_first;
}

}  // namespace

void ReadPostProcessor(const Json& object, const std::string& where, TokenizerData* data) {
  if (object.is_null()) return;
  for (const auto& [part, place] : Parts(object, where, "processors")) {
    const std::string type = TypeOf(*part, place, "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing");
    Fields fields(*part, place);
    fields.Find("type");
    // The package itself fails on a second template. A ByteLevel acts on the text between the tokens of the first.
    const bool has_template = !data->prefix.empty() || !data->suffix.empty();
    if (has_template && type != "ByteLevel") fields.FailAt("type", "\"" + type + "\" is not supported behind a template");
    if (type == "TemplateProcessing") ReadTemplate(&fields, data);
    if (type == "RobertaProcessing" || type == "BertProcessing") ReadClsSep(&fields, data);
    if (type == "ByteLevel" || type == "RobertaProcessing") ReadTrim(&fields, data);
    if (type == "ByteLevel") fields.Bool("use_regex", true);  // the pre-tokenizer's
    fields.Finish();
  }
}

}  // namespace tarn::convert
