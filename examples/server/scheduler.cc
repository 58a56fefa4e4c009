#include "scheduler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

namespace tarn_server {
namespace {

void Append(void* text, const char* piece, size_t bytes) { static_cast<std::string*>(text)->append(piece, bytes); }

}  // namespace

void Check(tarn_status status, const tarn_error& error) {
  if (status != TARN_OK) throw std::runtime_error(error.message);
}

struct Scheduler::Job {
  State state = State::kFree;
  uint64_t order = 0;  // of its coming
  uint32_t place = 0;  // where it runs
  Request request;
  std::vector<int32_t> tokens;  // of the prompt, and those that were drawn
  size_t prompt_tokens = 0;
  size_t fed = 0;    // of the tokens, to the session
  size_t saved = 0;  // of these, in the state folder
  std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler{nullptr, tarn_sampler_destroy};
  std::unique_ptr<tarn_text_stream, void (*)(tarn_text_stream*)> stream{nullptr, tarn_text_stream_destroy};
  Progress progress;
};

Scheduler::Scheduler(const Options& options) : options_(options), states_(options.state_folder, 4 * options.places) {
  tarn_error error;
  tarn_source source = TARN_SOURCE_INIT;
  source.path = options.model.c_str();
  tarn_model* model = nullptr;
  Check(tarn_model_open(&source, nullptr, &model, &error), error);
  model_.reset(model);
  Check(tarn_model_get_info(model, &info_, &error), error);
  if (info_.task != TARN_TASK_CAUSAL_LM || info_.tokenizer == TARN_TOKENIZER_NONE) {
    throw std::runtime_error(options.model + ": a causal language model with a tokenizer expected");
  }
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.batch = options.places;
  config.max_chunk = options.chunk;
  config.threads = options.threads;
  Check(tarn_model_requirements(model, &config, &memory_, &error), error);
  tarn_session* session = nullptr;
  Check(tarn_session_create(model, &config, &session, &error), error);
  session_.reset(session);
  for (uint32_t i = 0; i < options.places + options.waiting; ++i) {
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->tokens.reserve(options.max_prompt + options.max_output);
    jobs_.back()->progress.text.reserve(options.max_output * tarn_max_piece_bytes(model));
  }
  places_.resize(options.places, nullptr);
  one_token_.resize(info_.vocab_size, -INFINITY);
  if (!options.state_folder.empty()) snapshot_.resize(static_cast<size_t>(memory_.state_bytes / options.places * 513 / 512) + 4096);
  thread_ = std::thread(&Scheduler::Run, this);
}

Scheduler::~Scheduler() { Stop(); }

void Scheduler::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

size_t Scheduler::Add(Request request) {
  std::vector<int32_t> tokens(options_.max_prompt);
  size_t count = 0;
  tarn_error error;
  const tarn_status status =
      tarn_tokenize(model_.get(), request.prompt.data(), request.prompt.size(), tokens.data(), tokens.size(), &count, &error);
  if (status == TARN_BUFFER_TOO_SMALL) {
    throw Refused{400,
                  "prompt: " + std::to_string(count) + " tokens, at most " + std::to_string(options_.max_prompt) + " expected"};
  }
  if (status != TARN_OK) throw Refused{400, std::string("prompt: ") + error.message};
  if (count == 0 && info_.bos_token >= 0) tokens[count++] = info_.bos_token;
  if (count == 0) throw Refused{400, "prompt: empty, and the model has no begin token"};
  if (count > info_.max_context) throw Refused{400, "prompt: longer than the context of the model"};
  if (request.max_tokens < 1 || request.max_tokens > options_.max_output) {
    throw Refused{400,
                  "max_tokens: " + std::to_string(request.max_tokens) + ", expected 1 to " + std::to_string(options_.max_output)};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t ticket = 0; ticket < jobs_.size(); ++ticket) {
    Job& job = *jobs_[ticket];
    if (job.state != State::kFree && !request.key.empty() && job.request.key == request.key) {
      throw Refused{409, "Idempotency-Key: a request with this key is being answered"};
    }
  }
  for (size_t ticket = 0; !stopping_ && ticket < jobs_.size(); ++ticket) {
    Job& job = *jobs_[ticket];
    if (job.state != State::kFree) continue;
    job.order = added_++;
    job.request = std::move(request);
    job.tokens.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
    job.prompt_tokens = count;
    job.progress.prompt_tokens = static_cast<uint32_t>(count);
    try {
      Prepare(&job);
    } catch (const Refused&) {
      Free(&job);
      throw;
    }
    job.state = State::kWaiting;
    changed_.notify_all();
    return ticket;
  }
  throw Refused{429, "all places are taken: " + std::to_string(options_.places) + " run, " + std::to_string(options_.waiting) +
                         " wait; try again later"};
}

void Scheduler::Wait(size_t ticket, int milliseconds, Progress* progress) {
  std::unique_lock<std::mutex> lock(mutex_);
  Progress& from = jobs_[ticket]->progress;
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                    [&] { return stopping_ || !from.text.empty() || from.finish[0] != '\0'; });
  progress->text = from.text;
  from.text.clear();
  progress->finish = stopping_ && from.finish[0] == '\0' ? "error" : from.finish;
  progress->error = stopping_ ? "the server stops" : from.error;
  progress->prompt_tokens = from.prompt_tokens;
  progress->output_tokens = from.output_tokens;
}

