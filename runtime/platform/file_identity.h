// What tells that a file is the one that was seen before, unchanged, in this run of the machine.
#ifndef TARN_RUNTIME_PLATFORM_FILE_IDENTITY_H_
#define TARN_RUNTIME_PLATFORM_FILE_IDENTITY_H_

#include <cstdint>

namespace tarn {

// Every change of a file's content moves its status change time (ctime), which nobody can set; replacing it changes the inode.
// Equal identities within one boot mean equal content, as long as changes go through the system: not what a disk loses, not stores
// through a mapping that was written to shortly before.
struct FileIdentity {
  bool known = false;  // false: no file, or none that could be asked
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  uint64_t offset_bytes = 0;  // of the part that is meant, and
  uint64_t length_bytes = 0;
  int64_t modified_ns = 0;  // since 1970
  int64_t changed_ns = 0;
};

// Of all of the file.
FileIdentity IdentityOf(int fd);

// Waits until a change of the file would move its times: within a tick of the system's clock they can stay. At most 20 ms, the
// longest tick (100 Hz) twice; no wait for a file that has not been changed lately. False: its times lie in the future.
bool WaitForNextTick(const FileIdentity& file);

// A text that differs after the machine has started anew, with a NUL. False: it cannot be read.
constexpr int kBootIdBytes = 37;
bool ReadBootId(char (&id)[kBootIdBytes]);

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_FILE_IDENTITY_H_
