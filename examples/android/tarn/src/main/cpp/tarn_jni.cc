// The native methods of tarn.Native: the C API, one to one.
//
// Nothing here calls Java back or keeps a reference beyond a call: loops, cancellation and ownership are Java's. Where a JNI
// function has failed, its exception is pending and the method returns at once.
#include <jni.h>
#include <string.h>
#include <tarn/tarn.h>
#include <tarn/tokenizer.h>

#include <iterator>
#include <memory>
#include <new>

namespace {

static_assert(sizeof(tarn_text_decoder) == 32, "Native.DECODER_BYTES");
static_assert(sizeof(jint) == sizeof(int32_t), "tokens are jints");

template <typename T>
T* Pointer(jlong handle) {
  return reinterpret_cast<T*>(static_cast<intptr_t>(handle));
}

jlong Handle(const void* pointer) { return static_cast<jlong>(reinterpret_cast<intptr_t>(pointer)); }

// What is past the largest jlong has no bound.
jlong Number(uint64_t value) { return value > INT64_MAX ? INT64_MAX : static_cast<jlong>(value); }

// ---- Arrays -----------------------------------------------------------------------------------------------------------

jbyte* Elements(JNIEnv* env, jbyteArray array) { return env->GetByteArrayElements(array, nullptr); }
jint* Elements(JNIEnv* env, jintArray array) { return env->GetIntArrayElements(array, nullptr); }
void Release(JNIEnv* env, jbyteArray array, jbyte* elements, jint mode) { env->ReleaseByteArrayElements(array, elements, mode); }
void Release(JNIEnv* env, jintArray array, jint* elements, jint mode) { env->ReleaseIntArrayElements(array, elements, mode); }

// The elements of a Java array as long as this lives; null for null, and where there was no memory, now or for the one before (an
// exception is pending).
// What was written reaches the array only with `mode` 0.
template <typename Array>
class Borrowed {
 public:
  Borrowed(JNIEnv* env, Array array, jint mode = JNI_ABORT)
      : env_(env),
        array_(array),
        mode_(mode),
        elements_(array == nullptr || env->ExceptionCheck() ? nullptr : Elements(env, array)) {}
  ~Borrowed() {
    if (elements_ != nullptr) Release(env_, array_, elements_, mode_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  auto* data() const { return elements_; }
  const char* text() const { return reinterpret_cast<const char*>(elements_); }

 private:
  JNIEnv* const env_;
  const Array array_;
  const jint mode_;
  decltype(Elements(nullptr, Array())) const elements_;
};

// These return null where there was no memory, with an exception pending.
jbyteArray NewBytes(JNIEnv* env, const void* bytes, size_t count) {
  const jsize size = static_cast<jsize>(count);
  const jbyteArray array = env->NewByteArray(size);
  if (array != nullptr) env->SetByteArrayRegion(array, 0, size, static_cast<const jbyte*>(bytes));
  return array;
}

template <size_t n>
jlongArray NewLongs(JNIEnv* env, const jlong (&values)[n]) {
  const jlongArray array = env->NewLongArray(n);
  if (array != nullptr) env->SetLongArrayRegion(array, 0, n, values);
  return array;
}

// ---- Errors -----------------------------------------------------------------------------------------------------------

void Throw(JNIEnv* env, const tarn_error& error) {
  const jclass type = env->FindClass("tarn/TarnException");
  if (type == nullptr) return;
  const jmethodID constructor = env->GetMethodID(type, "<init>", "(I[B)V");
  if (constructor == nullptr) return;
  const jbyteArray message = NewBytes(env, error.message, strlen(error.message));
  if (message == nullptr) return;
  const auto exception = static_cast<jthrowable>(env->NewObject(type, constructor, static_cast<jint>(error.status), message));
  if (exception != nullptr) env->Throw(exception);
}

// Whether a call of the library has failed; a TarnException is then pending.
bool Failed(JNIEnv* env, tarn_status status, const tarn_error& error) {
  if (status != TARN_OK) Throw(env, error);
  return status != TARN_OK;
}

// ---- Model ------------------------------------------------------------------------------------------------------------

jbyteArray Version(JNIEnv* env, jclass) { return NewBytes(env, tarn_version(), strlen(tarn_version())); }

jint FastCores(JNIEnv*, jclass) { return static_cast<jint>(tarn_fast_cores()); }

jlong ModelOpen(JNIEnv* env, jclass, jbyteArray path, jint fd, jlong offset, jlong length, jboolean verify, jboolean no_verify,
                jbyteArray cache) {
  const Borrowed<jbyteArray> path_text(env, path);
  const Borrowed<jbyteArray> cache_text(env, cache);
  if (env->ExceptionCheck()) return 0;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = path_text.text();
  source.use_fd = path == nullptr;
  source.fd = fd;
  source.offset_bytes = static_cast<uint64_t>(offset);
  source.length_bytes = static_cast<uint64_t>(length);
  tarn_model_config config = TARN_MODEL_CONFIG_INIT;
  config.verify_weights = verify;
  config.no_verify = no_verify;
  config.packed_cache = cache_text.text();
  tarn_model* model = nullptr;
  tarn_error error;
  Failed(env, tarn_model_open(&source, &config, &model, &error), error);
  return Handle(model);
}

void ModelClose(JNIEnv*, jclass, jlong model) { tarn_model_close(Pointer<tarn_model>(model)); }

jobjectArray ModelTexts(JNIEnv* env, jclass, jlong model) {
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_error error;
  if (Failed(env, tarn_model_get_info(Pointer<tarn_model>(model), &info, &error), error)) return nullptr;
  const struct {
    const void* bytes;
    size_t count;
  } texts[] = {{info.name, strlen(info.name)},
               {info.precision, strlen(info.precision)},
               {info.isa, strlen(info.isa)},
               {info.dense, strlen(info.dense)},
               {info.fingerprint, sizeof(info.fingerprint)}};
  const jclass type = env->FindClass("[B");
  if (type == nullptr) return nullptr;
  const jobjectArray array = env->NewObjectArray(sizeof(texts) / sizeof(texts[0]), type, nullptr);
  if (array == nullptr) return nullptr;
  jsize i = 0;
  for (const auto& text : texts) {
    const jbyteArray bytes = NewBytes(env, text.bytes, text.count);
    if (bytes == nullptr) return nullptr;
    env->SetObjectArrayElement(array, i++, bytes);
    env->DeleteLocalRef(bytes);
  }
  return array;
}

jlongArray ModelNumbers(JNIEnv* env, jclass, jlong model) {
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_error error;
  if (Failed(env, tarn_model_get_info(Pointer<tarn_model>(model), &info, &error), error)) return nullptr;
  return NewLongs(env, {info.task, info.vocab_size, info.tokenizer, Number(info.parameters), Number(info.max_context),
                        info.packed_from_cache, info.eos_token});
}

tarn_session_config SessionConfig(jint max_chunk, jint threads) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.max_chunk = static_cast<uint32_t>(max_chunk);
  config.threads = static_cast<uint32_t>(threads);
  return config;
}

jlongArray ModelMemory(JNIEnv* env, jclass, jlong model, jint max_chunk, jint threads) {
  const tarn_session_config config = SessionConfig(max_chunk, threads);
  tarn_memory memory = TARN_MEMORY_INIT;
  tarn_error error;
  if (Failed(env, tarn_model_requirements(Pointer<tarn_model>(model), &config, &memory, &error), error)) return nullptr;
  return NewLongs(env, {Number(memory.mapped_bytes), Number(memory.packed_file_bytes), Number(memory.packed_anonymous_bytes),
                        Number(memory.model_bytes), Number(memory.state_bytes), Number(memory.arena_bytes),
                        Number(memory.scratch_bytes), Number(memory.program_bytes), Number(memory.session_bytes)});
}

// ---- Text -------------------------------------------------------------------------------------------------------------

struct TokenizerDeleter {
  void operator()(tarn_tokenizer* tokenizer) const { tarn_tokenizer_destroy(tokenizer); }
};

// Longer words take more memory: the text begins anew with it. The most is that of tarn_tokenize().
constexpr uint32_t kFirstWordBytes = 1u << 12;
constexpr uint32_t kMostWordBytes = 1u << 20;
constexpr uint32_t kGrowth = 4;

tarn_status CountTokens(tarn_tokenizer* tokenizer, const char* text, size_t size, const tarn_tokenizer_options& options,
                        size_t* count, tarn_error* error) {
  jint tokens[256];
  size_t read = std::size(tokens);
  *count = 0;
  tarn_status status = tarn_tokenizer_begin(tokenizer, text, size, &options, error);
  while (status == TARN_OK && read == std::size(tokens)) {
    status = tarn_tokenizer_read(tokenizer, tokens, nullptr, std::size(tokens), &read, error);
    *count += read;
  }
  return status;
}

jintArray Tokenize(JNIEnv* env, jclass, jlong model, jbyteArray text, jboolean with_template, jboolean plain) {
  const Borrowed<jbyteArray> bytes(env, text);
  if (bytes.data() == nullptr) return nullptr;
  const auto size = static_cast<size_t>(env->GetArrayLength(text));
  tarn_tokenizer_options options = TARN_TOKENIZER_OPTIONS_INIT;
  options.no_template = !with_template;
  options.plain = plain;
  tarn_tokenizer_config config = TARN_TOKENIZER_CONFIG_INIT;
  std::unique_ptr<tarn_tokenizer, TokenizerDeleter> tokenizer;
  tarn_error error;
  size_t count = 0;
  tarn_status status = TARN_BUFFER_TOO_SMALL;
  for (uint32_t word = kFirstWordBytes; status == TARN_BUFFER_TOO_SMALL && word <= kMostWordBytes; word *= kGrowth) {
    config.max_word_bytes = word;
    tarn_tokenizer* created = nullptr;
    status = tarn_tokenizer_create(Pointer<tarn_model>(model), &config, &created, &error);
    tokenizer.reset(created);
    if (status == TARN_OK) status = CountTokens(created, bytes.text(), size, options, &count, &error);
  }
  if (Failed(env, status, error)) return nullptr;
  const std::unique_ptr<jint[]> tokens(new (std::nothrow) jint[count + 1]);
  if (tokens == nullptr) {
    Throw(env, {TARN_OUT_OF_MEMORY, "no memory for the tokens of the text"});
    return nullptr;
  }
  status = tarn_tokenizer_begin(tokenizer.get(), bytes.text(), size, &options, &error);
  if (status == TARN_OK) status = tarn_tokenizer_read(tokenizer.get(), tokens.get(), nullptr, count, &count, &error);
  if (Failed(env, status, error)) return nullptr;
  const jintArray array = env->NewIntArray(static_cast<jsize>(count));
  if (array != nullptr) env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), tokens.get());
  return array;
}