void Scheduler::Leave(size_t ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Job& job = *jobs_[ticket];
  if (!stopping_ && states_.Keeps(job.request)) states_.Remove(job.request);
  if (job.state != State::kRunning) {
    Free(&job);
  } else if (!stopping_) {        // else Run() saves it
    job.state = State::kLeaving;  // its tokens may be in a run just now
  }
  changed_.notify_all();
}

void Scheduler::Free(Job* job) {
  job->state = State::kFree;
  job->request = Request();
  job->tokens.clear();
  job->fed = job->saved = 0;
  job->sampler.reset();
  job->stream.reset();
  job->progress.text.clear();
  job->progress.finish = "";
  job->progress.error.clear();
  job->progress.output_tokens = 0;
}

// ---- the thread of the session ----

void Scheduler::Run() {
  std::vector<tarn_sequence_tokens> parts;
  parts.reserve(places_.size());
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    Admit();
    bool wants_logits = false;
    if (CollectParts(&parts, &wants_logits) == 0) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    tarn_error error;
    const float* logits = nullptr;
    const tarn_status status =
        tarn_session_prefill_sequences(session_.get(), parts.data(), parts.size(), wants_logits ? &logits : nullptr, &error);
    lock.lock();
    for (size_t i = 0; i < parts.size(); ++i) {
      Job* const job = places_[parts[i].sequence];
      if (status != TARN_OK) {
        End(job, "error", error.message);
        continue;
      }
      job->fed += parts[i].count;
      if (job->fed == job->tokens.size()) TakeLogits(job, logits + i * info_.vocab_size);
      if (job->state == State::kRunning && job->fed - job->saved >= options_.snapshot_spacing) Save(job);
    }
    changed_.notify_all();
  }
  for (Job* job : places_) {
    if (job != nullptr && job->state == State::kRunning) Save(job);
  }
}

// Those that leave go, and those that wait come, in the order of their coming.
void Scheduler::Admit() {
  for (uint32_t place = 0; place < places_.size(); ++place) {
    Job*& there = places_[place];
    if (there != nullptr && there->state == State::kLeaving) Free(there);
    if (there != nullptr && there->state != State::kRunning) there = nullptr;
    while (there == nullptr) {
      Job* next = nullptr;
      for (const std::unique_ptr<Job>& job : jobs_) {
        if (job->state == State::kWaiting && (next == nullptr || job->order < next->order)) next = job.get();
      }
      if (next == nullptr) break;
      next->place = place;
      Start(next);
      if (next->state == State::kRunning) there = next;
    }
  }
}

// Sampler and text of the request. Throws Refused, and has taken nothing then.
void Scheduler::Prepare(Job* job) const {
  tarn_error error;
  tarn_sampler* sampler = nullptr;
  if (tarn_sampler_create(info_.vocab_size, &job->request.chain, &sampler, &error) != TARN_OK) throw Refused{400, error.message};
  job->sampler.reset(sampler);
  std::vector<tarn_stop_string> stops;
  for (const std::string& stop : job->request.stop) stops.push_back({stop.data(), stop.size()});
  tarn_text_stream_config config = TARN_TEXT_STREAM_CONFIG_INIT;
  config.stop_strings = stops.data();
  config.stop_string_count = stops.size();
  config.write = Append;
  config.write_context = &job->progress.text;
  tarn_text_stream* stream = nullptr;
  if (tarn_text_stream_create(model_.get(), &config, &stream, &error) != TARN_OK) throw Refused{400, error.message};
  job->stream.reset(stream);
  for (const int32_t token : job->tokens) {
    tarn_sampler_accept(sampler, token);
    tarn_text_stream_prompt(stream, token, nullptr, 0, nullptr, &error);
  }
  job->progress.text.clear();  // of the prompt
}

