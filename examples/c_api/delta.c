/* Saves a session once as a whole and then, after each part of a text, only what has changed since; goes back to each part.
 *
 *   ./delta MODEL.tarn */
#include <example.h>

enum { PARTS = 3, LENGTH = 20 };

typedef struct {
  void* bytes;
  uint64_t size_bytes;
} snapshot;

static snapshot save(const tarn_session* session) {
  snapshot saved = {NULL, tarn_session_snapshot_bytes(session)};
  saved.bytes = need(malloc((size_t)saved.size_bytes));
  check(tarn_session_save(session, saved.bytes, saved.size_bytes, &error));
  return saved;
}

static snapshot save_delta(const tarn_session* session, snapshot base) {
  snapshot delta = {NULL, 0};
  check(tarn_session_delta_bytes(session, base.bytes, base.size_bytes, &delta.size_bytes, &error));
  delta.bytes = need(malloc((size_t)delta.size_bytes));
  check(tarn_session_save_delta(session, base.bytes, base.size_bytes, delta.bytes, delta.size_bytes, &error));
  return delta;
}

/* Feeds LENGTH bytes, greedily from `token` on, and writes them to `text`. */
static void generate(tarn_session* session, uint32_t vocab_size, int32_t token, char* text) {
  for (int i = 0; i < LENGTH; ++i) {
    const float* logits = NULL;
    check(tarn_session_step(session, &token, &logits, &error));
    token = largest(logits, vocab_size);
    text[i] = (char)token;
  }
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./delta MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session *session = NULL, *other = NULL;
  check(tarn_session_create(model, NULL, &session, &error));
  check(tarn_session_create(model, NULL, &other, &error));

  char text[PARTS + 1][LENGTH], again[LENGTH];
  snapshot deltas[PARTS];
  generate(session, info.vocab_size, '\n', text[0]);
  const snapshot base = save(session);
  printf("%.*s\nbase of %llu bytes\n", LENGTH, text[0], (unsigned long long)base.size_bytes);
  for (int i = 0; i < PARTS; ++i) {
    generate(session, info.vocab_size, 'A' + i, text[i + 1]);
    deltas[i] = save_delta(session, base);
    printf("%.*s\n", LENGTH, text[i + 1]);
  }
  for (int i = PARTS - 1; i-- > 0;) {
    check(tarn_session_restore_delta(other, base.bytes, base.size_bytes, deltas[i].bytes, deltas[i].size_bytes, &error));
    generate(other, info.vocab_size, 'B' + i, again); /* the part after it */
    printf("part %d: delta of %llu bytes, %s\n", i, (unsigned long long)deltas[i].size_bytes,
           memcmp(again, text[i + 2], LENGTH) == 0 ? "equal" : "different");
  }
  for (int i = 0; i < PARTS; ++i) free(deltas[i].bytes);
  free(base.bytes);
  tarn_session_destroy(other);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
