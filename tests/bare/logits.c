#define _POSIX_C_SOURCE 200112L /* posix_memalign */

/* bare_logits MODEL CHUNK TOKEN...
 *
 * Writes the logits after every token, f32 [tokens, vocab_size], to standard output; CHUNK tokens are read at a time. Linked with
 * the library without an operating system that has all ops: e2e/lm_test.py compares the logits with the references.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

static void* take(void* context, size_t size_bytes, size_t alignment) {
  void* pointer = NULL;
  (void)context;
  return posix_memalign(&pointer, alignment, size_bytes) == 0 ? pointer : NULL;
}

static void give_back(void* context, void* pointer, size_t size_bytes) {
  (void)context;
  (void)size_bytes;
  free(pointer);
}

static tarn_error error;
static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "bare_logits: %s\n", error.message);
  exit(1);
}

/* The bytes of a file, in memory that give_back() takes. */
static unsigned char* read_file(const char* path, size_t* length_bytes) {
  FILE* file = fopen(path, "rb");
  unsigned char* bytes = NULL;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
  *length_bytes = (size_t)ftell(file);
  rewind(file);
  bytes = take(NULL, *length_bytes, 64);
  if (bytes != NULL && fread(bytes, 1, *length_bytes, file) != *length_bytes) return NULL;
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  const size_t count = argc < 4 ? 0 : (size_t)argc - 3;
  const size_t chunk = argc < 4 ? 0 : strtoul(argv[2], NULL, 10);
  tarn_source source = TARN_SOURCE_INIT;
  tarn_model_config model_config = TARN_MODEL_CONFIG_INIT;
  tarn_session_config session_config = TARN_SESSION_CONFIG_INIT;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = NULL;
  tarn_session* session = NULL;
  size_t length_bytes = 0;
  unsigned char* bytes = argc < 2 ? NULL : read_file(argv[1], &length_bytes);
  int32_t* tokens = malloc((count + 1) * sizeof(*tokens));
  if (bytes == NULL || tokens == NULL || chunk == 0) {
    fprintf(stderr, "usage: bare_logits MODEL CHUNK TOKEN...\n");
    return 2;
  }
  for (size_t i = 0; i < count; ++i) tokens[i] = (int32_t)strtol(argv[i + 3], NULL, 10);

  source.buffer = bytes;
  source.length_bytes = length_bytes;
  model_config.allocator.allocate = take;
  model_config.allocator.release = give_back;
  session_config.max_chunk = session_config.max_logits_rows = (uint32_t)chunk;
  check(tarn_model_open(&source, &model_config, &model, &error));
  check(tarn_model_get_info(model, &info, &error));
  check(tarn_session_create(model, &session_config, &session, &error));
  for (size_t i = 0; i < count; i += chunk) {
    const size_t rows = count - i < chunk ? count - i : chunk;
    const float* logits = NULL;
    check(tarn_session_score(session, tokens + i, rows, &logits, &error));
    if (fwrite(logits, info.vocab_size * sizeof(*logits), rows, stdout) != rows) return 1;
  }
  tarn_session_destroy(session);
  tarn_model_close(model);
  give_back(NULL, bytes, length_bytes);
  free(tokens);
  return 0;
}
