/* Writes text without an end, until Ctrl-C.
 *
 *   ./cancel MODEL.tarn */
#include <example.h>
#include <signal.h>

static tarn_session* volatile running;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  tarn_session_cancel(running);
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./cancel MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info);
  tarn_session* session = NULL;
  check(tarn_session_create(model, NULL, &session, &error));
  running = session;
  signal(SIGINT, on_interrupt);

  int32_t token = '\n';
  const float* logits = NULL;
  tarn_status status;
  while ((status = tarn_session_step(session, &token, &logits, &error)) == TARN_OK) {
    token = largest(logits, info.vocab_size);
    putchar(token);
    fflush(stdout);
  }
  if (status != TARN_CANCELLED) check(status);
  printf("\ncancelled after %llu tokens\n", (unsigned long long)tarn_session_tokens(session));

  signal(SIGINT, SIG_DFL); /* from here on there is no session to cancel */
  tarn_session_destroy(session);
  tarn_model_close(model);
  return 0;
}
