/* A model that lies somewhere in another file, as an asset lies in an APK: at any offset, whatever the size of a page. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tarn/tarn.h"

enum { TOKENS = 16, AROUND = 70000 };

static const char* const kModel = "examples/models/shakespeare-rfa-gate-int8.tarn";
static tarn_error error;

static void Check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, error.message);
  exit(1);
}

/* The greedy continuation of one token. */
static void Generate(const tarn_source* source, int32_t* tokens) {
  tarn_model* model = NULL;
  tarn_session* session = NULL;
  const tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  const float* logits = NULL;
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  int32_t token = 'T', best, i, t;
  Check(tarn_model_open(source, NULL, &model, &error) == TARN_OK, "open");
  if (source->use_fd) close(source->fd); /* the mapping stays */
  Check(tarn_model_get_info(model, &info, &error) == TARN_OK, "info");
  Check(tarn_session_create(model, &config, &session, &error) == TARN_OK, "session");
  for (t = 0; t < TOKENS; ++t) {
    Check(tarn_session_step(session, &token, &logits, &error) == TARN_OK, "step");
    for (best = 0, i = 1; i < (int32_t)info.vocab_size; ++i) best = logits[i] > logits[best] ? i : best;
    tokens[t] = token = best;
  }
  tarn_session_destroy(session);
  tarn_model_close(model);
}

int main(void) {
  static const uint64_t kOffsets[] = {1, 4096, 12345, 16384, 65536 + 64};
  char path[] = "/tmp/tarn_descriptor_test_XXXXXX";
  static char padding[AROUND];
  int32_t wanted[TOKENS], found[TOKENS];
  tarn_source source = TARN_SOURCE_INIT;
  FILE* file = fopen(kModel, "rb");
  long bytes = 0;
  char* content;
  size_t i;

  Check(file != NULL && fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0, kModel);
  content = malloc((size_t)bytes);
  rewind(file);
  Check(content != NULL && fread(content, 1, (size_t)bytes, file) == (size_t)bytes, kModel);
  fclose(file);
  source.path = kModel;
  Generate(&source, wanted);

  source.path = NULL;
  source.use_fd = 1;
  source.length_bytes = (uint64_t)bytes;
  for (i = 0; i < sizeof(kOffsets) / sizeof(kOffsets[0]); ++i) {
    source.offset_bytes = kOffsets[i];
    source.fd = mkstemp(path);
    file = fdopen(dup(source.fd), "wb");
    Check(file != NULL && fwrite(padding, 1, (size_t)kOffsets[i], file) == kOffsets[i] &&
              fwrite(content, 1, (size_t)bytes, file) == (size_t)bytes && fwrite(padding, 1, AROUND, file) == AROUND &&
              fclose(file) == 0,
          path);
    Generate(&source, found);
    Check(memcmp(found, wanted, sizeof(wanted)) == 0, "other tokens at another offset");
    unlink(path);
    memcpy(strrchr(path, '_') + 1, "XXXXXX", 6);
  }
  free(content);
  printf("ok\n");
  return 0;
}
