/* Three questions to one session with two places: a text leaves when it is long enough, and another one takes its place.
 *
 *   ./sequences MODEL.tarn */
#include <example.h>

#define PLACES 2
#define TEXTS 3

static const char* const prompts[TEXTS] = {"ROMEO:", "First Citizen, who speaks at some length:", "JULIET:"};
static const int lengths[TEXTS] = {10, 40, 20};

/* A text in a place of the session: its tokens until the first call, then the token that is fed next. */
typedef struct place {
  int text; /* -1: nobody */
  int made;
  int32_t tokens[64];
  size_t count;
} place;

/* The next text takes the place, whoever was there before. */
static void take_place(tarn_session* session, uint32_t number, int text, place* taken) {
  check(tarn_session_reset_sequence(session, number, &error));
  taken->text = text < TEXTS ? text : -1;
  taken->made = 0;
  if (taken->text < 0) return;
  taken->count = strlen(prompts[text]); /* here a token is a byte */
  for (size_t i = 0; i < taken->count; ++i) taken->tokens[i] = prompts[text][i];
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./sequences MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = PLACES;
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  static char made[TEXTS][64];
  static place places[PLACES];
  int next = 0;
  for (uint32_t p = 0; p < PLACES; ++p) take_place(session, p, next++, &places[p]);
  for (;;) {
    /* One call: a prompt of any length for one, a token for another, nothing for a third. */
    tarn_sequence_tokens parts[PLACES];
    size_t part_count = 0;
    for (uint32_t p = 0; p < PLACES; ++p) {
      if (places[p].text < 0) continue;
      const tarn_sequence_tokens part = {p, places[p].tokens, places[p].count};
      parts[part_count++] = part;
    }
    if (part_count == 0) break;
    const float* logits = NULL; /* [part_count, vocab_size] */
    check(tarn_session_prefill_sequences(session, parts, part_count, &logits, &error));

    for (size_t i = 0; i < part_count; ++i) {
      place* const of = &places[parts[i].sequence];
      of->tokens[0] = largest(logits + i * info.vocab_size, info.vocab_size);
      of->count = 1;
      made[of->text][of->made++] = (char)of->tokens[0];
      if (of->made == lengths[of->text]) take_place(session, parts[i].sequence, next++, of);
    }
  }
  for (int t = 0; t < TEXTS; ++t) printf("[%s%s]\n", prompts[t], made[t]);

  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
