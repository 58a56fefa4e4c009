/* One model, two sessions, two threads: each thread has a session of its own.
 *
 *   ./threads MODEL.tarn */
#define _POSIX_C_SOURCE 200112L
#include <example.h>
#include <pthread.h>

typedef struct {
  tarn_session* session;
  uint32_t vocab_size;
  int32_t token; /* in: what the text begins with; out: its last token */
  tarn_status status;
  tarn_error error; /* of this thread */
} job;

static void* run(void* argument) {
  job* mine = argument;
  for (int i = 0; i < 100 && mine->status == TARN_OK; ++i) {
    const float* logits = NULL;
    mine->status = tarn_session_step(mine->session, &mine->token, &logits, &mine->error);
    if (mine->status == TARN_OK) mine->token = largest(logits, mine->vocab_size);
  }
  return NULL;
}

int main(int argc, char** argv) {
  expect_arguments(argc, 1, "./threads MODEL.tarn");
  tarn_model_info info = TARN_MODEL_INFO_INIT;
  tarn_model* model = open_byte_model(argv[1], &info); /* immutable: shared */
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = tarn_default_threads(); /* what one call may use inside */
  job jobs[2];
  memset(jobs, 0, sizeof(jobs));
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    check(tarn_session_create(model, &config, &jobs[i].session, &error));
    jobs[i].vocab_size = info.vocab_size;
    jobs[i].token = i == 0 ? 'A' : 'B';
    if (pthread_create(&threads[i], NULL, run, &jobs[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
    error = jobs[i].error;
    check(jobs[i].status);
    printf("session %d: %llu tokens\n", i, (unsigned long long)tarn_session_tokens(jobs[i].session));
    tarn_session_destroy(jobs[i].session);
  }
  tarn_model_close(model); /* after all of its sessions */
  return 0;
}
