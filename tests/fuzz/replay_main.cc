// Runs a fuzzer over files: what `make test` does with the corpus where there is no libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
    const std::vector<char> read((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::vector<char> bytes = read;  // of their size, so that reading behind them is found
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    std::printf("%s: %zu bytes\n", argv[i], bytes.size());
  }
  return argc > 1 ? 0 : 1;
}
