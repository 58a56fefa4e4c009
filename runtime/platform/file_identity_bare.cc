// No files: there is nothing to recognise.
#include "runtime/platform/file_identity.h"

namespace tarn {

FileIdentity IdentityOf(int) { return FileIdentity(); }

bool WaitForNextTick(const FileIdentity&) { return false; }

bool ReadBootId(char (&)[kBootIdBytes]) { return false; }

}  // namespace tarn
