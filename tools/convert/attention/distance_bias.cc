// Numbers that are added to attention logits by distance: learned ones of buckets, as T5 has them (Raffel et al. 2020), or slopes
// of heads (ALiBi: Press et al. 2022). The format has a column for each distance up to that of the last bucket.
#include <cmath>
#include <string>
#include <vector>

#include "tools/convert/attention/cache_attention.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr Choice<BiasTable> kBiases[] = {{"none", BiasTable::kNone}, {"layer", BiasTable::kLayer}, {"model", BiasTable::kModel}};
constexpr uint32_t kMostBuckets = 1u << 12, kMostDistance = 1u << 16;

// How distances on one side of a token fall into buckets: the first half of them have one distance each, those of the others grow
// as a geometric series, and the last one has all from `farthest` on, or from shortly before.
struct Buckets {
  uint32_t count, farthest;

  uint32_t exact() const { return count / 2; }

  // In single precision, as the models were trained.
  uint32_t Of(uint32_t distance) const {
    if (distance < exact()) return distance;
    const auto least = static_cast<float>(exact());
    const auto range = static_cast<float>(std::log(static_cast<double>(farthest) / exact()));
    const float step = std::log(static_cast<float>(distance) / least) / range * static_cast<float>(count - exact());
    const uint32_t bucket = exact() + static_cast<uint32_t>(step);
    return bucket < count ? bucket : count - 1;
  }

  // The first distance of the last bucket.
  uint32_t Last() const {
    uint32_t distance = 0;
    while (Of(distance) + 1 < count) ++distance;
    return distance;
  }
};

bool IsCausal(const AttentionContext& context) { return context.form == AttentionForm::kCausal; }

// Of one side. A noncausal table has those of the keys behind a token after those of the keys before it.
Buckets SideBuckets(const CacheAttention& cache, const AttentionContext& context) {
  return {IsCausal(context) ? cache.distance_buckets : cache.distance_buckets / 2, cache.distance_max};
}

void ParseBuckets(Fields* fields, const AttentionContext& context, CacheAttention* cache) {
  cache->distance_bias = fields->OneOf<BiasTable>("distance_bias", kBiases, BiasTable::kNone);
  if (cache->distance_bias == BiasTable::kNone) return;
  cache->distance_buckets = static_cast<uint32_t>(fields->Integer("distance_buckets", IsCausal(context) ? 2 : 4, kMostBuckets, 32));
  cache->distance_max = static_cast<uint32_t>(fields->Integer("distance_max", 1, kMostDistance, 128));
  const Buckets side = SideBuckets(*cache, context);
  if (!IsCausal(context) && cache->distance_buckets % 2 != 0) {
    fields->FailAt("distance_buckets", std::to_string(cache->distance_buckets) + " is odd: each side has half of them");
  }
  if (cache->distance_max <= side.exact()) {
    fields->FailAt("distance_max", std::to_string(cache->distance_max) + " is not above " + std::to_string(side.exact()) +
                                       ", the distances that have buckets of their own");
  }
  cache->bias_behind = side.Last() + 1;
  cache->bias_ahead = IsCausal(context) ? 0 : side.Last();
}

void ParseSlopes(Fields* fields, const AttentionContext& context, CacheAttention* cache) {
  const uint32_t heads = context.heads.heads();
  const Json* slopes = fields->Find("distance_slopes", "a list of num_heads numbers", "none");
  if (slopes == nullptr) return;
  if (!slopes->is_array() || slopes->size() != heads) {
    fields->FailAt("distance_slopes", ValueText(*slopes) + " is not a list of num_heads = " + std::to_string(heads) + " numbers");
  }
  for (const Json& slope : *slopes) {
    if (!slope.is_number() || !std::isfinite(slope.get<float>())) {
      fields->FailAt("distance_slopes", ValueText(slope) + " is not a number");
    }
    cache->distance_slopes.push_back(slope.get<float>());
  }
}

}  // namespace

void ParseDistanceBias(Fields* fields, const AttentionContext& context, CacheAttention* cache) {
  if (!HasDistances(cache->policy, *cache, FormBit(context.form))) return;
  ParseBuckets(fields, context, cache);
  ParseSlopes(fields, context, cache);
}

// [buckets, H] of the checkpoint becomes [H, columns].
AttentionTensor DistanceTable(const CacheAttention& cache, const AttentionContext& context) {
  const Buckets side = SideBuckets(cache, context);
  const uint32_t heads = context.heads.heads(), behind = cache.bias_behind, columns = behind + cache.bias_ahead;
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> table;
    for (uint32_t h = 0; h < heads; ++h) {
      for (uint32_t c = 0; c < columns; ++c) {
        const uint32_t bucket = c < behind ? side.Of(behind - 1 - c) : side.count + side.Of(c - behind + 1);
        table.push_back(parts[0][bucket * heads + h]);
      }
    }
    return table;
  };
  // The name says what the columns are made by, as layers share one table only if that is the same.
  const std::string name = "distance_bias." + std::to_string(cache.distance_max);
  AttentionTensor table{name, {heads, columns}, {{"distance_bias", {cache.distance_buckets, heads}, Init::kNormal}}, fold};
  table.shared = cache.distance_bias == BiasTable::kModel;
  return table;
}

}  // namespace tarn::convert
