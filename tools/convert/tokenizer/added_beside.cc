#include "tools/convert/tokenizer/added_beside.h"

#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/component.h"

namespace tarn::convert {
namespace {

constexpr size_t kMaxSentinels = 10000;  // published models have at most 300; each one takes memory

using TokensById = std::map<uint32_t, AddedToken>;

std::vector<AddedToken> InOrder(TokensById by_id) {
  std::vector<AddedToken> tokens;
  for (auto& [id, token] : by_id) tokens.push_back(std::move(token));
  return tokens;
}

// The texts of all tokens that the files call special.
std::set<std::string> SpecialTexts(const TokenizerConfig& config) {
  std::set<std::string> texts;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    texts.insert(config.SpecialToken(key).value_or(""));
  }
  for (const Json* file : {&config.config(), &config.special_tokens_map()}) {
    const auto list = file->find("additional_special_tokens");
    if (list == file->end() || !list->is_array()) continue;
    for (const Json& token : *list) texts.insert(token.is_string() ? token.get<std::string>() : StringOf(token, "content"));
  }
  return texts;
}

}  // namespace

std::vector<AddedToken> AddedTokensDecoder(const TokenizerConfig& config) {
  const auto named = config.config().find("added_tokens_decoder");
  if (named == config.config().end() || named->is_null()) return {};
  const std::string where = config.path() + ": added_tokens_decoder";
  if (!named->is_object()) Fail(where, ": ", ValueText(*named), " is not an object");
  TokensById by_id;
  for (const auto& [id, entry] : named->items()) {
    const bool is_number = !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos;
    const uint64_t number = is_number ? std::strtoull(id.c_str(), nullptr, 10) : Fields::kMaxSize;
    if (number >= Fields::kMaxSize)
      Fail(where, ": ", ValueText(id), " is not an id, a number below ", Fields::kMaxSize, " expected");
    Fields fields(entry, where + "." + id);
    by_id[static_cast<uint32_t>(number)] = ReadAddedToken(&fields, static_cast<uint32_t>(number));
  }
  return InOrder(std::move(by_id));
}

std::vector<AddedToken> AddedTokensBeside(const std::string& folder, const TokenizerConfig& config) {
  const auto named = config.config().find("added_tokens_decoder");
  if (named != config.config().end() && !named->is_null()) return AddedTokensDecoder(config);
  const std::string path = folder + "/added_tokens.json";
  const std::set<std::string> specials = SpecialTexts(config);
  TokensById by_id;
  const Json file = ReadObjectIfThere(path);
  for (const auto& [content, value] : file.items()) {
    const std::optional<uint32_t> id = TokenId(value);
    if (!id) Fail(path, ": \"", content, "\" has id ", ValueText(value), ", a number below ", Fields::kMaxSize, " expected");
    AddedToken token{content, *id};
    token.special = specials.count(content) > 0;
    token.normalized = !token.special;
    const auto [other, is_new] = by_id.emplace(*id, token);
    if (!is_new) Fail(path, ": \"", content, "\" and \"", other->second.content, "\" have the same id ", *id);
  }
  return InOrder(std::move(by_id));
}

std::vector<AddedToken> SentinelTokens(const TokenizerConfig& config, size_t fallback, uint32_t first) {
  const bool is_given = !config.config().value("extra_ids", Json()).is_null();
  const size_t count = is_given ? Fields(config.config(), config.path()).Integer("extra_ids", 0, kMaxSentinels) : fallback;
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < count; ++i) {
    AddedToken token{"<extra_id_" + std::to_string(count - 1 - i) + ">", first + static_cast<uint32_t>(i)};
    token.special = true;
    token.normalized = false;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace tarn::convert
