#include "http.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "read_request.h"

namespace tarn_server {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBody = size_t{1} << 20;
constexpr int kLookMilliseconds = 100;  // how often a silent request looks whether its client is there

// Bytes of a client or of a model that are no UTF-8 become U+FFFD.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json ErrorOf(int status, const std::string& message) { return {{"error", {{"message", message}, {"code", status}}}}; }

void SetError(int status, const std::string& message, httplib::Response* response) {
  response->status = status;
  if (status == 429) response->set_header("Retry-After", "1");
  response->set_content(Dump(ErrorOf(status, message)), "application/json");
}

bool IsKey(const std::string& key) {
  return key.size() <= 64 &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == std::string::npos;
}

// cpp-httplib 0.11 limits only bodies of a known length, as they were sent: chunked and compressed ones grow without bound. So a
// body must have a known length, and be sent as it is. Throws Refused before any of it is read.
void CheckBody(const httplib::Request& request) {
  const bool has_no_body = request.method == "GET" || request.method == "HEAD";
  if (!has_no_body && request.method != "POST") throw Refused{405, request.method + ": not supported, expected GET or POST"};
  for (const char* header : {"Transfer-Encoding", "Content-Encoding"}) {
    if (!request.has_header(header)) continue;
    const std::string found = std::string(header) + ": " + request.get_header_value(header);
    throw Refused{*header == 'T' ? 411 : 415, found + ", expected no such header, and Content-Length"};
  }
  if (request.is_multipart_form_data()) throw Refused{415, "Content-Type: multipart/form-data, expected application/json"};
  const std::string length = request.get_header_value("Content-Length");
  if (length.empty() && has_no_body) return;
  if (length.empty() || length.find_first_not_of("0123456789") != std::string::npos) {
    throw Refused{411, "Content-Length: '" + length + "', expected the bytes of the body"};
  }
  if (length.size() > std::to_string(kMostBody).size() || std::stoul(length) > kMostBody) {
    throw Refused{413, "Content-Length: " + length + ", expected at most " + std::to_string(kMostBody)};
  }
}

// False: the response says why the request is refused.
bool Accepts(const httplib::Request& request, httplib::Response* response) {
  try {
    CheckBody(request);
  } catch (const Refused& refused) {
    SetError(refused.status, refused.message, response);
    return false;
  }
  return true;
}

// A request that is being answered. Its place is free when it ends, however that comes.
class Completion {
 public:
  Completion(Scheduler* scheduler, Request request, bool streams)
      : scheduler_(scheduler), streams_(streams), ticket_(scheduler->Add(std::move(request))) {
    static std::atomic<uint64_t> count{0};
    id_ = "cmpl-" + std::to_string(++count);
  }
  ~Completion() { scheduler_->Leave(ticket_); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Waits for text and writes it. False: the client has gone.
  bool Go(httplib::DataSink* sink) {
    Progress progress;
    scheduler_->Wait(ticket_, kLookMilliseconds, &progress);
    const bool ends = progress.finish[0] != '\0';
    if (!sink->is_writable()) return false;
    text_ += progress.text;
    if (streams_ && !text_.empty()) {
      Write("data: " + Dump(Answer(nullptr, progress)) + "\n\n", sink);
      text_.clear();
    }
    if (!ends) return true;
    const bool failed = std::string(progress.finish) == "error";
    const std::string text = Dump(failed ? ErrorOf(500, progress.error) : Answer(progress.finish, progress));
    Write(streams_ ? "data: " + text + "\n\ndata: [DONE]\n\n" : text, sink);
    sink->done();
    return true;
  }

 private:
  static void Write(const std::string& text, httplib::DataSink* sink) { sink->write(text.data(), text.size()); }

  Json Answer(const char* finish, const Progress& progress) const {
    Json choice = {{"index", 0}, {"text", text_}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    if (finish != nullptr) choice["finish_reason"] = finish;
    Json answer = {{"id", id_},
                   {"object", "text_completion"},
                   {"created", static_cast<int64_t>(std::time(nullptr))},
                   {"model", scheduler_->info().name},
                   {"choices", Json::array({choice})}};
    if (finish != nullptr) {
      answer["usage"] = {{"prompt_tokens", progress.prompt_tokens},
                         {"completion_tokens", progress.output_tokens},
                         {"total_tokens", progress.prompt_tokens + progress.output_tokens}};
    }
    return answer;
  }

  Scheduler* const scheduler_;
  const bool streams_;
  const size_t ticket_;
  std::string id_, text_;
};

void Complete(Scheduler* scheduler, const httplib::Request& request, const httplib::ContentReader& read,
              httplib::Response* response) {
  std::string text;  // of at most kMostBody: CheckBody has seen to that
  const bool is_whole = read([&text](const char* piece, size_t bytes) {
    text.append(piece, bytes);
    return true;
  });
  try {
    const std::string length = request.get_header_value("Content-Length");
    if (!is_whole) throw Refused{400, "body: " + std::to_string(text.size()) + " bytes came, expected Content-Length: " + length};
    Body body = ReadBody(text);
    body.request.key = request.get_header_value("Idempotency-Key");
    if (!IsKey(body.request.key)) throw Refused{400, "Idempotency-Key: at most 64 letters, digits, - and _ expected"};
    const auto completion = std::make_shared<Completion>(scheduler, std::move(body.request), body.streams);
    // Headers go out before the answer is there: so it is noticed that a client has gone that waits for all of it.
    response->set_chunked_content_provider(body.streams ? "text/event-stream" : "application/json",
                                           [completion](size_t, httplib::DataSink& sink) { return completion->Go(&sink); });
  } catch (const Refused& refused) {
    SetError(refused.status, refused.message, response);
  }
}

}  // namespace

void AddEndpoints(Scheduler* scheduler, size_t threads, httplib::Server* server) {
  server->new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server->set_payload_max_length(kMostBody);
  server->set_keep_alive_max_count(1);  // an idle connection would hold a thread
  server->set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    return Accepts(request, &response) ? httplib::Server::HandlerResponse::Unhandled : httplib::Server::HandlerResponse::Handled;
  });
  server->set_expect_100_continue_handler([](const httplib::Request& request, httplib::Response& response) {
    return Accepts(request, &response) ? 100 : response.status;
  });
  // What cpp-httplib refuses itself, and exceptions: a request that it cannot read, a path that is none.
  server->set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    SetError(response.status,
             "request: '" + request.method + " " + request.path.substr(0, 80) + "', expected POST /v1/completions or GET /health",
             &response);
  });
  server->Get("/health", [scheduler](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        Dump({{"status", "ok"}, {"model", scheduler->info().name}, {"session_bytes", scheduler->memory().session_bytes}}),
        "application/json");
  });
  server->Post("/v1/completions",
               [scheduler](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read) {
                 Complete(scheduler, request, read, &response);
               });
}

}  // namespace tarn_server