jint MaxPieceBytes(JNIEnv*, jclass, jlong model) { return static_cast<jint>(tarn_max_piece_bytes(Pointer<tarn_model>(model))); }

jboolean IsSpecial(JNIEnv*, jclass, jlong model, jint token) {
  return static_cast<jboolean>(tarn_token_is_special(Pointer<tarn_model>(model), token));
}

jint Decode(JNIEnv* env, jclass, jlong model, jbyteArray decoder, jint token, jbyteArray piece) {
  const Borrowed<jbyteArray> state(env, decoder, 0);
  const Borrowed<jbyteArray> text(env, piece, 0);
  if (env->ExceptionCheck()) return 0;
  tarn_text_decoder copy;
  memcpy(&copy, state.data(), sizeof(copy));
  size_t count = 0;
  tarn_error error;
  const tarn_status status = tarn_text_decode(Pointer<tarn_model>(model), &copy, token, reinterpret_cast<char*>(text.data()),
                                              static_cast<size_t>(env->GetArrayLength(piece)), &count, &error);
  memcpy(state.data(), &copy, sizeof(copy));
  Failed(env, status, error);
  return static_cast<jint>(count);
}

jint Finish(JNIEnv* env, jclass, jbyteArray decoder, jbyteArray piece) {
  const Borrowed<jbyteArray> state(env, decoder, 0);
  const Borrowed<jbyteArray> text(env, piece, 0);
  if (env->ExceptionCheck()) return 0;
  tarn_text_decoder copy;
  memcpy(&copy, state.data(), sizeof(copy));
  const size_t count = tarn_text_finish(&copy, reinterpret_cast<char*>(text.data()));
  memcpy(state.data(), &copy, sizeof(copy));
  return static_cast<jint>(count);
}

