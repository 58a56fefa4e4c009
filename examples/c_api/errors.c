/* Reads a status, and the line that explains it.
 *
 *   ./errors MODEL.tarn */
#include <example.h>

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./errors MODEL.tarn");
  tarn_source missing = TARN_SOURCE_INIT;
  missing.path = "no-such-file.tarn";
  tarn_model* model = NULL;
  tarn_status status = tarn_model_open(&missing, NULL, &model, &error);
  if (status == TARN_NOT_FOUND) printf("%s: %s\n", tarn_status_string(status), error.message);

  model = open_model(argv[1]);
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));
  const int32_t bad = 100000; /* not a token of this model */
  status = tarn_session_step(session, &bad, NULL, &error);
  printf("%s: %s\n", tarn_status_string(status), error.message);
  printf("tokens fed: %llu\n", (unsigned long long)tarn_session_tokens(session)); /* the failed call changed nothing */

  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
