#include "tools/convert/tokenizer/byte_alphabet.h"

namespace tarn::convert {

const std::array<uint32_t, 256>& ByteAlphabet() {
  static const std::array<uint32_t, 256> alphabet = [] {
    std::array<uint32_t, 256> letters{};
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printed = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letters[byte] = printed ? byte : next++;
    }
    return letters;
  }();
  return alphabet;
}

}  // namespace tarn::convert