// ---- Session ----------------------------------------------------------------------------------------------------------

jlong SessionCreate(JNIEnv* env, jclass, jlong model, jint max_chunk, jint threads) {
  const tarn_session_config config = SessionConfig(max_chunk, threads);
  tarn_session* session = nullptr;
  tarn_error error;
  Failed(env, tarn_session_create(Pointer<tarn_model>(model), &config, &session, &error), error);
  return Handle(session);
}

void SessionDestroy(JNIEnv*, jclass, jlong session) { tarn_session_destroy(Pointer<tarn_session>(session)); }

void SessionReset(JNIEnv*, jclass, jlong session) { tarn_session_reset(Pointer<tarn_session>(session)); }

jlong SessionTrim(JNIEnv*, jclass, jlong session) { return Number(tarn_session_trim(Pointer<tarn_session>(session))); }

jlong SessionTokens(JNIEnv*, jclass, jlong session) { return Number(tarn_session_tokens(Pointer<tarn_session>(session))); }

jlong Prefill(JNIEnv* env, jclass, jlong session, jintArray tokens, jint from, jint count) {
  const Borrowed<jintArray> ids(env, tokens);
  if (ids.data() == nullptr) return 0;
  const float* logits = nullptr;
  tarn_error error;
  const tarn_status status =
      tarn_session_prefill(Pointer<tarn_session>(session), ids.data() + from, static_cast<size_t>(count), &logits, &error);
  Failed(env, status, error);
  return Handle(logits);
}

