// Windows: softmax over the last tokens, over every dilation-th of them, or over the last tokens and every stride-th before.
// sliding_window over whole sequences sees both sides: `window` is its full width, keys at a distance of at most window / 2.
#include <utility>

#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {
namespace {

// sliding_window and dilated_window: `mask_empty` false is the recurrence as it is printed, with rows of zeros at the beginning.
AttentionOp MakeWindow(CacheAttention cache, Fields* fields, const AttentionContext& context, const char* system) {
  cache.policy = CachePolicy::kWindow;
  if (context.form != AttentionForm::kCausal) fields->Fix("mask_empty", true);  // there is no recurrence to be literal about
  cache.mask_empty = fields->Bool("mask_empty", true);
  ParseLogits(fields, context, &cache);
  const uint64_t rows = uint64_t{cache.window} * cache.dilation;
  if (rows > Fields::kMaxSize) {
    fields->FailAt("dilation",
                   std::to_string(cache.dilation) + " times window = " + std::to_string(cache.window) + " is too large");
  }
  return MakeCacheAttention(cache, context, system);
}

}  // namespace

AttentionOp ParseSlidingWindow(Fields* fields, const AttentionContext& context) {
  CacheAttention cache;
  cache.window = fields->Size("window");
  cache.policy = CachePolicy::kWindow;
  ParseDistanceBias(fields, context, &cache);
  return MakeWindow(std::move(cache), fields, context, "sliding_window");
}

AttentionOp ParseDilatedWindow(Fields* fields, const AttentionContext& context) {
  CacheAttention cache;
  cache.window = fields->Size("window");
  cache.dilation = fields->Size("dilation");
  return MakeWindow(cache, fields, context, "dilated_window");
}

AttentionOp ParseStridedWindow(Fields* fields, const AttentionContext& context) {
  fields->Fix("mask_empty", true);
  return MakeCacheAttention(ParseCachePolicy(fields, context, CachePolicy::kStrided), context, "strided_window");
}

}  // namespace tarn::convert
