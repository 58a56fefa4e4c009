// C API: models and requirements. Translation only.
#include <new>

#include "runtime/capi/handles.h"
#include "runtime/session/session.h"

namespace tarn {
namespace {

static_assert(static_cast<int>(Verified::kNot) == TARN_VERIFIED_NOT);
static_assert(static_cast<int>(Verified::kNow) == TARN_VERIFIED_NOW);
static_assert(static_cast<int>(Verified::kBefore) == TARN_VERIFIED_BEFORE);
static_assert(static_cast<int>(format::TokenizerKind::None) == TARN_TOKENIZER_NONE);
static_assert(static_cast<int>(format::TokenizerKind::Bytes) == TARN_TOKENIZER_BYTES);
static_assert(static_cast<int>(format::Task::CausalLm) == TARN_TASK_CAUSAL_LM);
static_assert(static_cast<int>(format::Task::Seq2Seq) == TARN_TASK_SEQ2SEQ);
static_assert(static_cast<int>(format::Task::Classification) == TARN_TASK_CLASSIFICATION);
static_assert(static_cast<int>(format::Task::MaskedLm) == TARN_TASK_MASKED_LM);
static_assert(static_cast<int>(format::Task::MAX) == TARN_TASK_MASKED_LM, "a task that the C API lacks");
static_assert(static_cast<int>(format::TokenizerKind::Bpe) == TARN_TOKENIZER_BPE);
static_assert(static_cast<int>(format::TokenizerKind::Unigram) == TARN_TOKENIZER_UNIGRAM);
static_assert(static_cast<int>(format::TokenizerKind::WordPiece) == TARN_TOKENIZER_WORDPIECE);
static_assert(static_cast<int>(format::TokenizerKind::WordLevel) == TARN_TOKENIZER_WORDLEVEL);
static_assert(static_cast<int>(format::TokenizerKind::MAX) == TARN_TOKENIZER_LONGEST, "a tokenizer that the C API lacks");

Result<tarn_model_config> ReadConfig(const tarn_model_config* user) {
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  if (config.verify_weights != 0 && config.no_verify != 0) {
    return Error(TARN_INVALID_ARGUMENT, "verify_weights is %d and no_verify %d, expected one of them at most",
                 config.verify_weights, config.no_verify);
  }
  return config;
}

Result<tarn_source> ReadSource(const tarn_source* user) {
  if (user == nullptr) return NullArgument("source");
  tarn_source source = TARN_SOURCE_INIT;
  TARN_RETURN_IF_ERROR(ReadStruct(user, &source));
  const int given = (source.path != nullptr) + (source.use_fd != 0) + (source.buffer != nullptr);
  if (given != 1) return Error(TARN_INVALID_ARGUMENT, "source: %d of path, fd and buffer are set, exactly one expected", given);
  if (source.use_fd == 0 && source.offset_bytes != 0) {
    return Error(TARN_INVALID_ARGUMENT, "source: offset_bytes is %llu, but belongs to fd",
                 static_cast<unsigned long long>(source.offset_bytes));
  }
  if (source.path != nullptr && source.length_bytes != 0) {
    return Error(TARN_INVALID_ARGUMENT, "source: length_bytes is %llu, but a path is read whole",
                 static_cast<unsigned long long>(source.length_bytes));
  }
  return source;
}

Result<LoadedModel> Load(const tarn_source& source, const tarn_model_config& config) {
  FileMap map;
  if (source.path != nullptr) {
    TARN_ASSIGN_OR_RETURN(map, FileMap::Open(source.path));
  } else if (source.use_fd != 0) {
    TARN_ASSIGN_OR_RETURN(map, FileMap::FromDescriptor(source.fd, source.offset_bytes, source.length_bytes));
  }
  Span<const uint8_t> bytes = map.bytes();
  if (source.buffer != nullptr) {
    if (source.length_bytes > SIZE_MAX) return Error(TARN_INVALID_ARGUMENT, "source: length_bytes does not fit the address space");
    bytes = {static_cast<const uint8_t*>(source.buffer), static_cast<size_t>(source.length_bytes)};
  }
  const Verify verify = config.verify_weights != 0 ? Verify::kEveryTime : config.no_verify != 0 ? Verify::kNever : Verify::kOnce;
  const LoadOptions options{verify,
                            config.isa,
                            config.portable_dense != 0,
                            AllocatorFrom(config.allocator),
                            config.max_work_per_token,
                            config.max_packed_bytes,
                            sizeof(tarn_model)};
  Result<LoadedModel> loaded = LoadedModel::Open(std::move(map), bytes, options);
  if (!loaded.ok() && source.path != nullptr) return loaded.status().In("%s", source.path);
  return loaded;
}

// An error of opening, where `loaded` is known. Not inlined: every Status holds its message, and those of a failure would lie on
// the small stack of a board (examples/bare_metal) whenever a model is opened.
[[gnu::noinline]] Status Explain(Status status, const LoadedModel& loaded, const tarn_source& source,
                                 const tarn_model_config& config) {
  if (status.code() == TARN_OUT_OF_MEMORY) {
    const Result<PackedIn> packed_in = loaded.Foretell(config.packed_cache);
    // Where even to look for a file takes too much, no packed weights have been taken.
    const Result<uint64_t> bytes =
        loaded.OpeningBytes(config.packed_cache != nullptr, packed_in.ok() ? packed_in.value() : PackedIn::kNewFile);
    if (bytes.ok()) status = status.In("opening takes %llu bytes", static_cast<unsigned long long>(bytes.value()));
  }
  return source.path == nullptr ? status : status.In("%s", source.path);
}

Status OpenModel(const tarn_source* user_source, const tarn_model_config* user_config, tarn_model** model) {
  if (model == nullptr) return NullArgument("model");
  TARN_ASSIGN_OR_RETURN(const tarn_model_config config, ReadConfig(user_config));
  TARN_ASSIGN_OR_RETURN(const tarn_source source, ReadSource(user_source));
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(AllocatorFrom(config.allocator), sizeof(tarn_model), "model"));
  TARN_ASSIGN_OR_RETURN(LoadedModel loaded, Load(source, config));
  const Status packed = loaded.Pack(config.packed_cache);
  if (!packed.ok()) return Explain(packed, loaded, source, config);
  TARN_ASSIGN_OR_RETURN(const uint64_t opening_bytes, loaded.OpeningBytes(config.packed_cache != nullptr, loaded.packed_in()));
  tarn_model* opened = new (block.bytes().data()) tarn_model;
  opened->loaded = std::move(loaded);
  opened->own_block = std::move(block);
  opened->opening_bytes = opening_bytes;
  *model = opened;
  return Ok();
}

// Packed weights go where `packed_in` says.
Status WriteRequirements(const LoadedModel& loaded, PackedIn packed_in, uint64_t opening_bytes, const tarn_session_config* config,
                         tarn_memory* memory) {
  if (memory == nullptr) return NullArgument("memory");
  TARN_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(loaded, config));
  TARN_ASSIGN_OR_RETURN(const ProgramBytes session, Session::Measure(loaded, limits));
  const PackedBytes packed = loaded.packed_bytes();
  tarn_memory sizes = TARN_MEMORY_INIT;
  sizes.mapped_bytes = loaded.model().file_bytes();
  sizes.packed_file_bytes = packed_in == PackedIn::kMemory ? 0 : loaded.packed_file_bytes();
  sizes.packed_anonymous_bytes = loaded.anonymous_bytes(packed_in);
  sizes.model_bytes = sizeof(tarn_model) + loaded.model().allocated_bytes() + packed.table;
  sizes.state_bytes = session.state;
  sizes.arena_bytes = session.arena;
  sizes.scratch_bytes = session.scratch;
  sizes.program_bytes = session.program;
  sizes.session_bytes = session.total;
  sizes.in_place_bytes = packed.in_place;
  sizes.opening_bytes = opening_bytes;
  return WriteStruct(sizes, memory);
}

