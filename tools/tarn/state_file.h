// The state of a session as a snapshot in a file.
#ifndef TARN_TOOLS_TARN_STATE_FILE_H_
#define TARN_TOOLS_TARN_STATE_FILE_H_

#include <tarn/tarn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/output_file.h"
#include "tools/tarn/model.h"

namespace tarn_cli {

// Throws Failure. Compact: rounded.
std::vector<uint8_t> Snapshot(const tarn_session* session, bool is_compact = false);

// Throws Failure, also where standard output or the model would be overwritten.
void SaveState(const tarn_session* session, bool is_compact, tarn::tools::OutputFile* file);

// `config` is that of the session. Throws Failure with the path: no snapshot, or one of another model; then nothing has changed.
void LoadState(const std::string& path, const Model& model, const tarn_session_config& config, tarn_session* session);

// More than any snapshot of such a session has.
uint64_t MostSnapshotBytes(const Model& model, const tarn_session_config& config);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_STATE_FILE_H_
