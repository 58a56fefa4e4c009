#include "runtime/session/loaded_model.h"

#include <algorithm>

#include "core/arith.h"
#include "core/format.h"
#include "runtime/ops/registry.h"
#include "runtime/platform/cpu.h"
#include "runtime/session/packed_cache.h"

namespace tarn {

Result<LoadedModel> LoadedModel::Open(FileMap map, Span<const uint8_t> bytes, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.allocator_ = options.allocator;
  loaded.verify_ = options.verify;
  loaded.ahead_bytes_ = options.ahead_bytes;
  TARN_RETURN_IF_ERROR(loaded.ChooseKernels(options));
  TARN_ASSIGN_OR_RETURN(loaded.model_, Model::Open(std::move(map), bytes, options.allocator));
  TARN_RETURN_IF_ERROR(loaded.CheckPrograms());
  // Before any layer is drafted: XNNPACK looks at the scales of int4 already when it is asked for sizes.
  const Status scales = loaded.model_.CheckScales();
  if (!scales.ok()) {
    if (options.verify != Verify::kNever) TARN_RETURN_IF_ERROR(loaded.model_.CheckWeights());
    return scales;
  }
  TARN_RETURN_IF_ERROR(loaded.PlanPrograms());
  TARN_RETURN_IF_ERROR(loaded.CheckWork(options.max_work_per_token));
  TARN_RETURN_IF_ERROR(loaded.CheckPacked(options.max_packed_bytes));
  return loaded;
}

// Every op checks its attributes and shapes. The table stays, so it is taken between two drafts: what is taken last is given back
// first, and an allocator as simple as a stack (examples/bare_metal) loses nothing.
Status LoadedModel::PlanPrograms() {
  size_t layers = 0;
  {
    TARN_ASSIGN_OR_RETURN(const Instance::Draft draft, MakeDraft());
    TARN_ASSIGN_OR_RETURN(layers, PackedWeights::Count(draft));
  }
  TARN_ASSIGN_OR_RETURN(packed_, PackedWeights::Reserve(environment(), layers));
  TARN_ASSIGN_OR_RETURN(const Instance::Draft draft, MakeDraft());
  bounds_ = draft.bounds();
  return packed_.Plan(draft);
}

Result<Instance::Draft> LoadedModel::MakeDraft() const {
  Result<Instance::Draft> draft = Instance::Draft::Make(environment());
  if (draft.ok() || draft.status().code() != TARN_OUT_OF_MEMORY) return draft;
  return draft.status().In("opening has taken %llu bytes", static_cast<unsigned long long>(KeptBytes()));
}

Status LoadedModel::ChooseKernels(const LoadOptions& options) {
  kernels_ = SelectKernels(options.isa);
  if (kernels_ == nullptr) {
    return Error(TARN_INVALID_ARGUMENT, "isa '%s' is not one that this CPU and this build run; the best is '%s'", options.isa,
                 KernelNames()[0]);
  }
  dense_ = &PortableDense();
#if defined(TARN_HAVE_XNNPACK)
  if (!options.portable_dense && CpuIsKnown()) {
    TARN_ASSIGN_OR_RETURN(dense_, XnnpackDense());
  }
#endif
  return Ok();
}

namespace {

bool HasOp(const Model& model, format::OpAttributes kind) {
  for (const Stage stage : kStages) {
    const format::Program* const program = model.program(stage);
    if (program == nullptr) continue;
    for (const format::Op* op : *program->ops()) {
      if (op->attributes_type() == kind) return true;
    }
  }
  return false;
}

// That all of them are linked. All that are not are named at once, as TARN_OPS has them.
Status CheckOps(const Model& model) {
  char names[200] = "";
  size_t length = 0;
  for (int i = 1; i <= static_cast<int>(format::OpAttributes::MAX); ++i) {
    const auto kind = static_cast<format::OpAttributes>(i);
    if (FindOpKind(kind) != nullptr || !HasOp(model, kind)) continue;
    length += Format(names + length, sizeof(names) - length, length == 0 ? "%s" : ",%s", format::EnumNameOpAttributes(kind));
  }
  if (length == 0) return Ok();
  return Error(TARN_UNSUPPORTED, "the model has ops that this build leaves out: add %s to TARN_OPS", names);
}

Status CheckProgram(const Model& model, Stage stage) {
  const format::Program& program = *model.program(stage);
  const format::Value& input = *program.values()->Get(0);
  const bool reads_tokens = program.num_inputs() == 1 && input.dtype() == format::DType::I32 && input.width() == 1 &&
                            input.time() == format::Time::Tokens;
  if (!reads_tokens) {
    return Error(TARN_BAD_FORMAT, "program '%s' does not read token ids (i32, width 1)", program.name()->c_str());
  }
  const format::Value& output = *program.values()->Get(program.outputs()->Get(0));
  const bool is_encoder = stage == Stage::kEncode && model.task() == format::Task::Seq2Seq;  // of hidden rows
  const bool is_classifier = model.task() == format::Task::Classification;
  const format::Time time = is_encoder ? format::Time::Tokens : is_classifier ? format::Time::Fixed : format::Time::Outputs;
  const bool writes_logits = output.width() == model.graph().vocab_size() || is_encoder || is_classifier;
  const bool one_row = !is_classifier || output.rows() == 1;
  if (program.outputs()->size() == 1 && output.dtype() == format::DType::F32 && output.time() == time && writes_logits && one_row) {
    return Ok();
  }
  return Error(TARN_BAD_FORMAT, "program '%s': the output of task %s expected, f32 %s", program.name()->c_str(),
               TaskName(model.task()),
               is_encoder      ? "rows of every token"
               : is_classifier ? "in one row of logits"
                               : "rows of vocab_size logits");
}

}  // namespace

Status LoadedModel::CheckPrograms() const {
  TARN_RETURN_IF_ERROR(CheckOps(model_));
  for (const Stage stage : kStages) {
    if (model_.program(stage) == nullptr) continue;
    TARN_RETURN_IF_ERROR(CheckProgram(model_, stage));
  }
  return Ok();
}

// A few bytes of a graph can ask for hours (rounds of k-means, slots, windows) or for all memory (a layer that is packed again for
// every other bias), so both are bounded by the size of the file. A dense layer takes at most 3.2 multiply-adds a byte for a token
// (int2), attention about as many again at the lengths that papers use; packing at most doubles weights, and pads those of a few
// outputs. The bounds are some ten times that or more, on top of what any small model may take.
Status LoadedModel::CheckWork(uint64_t most) const {
  constexpr uint64_t kLeast = uint64_t{1} << 28, kPerByte = 128;
  constexpr uint64_t kSource = 512;  // as long as a session takes them if nothing else is said
  if (most == 0) most = SaturatingAdd(kLeast, SaturatingMul(kPerByte, model_.file_bytes()));
  const uint32_t max_source = static_cast<uint32_t>(std::min(kSource, bound(Stage::kEncode).tokens));
  TARN_ASSIGN_OR_RETURN(const TokenWork work, Instance::Work(environment(), max_source));
  if (work.per_token <= most) return Ok();
  return Error(TARN_UNSUPPORTED,
               "a token takes about %llu multiply-adds, %llu of them op '%s'; at most %llu expected "
               "(max_work_per_token, --max-work)",
               static_cast<unsigned long long>(work.per_token), static_cast<unsigned long long>(work.largest), work.op,
               static_cast<unsigned long long>(most));
}

Status LoadedModel::CheckPacked(uint64_t most) const {
  constexpr uint64_t kLeast = uint64_t{64} << 20, kPerByte = 8;
  if (most == 0) most = SaturatingAdd(kLeast, SaturatingMul(kPerByte, model_.file_bytes()));
  if (packed_.bytes().weights <= most) return Ok();
  return Error(TARN_UNSUPPORTED,
               "packed weights take %llu bytes, the file has %llu; at most %llu expected (max_packed_bytes, "
               "--max-packed)",
               static_cast<unsigned long long>(packed_.bytes().weights), static_cast<unsigned long long>(model_.file_bytes()),
               static_cast<unsigned long long>(most));
}

uint32_t LoadedModel::labels() const {
  if (model_.task() != format::Task::Classification) return 0;
  const format::Program& program = *model_.program(Stage::kEncode);
  return program.values()->Get(program.outputs()->Get(0))->width();
}

Status LoadedModel::Pack(const char* cache_folder) {
  PackedCache cache;
  if (cache_folder != nullptr) {
    TARN_ASSIGN_OR_RETURN(cache, PackedCache::In(cache_folder, environment(), packed_));
    if (packs()) TARN_RETURN_IF_ERROR(UseFile(cache));
    if (packs() && packed_in_ == PackedIn::kMemory) TARN_RETURN_IF_ERROR(MakeFile(cache));
  }
  if (packed_in_ == PackedIn::kMemory) TARN_RETURN_IF_ERROR(PackInMemory(cache_folder == nullptr ? nullptr : &cache));
  return Ok();
}

Status LoadedModel::UseFile(const PackedCache& cache) {
  CacheFile file = cache.Find();
  if (!file.exists()) return Ok();
  TARN_ASSIGN_OR_RETURN(const bool whole, Verifies(cache, file));
  if (!whole) return Ok();
  packed_.Use(cache.Body(file).data());
  packed_file_ = std::move(file);
  packed_in_ = PackedIn::kFoundFile;
  return Ok();
}

Result<bool> LoadedModel::Verifies(const PackedCache& cache, const CacheFile& file) {
  if (verify_ == Verify::kNever) return true;
  if (verify_ == Verify::kOnce && cache.IsNoted(file)) {
    verified_ = Verified::kBefore;
    return true;
  }
  const bool may_note = cache.AwaitNextTick(file);
  // What is packed need not be right in the model too. If the rest is not, the model's own hash says whether it is damaged.
  if (verify_ == Verify::kEveryTime || !cache.RestIsWhole(file)) TARN_RETURN_IF_ERROR(model_.CheckWeights());
  if (!cache.BodyIsWhole(file)) return false;
  verified_ = Verified::kNow;
  if (may_note) cache.Note(file);
  return true;
}

Status LoadedModel::MakeFile(const PackedCache& cache) {
  CacheFile file = cache.Create();
  if (!file.exists()) return Ok();
  const bool may_note = cache.AwaitNextTick(CacheFile());
  WeightCheck check(model_);
  TARN_RETURN_IF_ERROR(packed_.Pack(environment(), cache.Body(&file), &check));
  const Status whole = check.Finish();
  if (!whole.ok() && verify_ != Verify::kNever) return whole;
  // A published file stands for every model of this fingerprint: weights that only claim it serve this model alone.
  if (!whole.ok()) {
    file.KeepUnnamed();
  } else if (!cache.Finish(&file)) {
    return Ok();
  } else {
    verified_ = Verified::kNow;
    if (may_note) cache.Note(file);
  }
  packed_file_ = std::move(file);
  packed_in_ = PackedIn::kNewFile;
  return Ok();
}

// `cache`: nullptr where there is none.
Status LoadedModel::PackInMemory(const PackedCache* cache) {
  const bool noted = !packs() && cache != nullptr && verify_ == Verify::kOnce && cache->IsNoted(CacheFile());
  if (noted) verified_ = Verified::kBefore;
  if (noted || verify_ == Verify::kNever) return packed_.Pack(environment(), nullptr);
  const bool may_note = !packs() && cache != nullptr && cache->AwaitNextTick(CacheFile());
  WeightCheck check(model_);
  TARN_RETURN_IF_ERROR(packed_.Pack(environment(), &check));
  TARN_RETURN_IF_ERROR(check.Finish());
  verified_ = Verified::kNow;
  if (may_note) cache->Note(CacheFile());
  return Ok();
}

// Open() plans with a draft in its hands, Pack() looks at small layers before it packs; none of them needs the other's.
Result<uint64_t> LoadedModel::OpeningBytes(bool with_cache, PackedIn packed_in) const {
  uint64_t working = Instance::Draft::Bytes(environment());
  if (with_cache) {
    TARN_ASSIGN_OR_RETURN(const uint64_t probes, PackedCache::WorkingBytes(environment()));
    if (probes > working) working = probes;
  }
  const uint64_t packed = anonymous_bytes(packed_in);
  return KeptBytes() + (packed > working ? packed : working);
}

uint64_t LoadedModel::packed_file_bytes() const { return PackedCache::FileBytes(packed_); }

Result<PackedIn> LoadedModel::Foretell(const char* cache_folder) const {
  if (cache_folder == nullptr || !packs()) return PackedIn::kMemory;
  TARN_ASSIGN_OR_RETURN(const PackedCache cache, PackedCache::In(cache_folder, environment(), packed_));
  if (cache.Find().exists()) return PackedIn::kFoundFile;
  return cache.CanCreate() ? PackedIn::kNewFile : PackedIn::kMemory;
}

}  // namespace tarn
