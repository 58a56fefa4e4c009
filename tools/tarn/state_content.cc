#include "tools/tarn/state_content.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr uint64_t kBlockBytes = 64;
constexpr size_t kPieceBytes = size_t{1} << 20;  // read at once; a multiple of every element

size_t ElementBytes(const std::string& dtype) { return dtype == "f32" ? 4 : dtype == "f16" ? 2 : 1; }
bool HasValues(const std::string& dtype) { return dtype == "f32" || dtype == "f16" || dtype == "i8"; }

double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value;
  if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : NAN;
  } else {
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return bits >> 15 != 0 ? -value : value;
}

// An element of ElementBytes(dtype) bytes.
double Value(const std::string& dtype, const uint8_t* bytes) {
  if (dtype == "f32") {
    float value;
    std::memcpy(&value, bytes, sizeof(value));
    return double{value};
  }
  if (dtype == "f16") {
    uint16_t bits;
    std::memcpy(&bits, bytes, sizeof(bits));
    return HalfValue(bits);
  }
  return static_cast<int8_t>(*bytes);
}

// f(offset in the part, bytes) for one piece after the other.
template <typename F>
void ForEachPiece(const StatePart& part, const F& f) {
  for (uint64_t at = 0; at < part.bytes; at += kPieceBytes) {
    StopIfInterrupted();
    f(at, static_cast<size_t>(std::min<uint64_t>(kPieceBytes, part.bytes - at)));
  }
}

// a * b, or nothing if it is more than `most`.
std::optional<uint64_t> Product(uint64_t a, uint64_t b, uint64_t most) {
  if (b != 0 && a > most / b) return std::nullopt;
  return a * b;
}

// The bytes of a state in a session like the one that was saved; nothing: more than all of the snapshot's states.
std::optional<uint64_t> BytesOf(const tarn_state_info& state, const tarn_snapshot_info& snapshot) {
  const bool of_source = std::strcmp(state.owner, "source") == 0;
  const uint64_t rows = state.source_axis >= 0 ? snapshot.max_source : 1;
  const auto bytes = Product(state.data_bytes, rows, snapshot.state_bytes);
  return bytes ? Product(*bytes, of_source ? snapshot.sources : snapshot.sequences, snapshot.state_bytes) : bytes;
}

}  // namespace

StateContent::StateContent(const std::string& path) : path_(FileName(path)), file_(InputText::OfFile(path)) {
  try {
    prompt_ = ReadPromptFile(file_.text());
    if (prompt_) begin_ = prompt_->snapshot_begin;
    info_.struct_size = sizeof(info_);
    tarn_error error;
    Check(tarn_snapshot_get_info(data(), size(), &info_, &error), error);
    if (prompt_ && prompt_->tokens != info_.tokens) {
      throw Failure(Format("the snapshot has seen %llu tokens, %llu expected: the file of the prompt cache is damaged",
                           static_cast<unsigned long long>(info_.tokens), static_cast<unsigned long long>(prompt_->tokens)));
    }
  } catch (const Failure& failure) {
    throw Failure(path_ + ": " + failure.what());
  }
}

std::vector<uint64_t> StateContent::SequenceTokens() const {
  std::vector<uint64_t> tokens;
  tarn_error error;
  if (info_.sequences > info_.state_bytes) {  // version 1 has no list that would bound them
    throw Failure(Format("%s: sequences is %u, expected at most %llu: each has a byte of state at least", path_.c_str(),
                         info_.sequences, static_cast<unsigned long long>(info_.state_bytes)));
  }
  for (uint32_t i = 0; i < info_.sequences; ++i) {
    StopIfInterrupted();
    tokens.push_back(info_.tokens);
    if (info_.version > 1) Check(tarn_snapshot_sequence_tokens(data(), size(), i, &tokens.back(), &error), error);
  }
  return tokens;
}

std::vector<uint32_t> StateContent::SourceTokens() const {
  std::vector<uint32_t> tokens;  // as many as the file has
  tarn_error error;
  for (uint32_t i = 0; i < info_.sources; ++i) {
    StopIfInterrupted();
    tokens.push_back(0);
    Check(tarn_snapshot_source_tokens(data(), size(), i, &tokens.back(), &error), error);
  }
  return tokens;
}

void StateContent::Read(uint64_t offset, uint8_t* bytes, size_t count) const {
  tarn_error error;
  Check(tarn_snapshot_read(data(), size(), offset, bytes, count, &error), error);
}

void StateContent::ExpectSameShape(const StateContent& other) const {
  for (const StateContent* content : {this, &other}) {
    if (content->is_delta()) throw Failure(content->path_ + ": it is a delta snapshot, which has no states without its base");
  }
  if (std::memcmp(info_.fingerprint, other.info_.fingerprint, sizeof(info_.fingerprint)) != 0) {
    throw Failure(path_ + ": fingerprint is " + HexText(info_.fingerprint) + ", " + HexText(other.info_.fingerprint) +
                  " expected, as in " + other.path_ + ": it is of another model");
  }
  const auto expect = [&](const char* what, uint64_t found, uint64_t wanted) {
    if (found == wanted) return;
    throw Failure(Format("%s: %s is %llu, %llu expected, as in %s", path_.c_str(), what, static_cast<unsigned long long>(found),
                         static_cast<unsigned long long>(wanted), other.path_.c_str()));
  };
  expect("sequences", info_.sequences, other.info_.sequences);
  expect("sources", info_.sources, other.info_.sources);
  expect("max_source", info_.max_source, other.info_.max_source);
  expect("bytes of states", info_.state_bytes, other.info_.state_bytes);
}

