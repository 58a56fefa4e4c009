#include "tools/convert/build/luna.h"

#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using format::Slice;

// One of the two attentions: `num_heads` heads of q over the rows of `memory`, whose projections are `tied`, or `key` and `value`.
struct Reading {
  const char* name;
  const char* query;
  const char* tied;
  const char* key;
  const char* value;
  uint32_t num_heads;
  float scale;
};

constexpr char kSystem[] = "luna_encoder";

class LunaAttention {
 public:
  LunaAttention(GraphBuilder* builder, const std::string& prefix, const LunaBlock& block)
      : builder_(builder), prefix_(prefix), block_(block) {}

  Slice Dense(const std::string& name, const std::vector<const char*>& projections, Slice x) const {
    std::vector<DenseRows> rows;
    for (const char* projection : projections) rows.push_back({prefix_ + projection, x.width(), true});
    return builder_->AddDense(prefix_ + name, prefix_ + name, rows, x);
  }

  Slice Read(const Reading& reading, Slice x, Slice memory) const {
    const uint32_t width = x.width();
    if (reading.num_heads == 0 || width % reading.num_heads != 0) {
      Fail("\"", prefix_, reading.name, "\": a width of ", width, " cannot be divided among ", reading.num_heads, " heads");
    }
    const uint32_t head_dim = width / reading.num_heads;
    const Slice q = Dense(reading.query, {reading.query}, x);
    const std::string both = std::string(reading.name) + "_kv_proj";
    const Slice kv =
        block_.tie_kv ? Dense(reading.tied, {reading.tied}, memory) : Dense(both, {reading.key, reading.value}, memory);
    CacheAttention cache;
    cache.capacity = block_.max_rows;
    cache.scale = reading.scale;
    const format::Heads heads(reading.num_heads, reading.num_heads, head_dim, head_dim);
    return AddNoncausalAttention(builder_, prefix_ + reading.name, kSystem, heads, cache, q, Columns(kv, 0, width),
                                 Columns(kv, block_.tie_kv ? 0 : width, width));
  }

 private:
  GraphBuilder* builder_;
  const std::string& prefix_;
  const LunaBlock& block_;
};

}  // namespace

Slice AddLunaAttention(GraphBuilder* builder, const std::string& prefix, const LunaBlock& block, Slice x, Slice pack, Slice context,
                       Slice* packed) {
  const LunaAttention luna(builder, prefix, block);
  *packed = luna.Read({"pack", "pq_proj", "pc_proj", "pk_proj", "pv_proj", block.num_pack_heads, block.pack_scale}, pack, context);
  const Slice seen = luna.Read({"unpack", "q_proj", "c_proj", "k_proj", "v_proj", block.num_heads, block.scale}, x, *packed);
  return luna.Dense("out_proj", {"out_proj"}, seen);
}

}  // namespace tarn::convert
