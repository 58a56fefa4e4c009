// The HTTP side: POST /v1/completions as OpenAI's API has it, and GET /health.
#ifndef TARN_EXAMPLES_SERVER_HTTP_H_
#define TARN_EXAMPLES_SERVER_HTTP_H_

#include <httplib.h>

#include "scheduler.h"

namespace tarn_server {

// `threads` answer: one for each request that the scheduler takes, and some that refuse others.
void AddEndpoints(Scheduler* scheduler, size_t threads, httplib::Server* server);

}  // namespace tarn_server

#endif  // TARN_EXAMPLES_SERVER_HTTP_H_
