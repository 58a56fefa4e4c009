#include "http.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace tarn_server {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostBody = size_t{1} << 20;
constexpr int kLookMilliseconds = 100;  // how often a silent request looks whether its client is there

void SetError(int status, const std::string& message, httplib::Response* response) {
  response->status = status;
  if (status == 429) response->set_header("Retry-After", "1");
  response->set_content(Json({{"error", {{"message", message}, {"code", status}}}}).dump(), "application/json");
}

bool IsKey(const std::string& key) {
  return key.size() <= 64 &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == std::string::npos;
}

// Fields that would change the answer, and are not supported.
constexpr const char* kNotSupported[] = {"echo", "logit_bias", "logprobs", "suffix"};

Request ReadRequest(const Json& body, const std::string& key) {
  if (!body.is_object() || !body.contains("prompt")) throw Refused{400, "prompt: a string expected"};
  for (const char* field : kNotSupported) {
    const auto found = body.find(field);
    const bool asks = found != body.end() && !found->is_null() && *found != false && !found->empty();
    if (asks) throw Refused{400, std::string(field) + ": not supported, expected no such field"};
  }
  if (body.value("n", 1) != 1 || body.value("best_of", 1) != 1) throw Refused{400, "n, best_of: 1 expected"};
  if (!IsKey(key)) throw Refused{400, "Idempotency-Key: at most 64 letters, digits, - and _ expected"};
  Request request;
  request.key = key;
  request.prompt = body["prompt"].get<std::string>();
  request.max_tokens = body.value("max_tokens", 16u);
  tarn_sampler_config& chain = request.chain;
  chain.temperature = body.value("temperature", chain.temperature);
  chain.top_k = body.value("top_k", chain.top_k);
  chain.top_p = body.value("top_p", chain.top_p);
  chain.min_p = body.value("min_p", chain.min_p);
  chain.seed = body.value("seed", uint64_t{0});
  chain.frequency_penalty = body.value("frequency_penalty", 0.0f);
  chain.presence_penalty = body.value("presence_penalty", 0.0f);
  if (body.contains("stop") && body["stop"].is_string()) request.stop.push_back(body["stop"].get<std::string>());
  if (body.contains("stop") && body["stop"].is_array()) request.stop = body["stop"].get<std::vector<std::string>>();
  return request;
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
      Write("data: " + Answer(nullptr, progress).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n", sink);
      text_.clear();
    }
    if (!ends) return true;
    const std::string error = std::string(progress.finish) == "error" ? progress.error : "";
    const Json last = error.empty() ? Answer(progress.finish, progress) : Json({{"error", {{"message", error}, {"code", 500}}}});
    const std::string text = last.dump(-1, ' ', false, Json::error_handler_t::replace);
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

void Complete(Scheduler* scheduler, const httplib::Request& request, httplib::Response* response) {
  try {
    const Json body = Json::parse(request.body);
    const bool streams = body.is_object() && body.value("stream", false);
    const auto completion =
        std::make_shared<Completion>(scheduler, ReadRequest(body, request.get_header_value("Idempotency-Key")), streams);
    // Headers go out before the answer is there: so it is noticed that a client has gone that waits for all of it.
    response->set_chunked_content_provider(streams ? "text/event-stream" : "application/json",
                                           [completion](size_t, httplib::DataSink& sink) { return completion->Go(&sink); });
  } catch (const Refused& refused) {
    SetError(refused.status, refused.message, response);
  } catch (const Json::exception& error) {
    SetError(400, error.what(), response);
  }
}

}  // namespace

void AddEndpoints(Scheduler* scheduler, size_t threads, httplib::Server* server) {
  server->new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server->set_payload_max_length(kMostBody);
  server->set_keep_alive_max_count(1);  // an idle connection would hold a thread
  server->Get("/health", [scheduler](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        Json({{"status", "ok"}, {"model", scheduler->info().name}, {"session_bytes", scheduler->memory().session_bytes}}).dump(),
        "application/json");
  });
  server->Post("/v1/completions", [scheduler](const httplib::Request& request, httplib::Response& response) {
    Complete(scheduler, request, &response);
  });
}

}  // namespace tarn_server
