// What tools/dev/text_cases.py wrote.
#ifndef TARN_TESTS_TEXT_TEXT_CASES_H_
#define TARN_TESTS_TEXT_TEXT_CASES_H_

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace tarn {

// From tests/text, or from the folder that TARN_TEXT_CASES names.
inline nlohmann::json TextCases(const std::string& name) {
  const char* folder = std::getenv("TARN_TEXT_CASES");
  const char* source = std::getenv("TARN_SOURCE");
  std::ifstream file(folder != nullptr ? folder + ("/" + name) : (source != nullptr ? source : ".") + ("/tests/text/" + name));
  return nlohmann::json::parse(file);
}

}  // namespace tarn

#endif  // TARN_TESTS_TEXT_TEXT_CASES_H_
