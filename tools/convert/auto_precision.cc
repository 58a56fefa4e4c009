#include "tools/convert/auto_precision.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <utility>

#include "tools/convert/summary.h"
#include "tools/convert/writer/graph_buffer.h"

namespace tarn::convert {
namespace {

constexpr Precision Wider(Precision type) { return static_cast<Precision>(static_cast<uint8_t>(type) - 1); }
constexpr Precision Narrower(Precision type) { return static_cast<Precision>(static_cast<uint8_t>(type) + 1); }

std::string LossText(double loss) {
  char text[32];
  std::snprintf(text, sizeof(text), "%+.6f", loss);
  return text;
}

class Search {
 public:
  Search(const AutoModel& model, double max_loss) : model_(model), max_loss_(max_loss) {}

  AutoChoice Run() {
    AutoChoice now = Measured({}, NameOf(base_));
    while (now.loss <= max_loss_ && base_ != Precision::kInt2) {
      base_ = Narrower(base_);
      now = Measured({}, NameOf(base_));
    }
    for (Precision type = base_; type != Precision::kF32 && now.loss > max_loss_;) {
      type = Wider(type);
      now = Raise(std::move(now), type);
    }
    return Lower(std::move(now));
  }

 private:
  // A group, and what its next type would win.
  struct Candidate {
    std::string group;
    uint64_t bytes;
    double won;
    double PerByte() const { return won / static_cast<double>(std::max<uint64_t>(bytes, 1)); }
  };

  std::unique_ptr<GraphBuilder> Build(const GroupTypes& types) const { return model_.build(base_, types); }

  static uint64_t BytesOf(const Graph& graph) {
    uint64_t bytes = 0;
    for (const GraphTensor& tensor : graph.tensors) bytes += TensorBytes(tensor);
    return bytes;
  }

  AutoChoice Measured(GroupTypes types, const std::string& step) {
    const auto builder = Build(types);
    const double loss = model_.measure(builder->graph(), step);
    bytes_ = BytesOf(builder->graph());
    model_.report(step + ": " + BytesText(bytes_) + " of weights, loss " + LossText(loss));
    return {base_, std::move(types), loss};
  }

  // The groups that get another type if `types` say so: a rule of the user holds for the others.
  std::vector<std::string> FreeGroups(const GroupTypes& types, Precision type) const {
    const auto precisions = [](const GraphBuilder& builder) {
      std::map<std::string, Precision> of;
      for (const Matrix& matrix : builder.matrices()) of[matrix.name] = matrix.precision;
      return of;
    };
    const auto before = Build(types);
    GroupTypes all = types;
    for (const Matrix& matrix : before->matrices()) all[GroupOf(matrix.name)] = type;
    const auto after = Build(all);
    const std::map<std::string, Precision> old = precisions(*before), changed = precisions(*after);
    std::vector<std::string> groups;
    for (const auto& [name, precision] : changed) {
      if (old.at(name) != precision) groups.push_back(GroupOf(name));
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }

  // Groups get a type, those that win most for their bytes first, until the loss is within its bound.
  AutoChoice Raise(AutoChoice now, Precision type) {
    const std::string& name = NameOf(type);
    std::vector<Candidate> candidates;
    const uint64_t base_bytes = BytesOf(Build(now.types)->graph());
    for (const std::string& group : FreeGroups(now.types, type)) {
      GroupTypes types = now.types;
      types[group] = type;
      const AutoChoice one = Measured(std::move(types), group + " alone in " + name);
      candidates.push_back({group, bytes_ - std::min(bytes_, base_bytes), now.loss - one.loss});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.PerByte() > b.PerByte(); });
    for (const Candidate& candidate : candidates) {
      GroupTypes types = now.types;
      types[candidate.group] = type;
      now = Measured(std::move(types), candidate.group + " in " + name + ", too");
      if (now.loss <= max_loss_) break;
    }
    return now;
  }

  // Groups go back by a type where the loss stays within its bound, those that save most first.
  AutoChoice Lower(AutoChoice now) {
    if (now.loss > max_loss_) return now;
    std::vector<std::pair<uint64_t, std::string>> savings;
    const uint64_t bytes = BytesOf(Build(now.types)->graph());
    for (const auto& [group, type] : now.types) {
      const uint64_t without = BytesOf(Build(OneLower(now.types, group))->graph());
      savings.emplace_back(bytes - std::min(bytes, without), group);
    }
    std::sort(savings.rbegin(), savings.rend());
    for (const auto& [saved, group] : savings) {
      if (now.types.size() == 1 && now.types.begin()->second == Wider(base_)) break;  // that is the base alone
      const AutoChoice other = Measured(OneLower(now.types, group), group + " one type lower");
      if (other.loss <= max_loss_) now = other;
    }
    return now;
  }

  GroupTypes OneLower(GroupTypes types, const std::string& group) const {
    const Precision type = Narrower(types.at(group));
    if (type == base_) {
      types.erase(group);
    } else {
      types[group] = type;
    }
    return types;
  }

  const AutoModel& model_;
  const double max_loss_;
  Precision base_ = Precision::kInt4;  // what groups without another type have
  uint64_t bytes_ = 0;                 // of the weights that were measured last
};

}  // namespace

std::string GroupOf(const std::string& matrix) {
  std::string group;
  size_t begin = 0;
  while (begin <= matrix.size()) {
    const size_t end = std::min(matrix.find('.', begin), matrix.size());
    const std::string part = matrix.substr(begin, end - begin);
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    group += (begin == 0 ? "" : ".") + (number ? "*" : part);
    begin = end + 1;
  }
  return group;
}

AutoChoice ChoosePrecision(const AutoModel& model, double max_loss) { return Search(model, max_loss).Run(); }

}  // namespace tarn::convert
