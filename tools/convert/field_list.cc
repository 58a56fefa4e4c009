#include "tools/convert/field_list.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "tools/common/suggestion.h"
#include "tools/convert/attention/attention.h"
#include "tools/convert/config/config.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/field_log.h"
#include "tools/convert/tensor_list.h"

namespace tarn::convert {
namespace {

constexpr char kConfig[] = "config";

// The runs of the parser in one form; "" if there are no forms.
struct FormRuns {
  std::string form;
  std::vector<FieldRun> runs;
};

std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  std::string short_text = text;
  const size_t zero = short_text.find("e-0");
  if (zero != std::string::npos) short_text.erase(zero + 2, 1);
  return short_text;
}

// "2^24" for powers of two that nobody knows by heart.
std::string IntegerText(uint64_t number) {
  for (unsigned bits = 17; bits < 64; ++bits) {
    if (number == uint64_t{1} << bits) return "2^" + std::to_string(bits);
    if (number == (uint64_t{1} << bits) - 1) return "2^" + std::to_string(bits) + " - 1";
  }
  return number == UINT64_MAX ? "2^64 - 1" : std::to_string(number);
}

// What a number is made of that differs from model to model, or the number. `key`: the field, which is not made of itself.
std::string SizeText(double number, const std::string& key) {
  constexpr double kDim = kSampleHeadDim, kHidden = kSampleHidden;
  const std::pair<double, const char*> sizes[] = {
      {kDim, key == "head_dim" ? "hidden_size / num_heads" : "head_dim"},
      {kSampleHeads, "num_heads"},
      {kHidden, "hidden_size"},
      {1009, "vocab_size"},
      {9.0 / 128, "norm_eps"},
      {1008, "vocab_size - 1"},
      {std::pow(kDim, -0.5), key == "pack_scale" ? "(hidden_size / num_pack_heads)^-1/2" : "head_dim^-1/2"},
      {std::pow(kDim, -0.25), "head_dim^-1/4"},
      {std::pow(kHidden, -0.5), "hidden_size^-1/2"},
      {std::pow(kHidden, 0.5), "hidden_size^1/2"},
      {2 * kDim * 17, "2 * head_dim * nu"},  // the first sample size
  };
  for (const auto& [size, text] : sizes) {
    if (std::fabs(number - size) <= 1e-6 * size) return text;
  }
  return number == std::floor(number) && number >= 0 ? IntegerText(static_cast<uint64_t>(number)) : NumberText(number);
}

std::string JsonText(const Json& value, const std::string& key) {
  return value.is_number() ? SizeText(value.get<double>(), key) : value.dump();
}

std::string DefaultText(const FieldRecord& record) {
  if (!record.fallback) return "required";
  const bool plain = record.fallback->is_string() && record.kind != FieldKind::kChoice && record.kind != FieldKind::kFixed;
  return plain ? record.fallback->get<std::string>() : JsonText(*record.fallback, record.key);
}

std::string ValuesText(const FieldRecord& record) {
  const std::string range = record.max == UINT64_MAX
                                ? std::to_string(record.min) + " to 2^64 - 1"
                                : std::to_string(record.min) + " to " + SizeText(static_cast<double>(record.max), record.key);
  switch (record.kind) {
    case FieldKind::kInteger:
      return "integer, " + range;
    case FieldKind::kNumber:
      return record.text.empty() ? "number" : "number, " + record.text;
    case FieldKind::kBool:
      return "true or false";
    case FieldKind::kList:
      return "ascending list of integers, 0 to " + SizeText(static_cast<double>(record.max), record.key);
    case FieldKind::kFixed:
      return "only " + (record.key == "num_slots" ? "the number of global_positions" : JsonText(*record.fallback, record.key));
    case FieldKind::kOther:
      return record.text;
    case FieldKind::kChoice:
      break;
  }
  std::string names;
  for (const Json& choice : record.choices) names += (names.empty() ? "" : ", ") + choice.dump();
  return names;
}

using TextOf = std::string (*)(const FieldRecord& record);

// What `text_of` says of a field: of the first run that has it, and where another one says something else.
std::string Merged(const std::vector<FormRuns>& forms, const std::string& key, TextOf text_of) {
  std::string merged;
  std::set<std::string> said;
  for (const FormRuns& form : forms) {
    for (const FieldRun& run : form.runs) {
      const FieldRecord* record = run.Find(key);
      if (record == nullptr || !said.insert(text_of(*record)).second) continue;
      const std::string text = text_of(*record);
      if (merged.empty()) {
        merged = text;
        continue;
      }
      const auto same = [&](const FieldRun& other) {
        const FieldRecord* found = other.Find(key);
        return found != nullptr && text_of(*found) == text;
      };
      merged += "; " + (run.set.empty() ? form.form : Where(form.runs, same)) + ": " + text;
    }
  }
  return merged;
}

// " (forget: causal)": values of a choice that not every form takes.
std::string FormsOfValues(const std::vector<FormRuns>& forms, const FieldRecord& record) {
  std::string text;
  for (const Json& choice : record.choices) {
    std::string taken;
    size_t asked = 0, count = 0;
    for (const FormRuns& form : forms) {
      if (!form.runs[0].accepted || form.runs[0].Find(record.key) == nullptr) continue;
      ++asked;
      const auto takes = [&](const FieldRun& run) {
        return run.accepted && run.object.value(record.key, record.fallback.value_or(record.choices[0])) == choice;
      };
      if (std::none_of(form.runs.begin(), form.runs.end(), takes)) continue;
      ++count;
      taken += (taken.empty() ? "" : ", ") + form.form;
    }
    if (count > 0 && count < asked) text += " (" + choice.dump() + ": " + taken + ")";
  }
  return text;
}

std::string Row(const std::string& system, const std::vector<FormRuns>& forms, const FieldRecord& record) {
  std::string meaning = MeaningOf(system, record.key);
  for (const FormRuns& form : forms) {
    if (!IsRead(form.runs, record.key)) continue;
    const std::string where = WhereRead(form.runs, record.key);
    if (!where.empty()) meaning += "; read where " + where;
    break;
  }
  return record.key + "  " + Merged(forms, record.key, ValuesText) + FormsOfValues(forms, record) + "  " +
         Merged(forms, record.key, DefaultText) + "  " + meaning;
}

std::string Rows(const std::string& system, const std::vector<FormRuns>& forms) {
  std::string text;
  std::set<std::string> shown;
  for (const FormRuns& form : forms) {
    for (const FieldRun& run : form.runs) {
      for (const FieldRecord& record : run.records) {
        if (record.key == "system" || !shown.insert(record.key).second) continue;
        text += "  " + Row(system, forms, record) + "\n";
      }
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> FieldListNames() {
  std::vector<std::string> names = {kConfig};
  for (const std::string& task : TaskNames()) names.push_back(task);
  for (const std::string& system : SystemNames()) names.push_back(system);
  return names;
}

std::string FieldList(const std::string& name) {
  const std::string header = "  field  values  default  meaning\n";
  const std::vector<std::string> tasks = TaskNames();
  const bool task = std::find(tasks.begin(), tasks.end(), name) != tasks.end();
  if (name == kConfig) return "config.json\n" + header + Rows(kConfig, {{"", ExploreConfig()}});
  if (task) {
    const std::vector<FieldRun> runs = ExploreConfig(name);
    return "config.json, task " + name + "\n" + header + Rows(kConfig, {{"", runs}}) + TensorText(TaskTensors(runs));
  }
  const uint32_t forms = FormsOf(name);
  if (forms == 0) {
    throw tools::UsageFailure("--list-fields " + name + ": unknown" + tools::DidYouMean(name, FieldListNames()) +
                              ", expected all, config, a task or an attention variant of tarn-convert --systems");
  }
  std::vector<FormRuns> explored;
  for (const AttentionForm form : kAttentionForms) {
    if (HasForm(name, form)) explored.push_back({FormsText(FormBit(form)), ExploreAttention(name, SampleContext(form))});
  }
  return name + " (" + FormsText(forms) + ")\n" + header + Rows(name, explored) + TensorText(SystemTensors(name));
}

}  // namespace tarn::convert
