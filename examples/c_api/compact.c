/* Saves a session exactly and in a compact form, goes on from both, and compares the logits.
 *
 *   ./compact MODEL.tarn */
#include <example.h>

enum { LENGTH = 512 };

int main(int argc, char** argv) {
  static const char prompt[] = "Good morrow, cousin. Is the day so young? Ay me! sad hours seem long.";
  expect_arguments(argc, 1, "./compact MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session *session = NULL, *other = NULL;
  check(tarn_session_create(model, NULL, &session, &error));
  check(tarn_session_create(model, NULL, &other, &error));

  for (size_t i = 0; i + 1 < sizeof(prompt); ++i) {
    const int32_t token = (unsigned char)prompt[i];
    check(tarn_session_step(session, &token, NULL, &error));
  }
  const uint64_t exact_bytes = tarn_session_snapshot_bytes(session);
  const uint64_t size_bytes = tarn_session_compact_bytes(session);
  void* snapshot = need(malloc((size_t)size_bytes));
  check(tarn_session_save_compact(session, snapshot, size_bytes, &error));
  check(tarn_session_restore(other, snapshot, size_bytes, &error));
  printf("%llu bytes, %.2f of those of an exact snapshot\n", (unsigned long long)size_bytes,
         (double)size_bytes / (double)exact_bytes);

  /* The same text into both: the most probable tokens of the exact one. */
  float most = 0;
  int equal = 0;
  int32_t token = '\n';
  for (int i = 0; i < LENGTH; ++i) {
    const float *exact = NULL, *rounded = NULL;
    check(tarn_session_step(session, &token, &exact, &error));
    check(tarn_session_step(other, &token, &rounded, &error));
    for (uint32_t j = 0; j < info.vocab_size; ++j) {
      const float difference = exact[j] > rounded[j] ? exact[j] - rounded[j] : rounded[j] - exact[j];
      if (difference > most) most = difference;
    }
    token = largest(exact, info.vocab_size);
    equal += token == largest(rounded, info.vocab_size);
  }
  printf("logits differ by at most %.4f; the most probable token is the same %d times of %d\n", most, equal, LENGTH);
  free(snapshot);
  tarn_session_destroy(other);
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
