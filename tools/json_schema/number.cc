#include "tools/json_schema/number.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/common/integer.h"

namespace tarn::tools {
namespace {

constexpr int64_t kMostExponent = 1000000000;  // of either sign
constexpr int64_t kMostPlain = 40;             // digits of a number that is written without an exponent

// digits * 10^exponent, with no zero at either end of the digits; none for 0.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;

  bool operator==(const Decimal& other) const {
    return negative == other.negative && digits == other.digits && exponent == other.exponent;
  }
};

// Of a number of JSON.
Decimal DecimalOf(const std::string& text) {
  Decimal decimal;
  size_t i = text[0] == '-' ? 1 : 0;
  bool is_fraction = false;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      is_fraction = true;
      continue;
    }
    if (is_fraction) --decimal.exponent;
    decimal.digits += text[i];
  }
  int64_t shift = 0;
  const bool down = i + 1 < text.size() && text[i + 1] == '-';
  for (++i; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') shift = shift * 10 + (text[i] - '0');
    if (shift > kMostExponent)
      throw Failure("not a JSON schema: the exponent of " + text + " is beyond " + std::to_string(kMostExponent));
  }
  decimal.exponent += down ? -shift : shift;
  while (!decimal.digits.empty() && decimal.digits.back() == '0') {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  decimal.digits.erase(0, std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size()));
  if (decimal.digits.empty()) return {};
  decimal.negative = text[0] == '-';
  return decimal;
}

std::string TextOf(const Decimal& decimal) {
  const std::string& digits = decimal.digits;
  const int64_t size = static_cast<int64_t>(digits.size()), point = size + decimal.exponent;  // digits before the point
  std::string text = decimal.negative ? "-" : "";
  if (decimal.exponent >= 0 && point <= kMostPlain) {
    text += digits.empty() ? "0" : digits + std::string(static_cast<size_t>(decimal.exponent), '0');
  } else if (decimal.exponent < 0 && point > 0) {
    text += digits.substr(0, static_cast<size_t>(point)) + "." + digits.substr(static_cast<size_t>(point));
  } else if (decimal.exponent < 0 && -point < 6) {
    text += "0." + std::string(static_cast<size_t>(-point), '0') + digits;
  } else {
    text += digits.substr(0, 1) + (size > 1 ? "." + digits.substr(1) : "") + "e" + std::to_string(point - 1);
  }
  return text;
}

Schema NumberOf(const std::string& text, double nearest) {
  const Decimal decimal = DecimalOf(text);
  const std::string exact = TextOf(decimal);
  if (const auto natural = ParseInteger<int64_t>(exact, 0, INT64_MAX)) return static_cast<uint64_t>(*natural);
  if (const auto integer = ParseInteger<int64_t>(exact, INT64_MIN, -1)) return *integer;
  const Schema rounded = nearest;
  // An int64_t compares equal with the double that is nearest to it: this one is nearest to integers that it is not.
  constexpr double kBeyondIntegers = 9223372036854775808.0;
  if (std::abs(nearest) != kBeyondIntegers && DecimalOf(rounded.dump()) == decimal) return rounded;
  return Schema::binary(std::vector<uint8_t>(exact.begin(), exact.end()));
}

// Builds the value as the parser reads it: only here are numbers still text.
class Builder : public nlohmann::json_sax<Schema> {
 public:
  Schema root;

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(NumberOf(std::to_string(value), 0)); }
  bool number_unsigned(uint64_t value) override { return Add(NumberOf(std::to_string(value), static_cast<double>(value))); }
  bool number_float(double value, const std::string& text) override { return Add(NumberOf(text, value)); }
  bool string(std::string& value) override { return Add(value); }
  bool binary(binary_t& value) override { return Add(value); }
  bool start_object(size_t) override { return Open(Schema::object()); }
  bool start_array(size_t) override { return Open(Schema::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    names_.back() = name;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    throw Failure("not a JSON schema: " + what.substr(what.find(' ') + 1));
  }

 private:
  bool Add(Schema value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push_back(std::move(value));
    } else {
      open_.back()[names_.back()] = std::move(value);
    }
    return true;
  }
  bool Open(Schema empty) {
    if (open_.size() == static_cast<size_t>(kMostDepth)) {
      throw Failure("more than " + std::to_string(kMostDepth) + " levels of nesting");
    }
    open_.push_back(std::move(empty));
    names_.emplace_back();
    return true;
  }
  bool Close() {
    Schema made = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return Add(std::move(made));
  }

  std::vector<Schema> open_;
  std::vector<std::string> names_;  // of the member that comes next in each of them
};

}  // namespace

Schema ParseJson(const std::string& text) {
  Builder builder;
  Schema::sax_parse(text, &builder);
  return builder.root;
}

bool IsNumber(const Schema& value) { return value.is_number() || value.is_binary(); }

bool IsWhole(const Schema& value) { return IsNumber(value) && DecimalOf(Spelled(value)).exponent >= 0; }

std::string Spelled(const Schema& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (!value.is_binary()) return value.dump();
  return std::string(value.get_binary().begin(), value.get_binary().end());
}

}  // namespace tarn::tools
