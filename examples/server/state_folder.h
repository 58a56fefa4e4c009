// Requests in files, so that a server that is started again goes on with them.
#ifndef TARN_EXAMPLES_SERVER_STATE_FOLDER_H_
#define TARN_EXAMPLES_SERVER_STATE_FOLDER_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tarn_server {

// What is asked for. The same, with the same model and on the same kernels, has the same answer.
struct Request {
  std::string key;  // names the request in the state folder; empty: it is not saved
  std::string prompt;
  uint32_t max_tokens = 16;
  tarn_sampler_config chain = TARN_SAMPLER_CONFIG_INIT;
  std::vector<std::string> stop;
};

class StateFolder {
 public:
  // Makes the folder; of what it has, the newest `most` requests stay. An empty path: nothing is saved.
  StateFolder(const std::string& path, size_t most);

  bool Keeps(const Request& request) const { return !path_.empty() && !request.key.empty(); }
  // The tokens that were drawn, and a snapshot of the sequence. What cannot be written is not saved.
  void Save(const Request& request, const std::vector<int32_t>& drawn, const char* snapshot, size_t bytes) const;
  // False where there is nothing of the same request, or the file is damaged. `snapshot` has room for the bytes of one.
  bool Load(const Request& request, std::vector<int32_t>* drawn, std::vector<char>* snapshot, size_t* bytes) const;
  void Remove(const Request& request) const;

 private:
  std::string PathOf(const Request& request) const;

  const std::string path_;
};

}  // namespace tarn_server

#endif  // TARN_EXAMPLES_SERVER_STATE_FOLDER_H_