void StateContent::ExpectModel(const Model& model) const {
  const tarn_model_info& wanted = model.info();
  if (std::memcmp(info_.fingerprint, wanted.fingerprint, sizeof(info_.fingerprint)) != 0) {
    throw Failure(path_ + ": fingerprint is " + HexText(info_.fingerprint) + ", " + HexText(wanted.fingerprint) +
                  " expected, that of " + model.path() + ": it is of another model");
  }
  if (info_.tokens > wanted.max_context) {
    throw Failure(Format("%s: tokens is %llu, 0 to %llu expected: max_context of %s", path_.c_str(),
                         static_cast<unsigned long long>(info_.tokens), static_cast<unsigned long long>(wanted.max_context),
                         model.path().c_str()));
  }
}

std::vector<StatePart> StateParts(const StateContent& content, const Model* model) {
  const tarn_snapshot_info& info = content.info();
  if (content.is_delta()) return {};
  if (model == nullptr) return {StatePart{"", "", {}, 0, info.state_bytes}};
  const auto refuse = [&] {
    throw Failure(Format("%s: bytes of states are %llu, expected those of the model for %u sequences and %u sources",
                         content.path().c_str(), static_cast<unsigned long long>(info.state_bytes), info.sequences, info.sources));
  };
  std::vector<StatePart> parts;
  uint64_t begin = 0;
  for (const tarn_state_info& state : List(*model, tarn_model_state)) {
    const std::optional<uint64_t> bytes = BytesOf(state, info);
    if (!bytes || *bytes > info.state_bytes - begin) refuse();
    StatePart part{
        state.name, state.dtype, {std::strcmp(state.owner, "source") == 0 ? info.sources : info.sequences}, begin, *bytes};
    part.shape.insert(part.shape.end(), state.shape, state.shape + state.rank);
    if (state.source_axis >= 0) part.shape[static_cast<size_t>(state.source_axis) + 1] = info.max_source;
    begin += (*bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;  // no more than state_bytes, a multiple of it
    parts.push_back(std::move(part));
  }
  if (begin != info.state_bytes) refuse();
  return parts;
}

StateNumbers Measure(const StateContent& content, const StatePart& part) {
  const size_t element = ElementBytes(part.dtype);
  StateNumbers numbers;
  numbers.has_values = HasValues(part.dtype);
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, part.bytes)));
  ForEachPiece(part, [&](uint64_t at, size_t size) {
    content.Read(part.begin + at, bytes.data(), size);
    for (size_t i = 0; i < size; i += kBlockBytes) {
      const size_t end = std::min(size, i + static_cast<size_t>(kBlockBytes));
      const bool is_zero = std::all_of(bytes.begin() + static_cast<ptrdiff_t>(i), bytes.begin() + static_cast<ptrdiff_t>(end),
                                       [](uint8_t byte) { return byte == 0; });
      if (is_zero) continue;
      numbers.stored_bytes += kBlockBytes;
      for (size_t j = i; numbers.has_values && j < end; j += element) {
        const double value = std::fabs(Value(part.dtype, &bytes[j]));
        if (std::isfinite(value)) {
          numbers.largest = std::max(numbers.largest, value);
        } else {
          ++numbers.not_finite;
        }
      }
    }
  });
  return numbers;
}

StateDifference Compare(const StateContent& a, const StateContent& b, const StatePart& part) {
  const size_t element = ElementBytes(part.dtype);
  StateDifference difference;
  difference.has_values = HasValues(part.dtype);
  difference.elements = part.bytes / element;
  double square_a = 0, square = 0;
  std::vector<uint8_t> of_a(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, part.bytes))), of_b(of_a);
  ForEachPiece(part, [&](uint64_t at, size_t size) {
    a.Read(part.begin + at, of_a.data(), size);
    b.Read(part.begin + at, of_b.data(), size);
    for (size_t i = 0; i < size; i += element) {
      difference.differing += std::memcmp(&of_a[i], &of_b[i], element) != 0;
      if (!difference.has_values) continue;
      const double x = Value(part.dtype, &of_a[i]), y = Value(part.dtype, &of_b[i]);
      if (!std::isfinite(x) || !std::isfinite(y)) {
        ++difference.not_finite;
        continue;
      }
      difference.largest = std::max(difference.largest, std::fabs(y - x));
      square += (y - x) * (y - x);
      square_a += x * x;
    }
  });
  if (square == 0) {
    difference.relative_l2 = 0;
  } else if (square_a > 0) {
    difference.relative_l2 = std::sqrt(square / square_a);
  }
  return difference;
}

}  // namespace tarn_cli
