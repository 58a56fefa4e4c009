#include "tools/tarn/state_file.h"

#include <sys/stat.h>

#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"
#include "tools/tarn/state_content.h"

namespace tarn_cli {

std::vector<uint8_t> Snapshot(const tarn_session* session, bool is_compact) {
  std::vector<uint8_t> snapshot(is_compact ? tarn_session_compact_bytes(session) : tarn_session_snapshot_bytes(session));
  const auto save = is_compact ? tarn_session_save_compact : tarn_session_save;
  tarn_error error;
  Check(save(session, snapshot.data(), snapshot.size(), &error), error);
  return snapshot;
}

void SaveState(const tarn_session* session, bool is_compact, tarn::tools::OutputFile* file) {
  const std::vector<uint8_t> snapshot = Snapshot(session, is_compact);
  file->Write(snapshot.data(), snapshot.size());
  file->Commit();
}

uint64_t MostSnapshotBytes(const Model& model, const tarn_session_config& config) {
  return model.Requirements(config).state_bytes / 256 * 257 + 1024;
}

void LoadState(const std::string& path, const Model& model, const tarn_session_config& config, tarn_session* session) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    const uint64_t most = MostSnapshotBytes(model, config);
    if (!S_ISREG(info.st_mode)) throw Failure(path + ": is no regular file, expected one that /save or --save-state wrote");
    if (static_cast<uint64_t>(info.st_size) > most) {
      const StateContent snapshot(path);  // says what the file is, if it is none
      throw Failure(Format("%s: has %llu bytes, expected at most %llu, the largest snapshot of this model: it is of another model",
                           path.c_str(), static_cast<unsigned long long>(info.st_size), static_cast<unsigned long long>(most)));
    }
  }
  const std::string content = ReadFile(path == "-" ? "./-" : path);  // a file of that name, which /save - writes
  tarn_error error;
  if (tarn_session_restore(session, content.data(), content.size(), &error) != TARN_OK) throw Failure(path + ": " + error.message);
}

}  // namespace tarn_cli
