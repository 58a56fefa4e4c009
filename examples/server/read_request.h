// The body of POST /v1/completions: JSON with the fields of OpenAI's API.
#ifndef TARN_EXAMPLES_SERVER_READ_REQUEST_H_
#define TARN_EXAMPLES_SERVER_READ_REQUEST_H_

#include <string>

#include "state_folder.h"

namespace tarn_server {

struct Body {
  Request request;  // without its key
  bool streams = false;
};

// Throws Refused, which names the field, the value found and the value expected.
Body ReadBody(const std::string& text);

}  // namespace tarn_server

#endif  // TARN_EXAMPLES_SERVER_READ_REQUEST_H_
