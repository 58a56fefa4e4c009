/* Classifies two sources of different lengths in one call.
 *
 *   ./classify MODEL.tarn "X29N47]0]" "N31]" */
#include <example.h>

#define STRIDE 64

int main(int argc, char** argv) {
  expect_arguments(argc, 3, "./classify MODEL.tarn \"X29N47]0]\" \"N31]\"");
  tarn_model* model = open_model(argv[1]);
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  check(tarn_model_get_info(model, &info, &error));
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = 2;
  config.max_source = STRIDE;
  tarn_session* session = NULL;
  check(tarn_session_create(model, &config, &session, &error));

  int32_t tokens[2 * STRIDE]; /* [2, STRIDE]; what stands behind a source is never read */
  size_t lengths[2];
  for (int i = 0; i < 2; ++i) {
    check(tarn_tokenize(model, argv[2 + i], strlen(argv[2 + i]), tokens + i * STRIDE, STRIDE, &lengths[i], &error));
  }
  const float* logits = NULL; /* [2, num_labels] */
  check(tarn_session_classify(session, tokens, STRIDE, lengths, &logits, &error));
  for (int i = 0; i < 2; ++i) {
    printf("%s: %d\n", argv[2 + i], (int)largest(logits + (size_t)i * info.num_labels, info.num_labels));
  }

  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
