// Continuous batching over one session: requests wait for a place, read their prompts in pieces and generate, all in the same runs
// of the model; whoever is ready leaves, and the next one takes the place. All requests have room that is taken at the start.
#ifndef TARN_EXAMPLES_SERVER_SCHEDULER_H_
#define TARN_EXAMPLES_SERVER_SCHEDULER_H_

#include <tarn/tarn.h>
#include <tarn/text_stream.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "state_folder.h"

namespace tarn_server {

// Throws std::runtime_error with the message.
void Check(tarn_status status, const tarn_error& error);

struct Options {
  std::string model;
  uint32_t places = 8;    // sequences of the session
  uint32_t waiting = 16;  // requests that may wait for a place; more are refused
  uint32_t chunk = 64;    // of a prompt that is read in one run
  uint32_t threads = 1;
  uint32_t max_prompt = 4096;      // tokens
  uint32_t max_output = 1024;      // tokens
  std::string state_folder;        // snapshots of requests that have a key; empty: none
  uint32_t snapshot_spacing = 64;  // tokens
};

struct Progress {
  std::string text;         // that nobody has taken
  const char* finish = "";  // "" until the end; "stop", "length" or "error"
  std::string error;
  uint32_t prompt_tokens = 0, output_tokens = 0;
};

class Scheduler {
 public:
  // Takes all memory. Throws std::runtime_error.
  explicit Scheduler(const Options& options);
  ~Scheduler();
  // Ends all requests, and saves those that run and have a key. May be called again.
  void Stop();

  // A ticket for a request. Throws Refused.
  size_t Add(Request request);
  // Waits for news of a request, at most `milliseconds`. Moves the text to `progress`.
  void Wait(size_t ticket, int milliseconds, Progress* progress);
  // The request is over, or nobody wants its answer: its place is free, its snapshot goes.
  void Leave(size_t ticket);

  const tarn_model_info& info() const { return info_; }
  const tarn_memory& memory() const { return memory_; }

 private:
  struct Job;
  enum class State { kFree, kWaiting, kRunning, kDone, kLeaving };

  void Run();
  void Admit();
  void Prepare(Job* job) const;
  void Start(Job* job);
  size_t CollectParts(std::vector<tarn_sequence_tokens>* parts, bool* wants_logits);
  void TakeLogits(Job* job, const float* logits);
  void TakeToken(Job* job, int32_t token);
  void End(Job* job, const char* finish, const std::string& error = "");
  void Free(Job* job);

  void Save(Job* job);
  bool Restore(Job* job);

  const Options options_;
  const StateFolder states_;
  std::unique_ptr<tarn_model, void (*)(tarn_model*)> model_{nullptr, tarn_model_close};
  std::unique_ptr<tarn_session, void (*)(tarn_session*)> session_{nullptr, tarn_session_destroy};
  tarn_model_info info_ = TARN_MODEL_INFO_INIT;
  tarn_memory memory_ = TARN_MEMORY_INIT;

  std::mutex mutex_;  // of everything below, but what only the thread of the session uses
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> places_;  // by sequence; nullptr: free
  uint64_t added_ = 0;
  bool stopping_ = false;
  std::vector<char> snapshot_;    // room for one
  std::vector<int32_t> drawn_;    // the tokens beside it
  std::vector<float> one_token_;  // logits that leave one choice
  std::thread thread_;
};

// Why a request is not taken: 429 where there is no room, 400 where it cannot be answered.
struct Refused {
  int status;
  std::string message;
};

}  // namespace tarn_server

#endif  // TARN_EXAMPLES_SERVER_SCHEDULER_H_
