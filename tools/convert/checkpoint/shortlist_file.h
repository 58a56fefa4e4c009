// Shortlists of Marian in their binary form, lex*.bin, little-endian:
//
//   u64              the magic number 0xF11A48D5013417F5
//   u64              a hash of the rest, in u64 (without four bytes at the end, where they are left over)
//   u64, u64         first: how many tokens, from 0 on, can follow any source; best: the most tokens of a list
//   u64, u64         the number of offsets, which is one more than there are tokens of a source; the number n of targets
//   offsets * u64    where the list of each token begins in the targets, and n
//   n * u32          targets
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_SHORTLIST_FILE_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_SHORTLIST_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::convert {

struct ShortlistFile {
  std::string path;
  uint32_t first = 0;                     // at least 1, at most 2^31 - 1
  std::vector<int32_t> offsets, targets;  // ascending from 0 to the number of targets; at least 0

  size_t words() const { return offsets.size() - 1; }
};

// Errors: as MappedFile; a file of another kind, or a damaged one; offsets that do not ascend; targets beyond 2^31; no target.
ShortlistFile ReadShortlist(const std::string& path);

// The shortlists of a folder, files that are called lex*.bin, in the order of their names.
std::vector<std::string> FindShortlists(const std::string& folder);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_SHORTLIST_FILE_H_