jlong SnapshotBytes(JNIEnv*, jclass, jlong session) { return Number(tarn_session_snapshot_bytes(Pointer<tarn_session>(session))); }

void Save(JNIEnv* env, jclass, jlong session, jbyteArray snapshot, jint count) {
  const Borrowed<jbyteArray> bytes(env, snapshot, 0);
  if (bytes.data() == nullptr) return;
  tarn_error error;
  Failed(env, tarn_session_save(Pointer<tarn_session>(session), bytes.data(), static_cast<uint64_t>(count), &error), error);
}

void Restore(JNIEnv* env, jclass, jlong session, jbyteArray snapshot, jint count) {
  const Borrowed<jbyteArray> bytes(env, snapshot);
  if (bytes.data() == nullptr) return;
  tarn_error error;
  Failed(env, tarn_session_restore(Pointer<tarn_session>(session), bytes.data(), static_cast<uint64_t>(count), &error), error);
}

// ---- Sampler ----------------------------------------------------------------------------------------------------------

jlong SamplerCreate(JNIEnv* env, jclass, jint vocab_size, jfloat temperature, jint top_k, jfloat top_p, jfloat min_p,
                    jfloat repeat_penalty, jint repeat_last_n, jlong seed) {
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  config.temperature = temperature;
  config.top_k = static_cast<uint32_t>(top_k);
  config.top_p = top_p;
  config.min_p = min_p;
  config.repeat_penalty = repeat_penalty;
  config.repeat_last_n = static_cast<uint32_t>(repeat_last_n);
  config.seed = static_cast<uint64_t>(seed);
  tarn_sampler* sampler = nullptr;
  tarn_error error;
  Failed(env, tarn_sampler_create(static_cast<uint32_t>(vocab_size), &config, &sampler, &error), error);
  return Handle(sampler);
}

void SamplerDestroy(JNIEnv*, jclass, jlong sampler) { tarn_sampler_destroy(Pointer<tarn_sampler>(sampler)); }

void Accept(JNIEnv* env, jclass, jlong sampler, jintArray tokens) {
  const Borrowed<jintArray> ids(env, tokens);
  if (ids.data() == nullptr) return;
  const jsize count = env->GetArrayLength(tokens);
  for (jsize i = 0; i < count; ++i) tarn_sampler_accept(Pointer<tarn_sampler>(sampler), ids.data()[i]);
}

jint Sample(JNIEnv* env, jclass, jlong sampler, jlong logits) {
  int32_t token = 0;
  tarn_error error;
  Failed(env, tarn_sampler_sample(Pointer<tarn_sampler>(sampler), Pointer<const float>(logits), &token, &error), error);
  return token;
}

// ---- The table --------------------------------------------------------------------------------------------------------

template <typename Function>
JNINativeMethod Method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

// A method that does not fit its declaration in Native.java fails the load, not the first call.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  const jclass native = env->FindClass("tarn/Native");
  if (native == nullptr) return JNI_ERR;
  const JNINativeMethod methods[] = {
      Method("version", "()[B", Version),
      Method("fastCores", "()I", FastCores),
      Method("modelOpen", "([BIJJZZ[B)J", ModelOpen),
      Method("modelClose", "(J)V", ModelClose),
      Method("modelTexts", "(J)[[B", ModelTexts),
      Method("modelNumbers", "(J)[J", ModelNumbers),
      Method("modelMemory", "(JII)[J", ModelMemory),
      Method("tokenize", "(J[BZZ)[I", Tokenize),
      Method("maxPieceBytes", "(J)I", MaxPieceBytes),
      Method("isSpecial", "(JI)Z", IsSpecial),
      Method("decode", "(J[BI[B)I", Decode),
      Method("finish", "([B[B)I", Finish),
      Method("sessionCreate", "(JII)J", SessionCreate),
      Method("sessionDestroy", "(J)V", SessionDestroy),
      Method("sessionReset", "(J)V", SessionReset),
      Method("sessionTrim", "(J)J", SessionTrim),
      Method("sessionTokens", "(J)J", SessionTokens),
      Method("prefill", "(J[III)J", Prefill),
      Method("snapshotBytes", "(J)J", SnapshotBytes),
      Method("save", "(J[BI)V", Save),
      Method("restore", "(J[BI)V", Restore),
      Method("samplerCreate", "(IFIFFFIJ)J", SamplerCreate),
      Method("samplerDestroy", "(J)V", SamplerDestroy),
      Method("accept", "(J[I)V", Accept),
      Method("sample", "(JJ)I", Sample),
  };
  const jint count = sizeof(methods) / sizeof(methods[0]);
  return env->RegisterNatives(native, methods, count) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