// It runs then, or has ended already: what an earlier server saved may be all of it.
void Scheduler::Start(Job* job) {
  tarn_error error;
  job->state = State::kRunning;
  if (!Restore(job)) tarn_session_reset_sequence(session_.get(), job->place, &error);
}

size_t Scheduler::CollectParts(std::vector<tarn_sequence_tokens>* parts, bool* wants_logits) {
  parts->clear();
  for (const Job* job : places_) {
    if (job == nullptr) continue;
    const size_t count = std::min<size_t>(options_.chunk, job->tokens.size() - job->fed);
    parts->push_back({job->place, job->tokens.data() + job->fed, count});
    *wants_logits = *wants_logits || job->fed + count == job->tokens.size();
  }
  return parts->size();
}

void Scheduler::TakeLogits(Job* job, const float* logits) {
  tarn_error error;
  int32_t token = 0;
  if (tarn_sampler_sample(job->sampler.get(), logits, &token, &error) != TARN_OK) {
    End(job, "error", error.message);
    return;
  }
  TakeToken(job, token);
}

void Scheduler::TakeToken(Job* job, int32_t token) {
  if (token == info_.eos_token) {
    End(job, "stop");
    return;
  }
  tarn_error error;
  job->tokens.push_back(token);
  ++job->progress.output_tokens;
  tarn_text_stream_feed(job->stream.get(), token, nullptr, 0, nullptr, &error);
  if (tarn_text_stream_stop(job->stream.get()) >= 0) {
    End(job, "stop");
  } else if (job->progress.output_tokens >= job->request.max_tokens || job->tokens.size() > info_.max_context) {
    End(job, "length");
  }
}

void Scheduler::End(Job* job, const char* finish, const std::string& message) {
  tarn_error error;
  if (job->stream != nullptr) tarn_text_stream_finish(job->stream.get(), nullptr, 0, nullptr, &error);
  job->progress.finish = finish;
  job->progress.error = message;
  if (job->state != State::kLeaving) job->state = State::kDone;  // it has its answer, and no place any more
}

// ---- the state folder ----

void Scheduler::Save(Job* job) {
  job->saved = job->fed;
  if (!states_.Keeps(job->request)) return;
  tarn_error error;
  const uint64_t bytes = tarn_session_sequence_snapshot_bytes(session_.get(), job->place);
  if (bytes > snapshot_.size()) return;
  if (tarn_session_save_sequence(session_.get(), job->place, snapshot_.data(), bytes, &error) != TARN_OK) return;
  drawn_.assign(job->tokens.begin() + static_cast<ptrdiff_t>(job->prompt_tokens), job->tokens.end());
  states_.Save(job->request, drawn_, snapshot_.data(), static_cast<size_t>(bytes));
}

// Goes on from what an earlier server has saved of the same request. False: there is nothing that fits, and the state is undefined.
bool Scheduler::Restore(Job* job) {
  size_t bytes = 0;
  if (!states_.Keeps(job->request) || !states_.Load(job->request, &drawn_, &snapshot_, &bytes)) return false;
  for (const int32_t token : drawn_) {
    if (token < 0 || static_cast<uint32_t>(token) >= info_.vocab_size) return false;
  }
  tarn_error error;
  if (tarn_session_restore_sequence(session_.get(), job->place, snapshot_.data(), bytes, &error) != TARN_OK) return false;
  const size_t fed = static_cast<size_t>(tarn_session_sequence_tokens(session_.get(), job->place));
  if (fed >= job->prompt_tokens + drawn_.size()) return false;  // no token is left to go on with
  job->fed = job->saved = fed;
  // The sampler draws as it did when there was a choice, and so stands where it stood.
  for (const int32_t token : drawn_) {
    int32_t picked = 0;
    one_token_[static_cast<size_t>(token)] = 0;
    tarn_sampler_sample(job->sampler.get(), one_token_.data(), &picked, &error);
    one_token_[static_cast<size_t>(token)] = -INFINITY;
    TakeToken(job, token);
  }
  return true;
}

}  // namespace tarn_server