Status RequirementsOfSource(const tarn_source* source, const tarn_model_config* model_config,
                            const tarn_session_config* session_config, tarn_memory* memory) {
  TARN_ASSIGN_OR_RETURN(const tarn_model_config config, ReadConfig(model_config));
  TARN_ASSIGN_OR_RETURN(const tarn_source read, ReadSource(source));
  TARN_ASSIGN_OR_RETURN(const LoadedModel loaded, Load(read, config));
  TARN_ASSIGN_OR_RETURN(const PackedIn packed_in, loaded.Foretell(config.packed_cache));
  TARN_ASSIGN_OR_RETURN(const uint64_t opening_bytes, loaded.OpeningBytes(config.packed_cache != nullptr, packed_in));
  return WriteRequirements(loaded, packed_in, opening_bytes, session_config, memory);
}

Status RequirementsOfModel(const tarn_model* model, const tarn_session_config* config, tarn_memory* memory) {
  if (model == nullptr) return NullArgument("model");
  return WriteRequirements(model->loaded, model->loaded.packed_in(), model->opening_bytes, config, memory);
}

const char* TextOrEmpty(const flatbuffers::String* text) { return text == nullptr ? "" : text->c_str(); }

Status WriteInfo(const tarn_model* model, tarn_model_info* user) {
  if (model == nullptr) return NullArgument("model");
  if (user == nullptr) return NullArgument("info");
  const Model& read = ModelOf(model);
  const format::Model& graph = read.graph();
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  info.name = info.precision = "";
  if (const format::Metadata* metadata = graph.metadata()) {
    info.name = TextOrEmpty(metadata->name());
    info.precision = TextOrEmpty(metadata->precision());
    info.eval_scored = metadata->eval_scored();
    info.eval_nats_f32 = metadata->eval_nats_f32();
    info.eval_nats = metadata->eval_nats();
  }
  info.vocab_size = graph.vocab_size();
  info.tokenizer = TokenizerOf(model);
  info.first_position = graph.first_position();
  info.max_context = read.program(Stage::kDecode) == nullptr ? 0 : model->loaded.bound(Stage::kDecode).tokens;
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) info.parameters += read.tensor(i).shape.elements;
  for (const format::Tensor* tensor : *graph.tensors()) {
    if (tensor->scales() >= 0) info.parameters -= read.tensor(static_cast<uint32_t>(tensor->scales())).shape.elements;
  }
  std::memcpy(info.fingerprint, read.fingerprint(), sizeof(info.fingerprint));
  info.isa = model->loaded.kernels().name;
  info.dense = model->loaded.dense().name;
  info.task = static_cast<tarn_task>(graph.task());
  info.source_vocab_size = read.program(Stage::kEncode) == nullptr ? 0 : read.vocab_size(Stage::kEncode);
  info.num_labels = model->loaded.labels();
  info.bos_token = graph.bos_token();
  info.eos_token = graph.eos_token();
  info.mask_token = graph.mask_token();
  info.max_source_tokens = read.program(Stage::kEncode) == nullptr ? 0 : model->loaded.bound(Stage::kEncode).tokens;
  info.weights_verified = static_cast<tarn_verified>(model->loaded.verified());
  info.format_major = read.major_version();
  info.format_minor = read.minor_version();
  info.packed_from_cache = model->loaded.packed_in() == PackedIn::kFoundFile;
  return WriteStruct(info, user);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_requirements(const tarn_source* source, const tarn_model_config* model_config,
                              const tarn_session_config* session_config, tarn_memory* memory, tarn_error* error) {
  return tarn::Report(tarn::RequirementsOfSource(source, model_config, session_config, memory), error);
}

tarn_status tarn_model_open(const tarn_source* source, const tarn_model_config* config, tarn_model** model, tarn_error* error) {
  return tarn::Report(tarn::OpenModel(source, config, model), error);
}

void tarn_model_close(tarn_model* model) {
  if (model == nullptr) return;
  // The model lies in its own block: take that out before the model ends.
  const tarn::Block block = std::move(model->own_block);
  model->~tarn_model();
}

tarn_status tarn_model_requirements(const tarn_model* model, const tarn_session_config* config, tarn_memory* memory,
                                    tarn_error* error) {
  return tarn::Report(tarn::RequirementsOfModel(model, config, memory), error);
}

tarn_status tarn_model_get_info(const tarn_model* model, tarn_model_info* info, tarn_error* error) {
  return tarn::Report(tarn::WriteInfo(model, info), error);
}
