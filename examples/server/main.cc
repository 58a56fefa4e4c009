// A completion server: one model, one session, many clients. See README.md.
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "http.h"

namespace tarn_server {
namespace {

constexpr char kUsage[] =
    "usage: tarn_server MODEL.tarn (--socket PATH | --port N) [--places N] [--waiting N] [--chunk N] [--threads N]\n"
    "                   [--max-prompt TOKENS] [--max-output TOKENS] [--state FOLDER] [--snapshot-every TOKENS]\n";
constexpr size_t kRefusingThreads = 4;

struct Arguments {
  Options options;
  std::string socket;
  int port = 0;
};

constexpr uint32_t kMostTokens = 1u << 20;  // of a prompt, and of an answer

// A number of min .. max.
uint32_t Number(const std::string& option, const char* text, uint32_t min, uint32_t max) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < min || value > max) {
    throw std::runtime_error(option + ": '" + text + "', " + std::to_string(min) + " to " + std::to_string(max) + " expected");
  }
  return static_cast<uint32_t>(value);
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    throw std::runtime_error("--socket " + path + ": " + std::to_string(path.size()) + " bytes, at most " +
                             std::to_string(sizeof(address.sun_path) - 1) + " expected");
  path.copy(address.sun_path, path.size());
  return address;
}

// What a server that is gone has left at the path; a file that is no socket stays.
void RemoveSocket(const std::string& path) {
  const sockaddr_un address = AddressOf(path);
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) throw std::runtime_error("--socket " + path + ": a file that is no socket is there");
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const bool somebody_listens =
      connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;  // many wait there
  close(client);
  if (somebody_listens) throw std::runtime_error("--socket " + path + ": another server listens there");
  unlink(path.c_str());
}

Arguments Read(int argc, char** argv) {
  Arguments arguments;
  Options& options = arguments.options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.compare(0, 2, "--") != 0) {
      if (!options.model.empty()) throw std::runtime_error(name + ": a second model, one expected");
      options.model = name;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(name + ": a value expected");
    const char* const value = argv[++i];
    if (name == "--socket")
      arguments.socket = value;
    else if (name == "--state")
      options.state_folder = value;
    else if (name == "--port")
      arguments.port = static_cast<int>(Number(name, value, 1, 65535));
    else if (name == "--places")
      options.places = Number(name, value, 1, 4096);
    else if (name == "--waiting")
      options.waiting = Number(name, value, 0, 4096);
    else if (name == "--chunk")
      options.chunk = Number(name, value, 1, 4096);
    else if (name == "--threads")
      options.threads = Number(name, value, 0, 256);
    else if (name == "--max-prompt")
      options.max_prompt = Number(name, value, 1, kMostTokens);
    else if (name == "--max-output")
      options.max_output = Number(name, value, 1, kMostTokens);
    else if (name == "--snapshot-every")
      options.snapshot_spacing = Number(name, value, 1, kMostTokens);
    else
      throw std::runtime_error(name + ": no such option");
  }
  if (options.model.empty() || arguments.socket.empty() == (arguments.port == 0))
    throw std::runtime_error("a model, and --socket or --port expected");
  return arguments;
}

int Serve(const Arguments& arguments) {
  // Signals are waited for by one thread; all others are made after this.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  Scheduler scheduler(arguments.options);
  httplib::Server server;
  AddEndpoints(&scheduler, arguments.options.places + arguments.options.waiting + kRefusingThreads, &server);
  bool bound;
  if (!arguments.socket.empty()) {
    RemoveSocket(arguments.socket);
    server.set_address_family(AF_UNIX);
    bound = server.bind_to_port(arguments.socket.c_str(), 80);  // the number is not used
  } else {
    bound = server.bind_to_port("127.0.0.1", arguments.port);
  }
  if (!bound) {
    const bool is_socket = !arguments.socket.empty();
    throw std::runtime_error((is_socket ? "--socket " + arguments.socket : "--port " + std::to_string(arguments.port)) +
                             ": no server can listen there: " + std::strerror(errno));
  }
  std::atomic<bool> has_ended{false};
  std::thread stopper([&] {
    int number = 0;
    sigwait(&signals, &number);
    scheduler.Stop();
    // A server that does not listen yet would not hear of it.
    while (!server.is_running() && !has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server.stop();
  });
  std::printf("ready: %llu bytes of session\n", static_cast<unsigned long long>(scheduler.memory().session_bytes));
  std::fflush(stdout);
  const bool served = server.listen_after_bind();
  has_ended = true;
  if (!served) kill(getpid(), SIGTERM);  // for the stopper
  stopper.join();
  if (!arguments.socket.empty()) unlink(arguments.socket.c_str());
  if (!served) throw std::runtime_error("connections cannot be accepted any more");
  return 0;
}

}  // namespace
}  // namespace tarn_server

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, 2);  // threads share what one of them has freed
  try {
    return tarn_server::Serve(tarn_server::Read(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tarn_server: %s\n%s", error.what(), tarn_server::kUsage);
    return 1;
  }
}
