#include "runtime/model/weight_check.h"

namespace tarn {
namespace {

constexpr size_t kForgetBytes = size_t{1} << 22;  // resident at a time

}  // namespace

void WeightCheck::HashTo(size_t end, bool forget) {
  while (hashed_ < end) {
    const size_t left = end - hashed_;
    const Span<const uint8_t> piece = model_.weights().subspan(hashed_, forget && left > kForgetBytes ? kForgetBytes : left);
    stream_.Add(piece);
    if (forget) model_.Forget(piece);
    hashed_ += piece.size();
  }
}

void WeightCheck::ReadThrough(Span<const uint8_t> bytes) {
  const size_t begin = static_cast<size_t>(bytes.begin() - model_.weights().begin());
  HashTo(begin, /*forget=*/true);
  HashTo(begin + bytes.size(), /*forget=*/false);
}

Status WeightCheck::Finish() {
  HashTo(model_.weights().size(), /*forget=*/true);
  const Digest found = stream_.Finish();
  const Digest expected = model_.weight_digest();
  if (found == expected) return Ok();
  char found_text[Digest::kTextBytes], expected_text[Digest::kTextBytes];
  return Error(TARN_CHECKSUM, "weights: XXH3-128 is %s, expected %s (header): the file is damaged; copy or convert it again",
               found.Text(found_text), expected.Text(expected_text));
}

}  // namespace tarn
