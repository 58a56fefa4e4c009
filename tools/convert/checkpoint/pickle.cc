#include "tools/convert/checkpoint/pickle.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr size_t kMaxNodes = 4'000'000;  // as many as values of a JSON file: hundreds of thousands of tensors
constexpr size_t kMaxNameBytes = 256;    // of a module or of a name in it

// The opcodes of Python's pickletools that state dicts need, by their names there.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneValue = 'N',
  kBinPersistentId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kBuild = 'b',
  kGlobalName = 'c',
  kEmptyDict = '}',
  kBinGet = 'h',
  kInstance = 'i',  // protocol 0: named, then refused
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
  kLong4 = 0x8B,
  kShortBinUnicode = 0x8C,
  kBinUnicode8 = 0x8D,
  kBinBytes8 = 0x8E,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

class Reader {
 public:
  Reader(const uint8_t* data, size_t size, const std::string& where, Span<const PickleGlobal> known)
      : data_(data), size_(size), where_(where), known_(known) {}

  Pickle Read() {
    if (size_ < 2 || data_[0] != kProtocol || data_[1] < 2 || data_[1] > 5) FailHere("no pickle of protocol 2 to 5 begins here");
    at_ = 2;
    for (;;) {
      opcode_at_ = at_;
      const auto opcode = static_cast<uint8_t>(Unsigned(1));
      if (opcode == kStop) break;
      if (ReadNumber(opcode) || ReadText(opcode) || ReadContainer(opcode) || ReadMemo(opcode) || ReadCall(opcode)) continue;
      FailHere("opcode " + std::to_string(opcode) + ", which no file of tensors needs");
    }
    pickle_.root = Pop();
    if (!stack_.empty() || !marks_.empty()) FailHere("the pickle ends before its objects are complete");
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void FailHere(const std::string& message) const { Fail(where_, ": byte ", opcode_at_, ": ", message); }

  const uint8_t* Take(uint64_t bytes) {
    if (bytes > size_ - at_) FailHere("the pickle ends at byte " + std::to_string(size_) + ", inside this");
    const uint8_t* taken = data_ + at_;
    at_ += bytes;
    return taken;
  }

  // Little-endian.
  uint64_t Unsigned(size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, Take(bytes), bytes);
    return value;
  }

  std::string_view Text(uint64_t bytes) { return {reinterpret_cast<const char*>(Take(bytes)), static_cast<size_t>(bytes)}; }

  std::string_view Line() {
    const auto* begin = data_ + at_;
    const auto* end = std::find(begin, begin + std::min(size_ - at_, kMaxNameBytes), '\n');
    if (end == begin + std::min(size_ - at_, kMaxNameBytes)) FailHere("a name without an end");
    const std::string_view line = Text(static_cast<uint64_t>(end - begin));
    Take(1);
    return line;
  }

  PickleNode& Node(uint32_t number) { return pickle_.nodes[number]; }

  bool Push(PickleNode node) {
    if (pickle_.nodes.size() == kMaxNodes) FailHere("the pickle has more than " + std::to_string(kMaxNodes) + " objects");
    stack_.push_back(static_cast<uint32_t>(pickle_.nodes.size()));
    pickle_.nodes.push_back(std::move(node));
    return true;
  }

  bool PushInteger(PickleKind kind, int64_t value) {
    PickleNode node{kind};
    node.integer = value;
    return Push(std::move(node));
  }

  bool PushText(PickleKind kind, std::string_view text) {
    PickleNode node{kind};
    node.text = text;
    return Push(std::move(node));
  }

  // The top of what stands above the last mark.
  uint32_t Top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) FailHere("there is no object that this could take");
    return stack_.back();
  }

  uint32_t Pop() {
    const uint32_t top = Top();
    stack_.pop_back();
    return top;
  }

  // All that stands above the last mark, which is gone then.
  std::vector<uint32_t> PopToMark() {
    if (marks_.empty()) FailHere("there is no mark that this could end");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  bool PushTuple(size_t count) {
    PickleNode tuple{PickleKind::kTuple};
    tuple.items.resize(count);
    for (size_t i = count; i-- > 0;) tuple.items[i] = Pop();
    return Push(std::move(tuple));
  }

  bool ReadNumber(uint8_t opcode) {
    switch (opcode) {
      case kNoneValue:
        return Push({});
      case kNewTrue:
      case kNewFalse:
        return PushInteger(PickleKind::kBool, opcode == kNewTrue);
      case kBinInt:
        return PushInteger(PickleKind::kInteger, static_cast<int32_t>(Unsigned(4)));
      case kBinInt1:
        return PushInteger(PickleKind::kInteger, static_cast<int64_t>(Unsigned(1)));
      case kBinInt2:
        return PushInteger(PickleKind::kInteger, static_cast<int64_t>(Unsigned(2)));
      case kLong1:
        return ReadLong(Unsigned(1));
      case kLong4:
        return ReadLong(Unsigned(4));
      case kBinFloat: {
        const uint64_t bits = __builtin_bswap64(Unsigned(8));
        PickleNode node{PickleKind::kFloat};
        std::memcpy(&node.number, &bits, sizeof(bits));
        return Push(std::move(node));
      }
      default:
        return false;
    }
  }

  bool ReadLong(uint64_t bytes) {
    const std::string_view text = Text(bytes);
    if (bytes > sizeof(int64_t)) return PushText(PickleKind::kLong, text);
    uint64_t value = bytes > 0 && (text.back() & 0x80) != 0 ? UINT64_MAX : 0;  // the sign
    std::memcpy(&value, text.data(), bytes);
    return PushInteger(PickleKind::kInteger, static_cast<int64_t>(value));
  }

  bool ReadText(uint8_t opcode) {
    switch (opcode) {
      case kShortBinUnicode:
      case kShortBinString:  // of Python 2
        return PushText(PickleKind::kText, Text(Unsigned(1)));
      case kBinUnicode:
      case kBinString:
        return PushText(PickleKind::kText, Text(Unsigned(4)));
      case kBinUnicode8:
        return PushText(PickleKind::kText, Text(Unsigned(8)));
      case kShortBinBytes:
        return PushText(PickleKind::kBytes, Text(Unsigned(1)));
      case kBinBytes:
        return PushText(PickleKind::kBytes, Text(Unsigned(4)));
      case kBinBytes8:
        return PushText(PickleKind::kBytes, Text(Unsigned(8)));
      default:
        return false;
    }
  }

  bool ReadContainer(uint8_t opcode) {
    switch (opcode) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kEmptyList:
        return Push({PickleKind::kList});
      case kEmptyDict:
        return Push({PickleKind::kDict});
      case kEmptyTuple:
        return PushTuple(0);
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return PushTuple(opcode - kTuple1 + size_t{1});
      case kTuple: {
        PickleNode tuple{PickleKind::kTuple};
        tuple.items = PopToMark();
        return Push(std::move(tuple));
      }
      case kAppend:
        return Add({Pop()}, {PickleKind::kList});
      case kAppends:
        return Add(PopToMark(), {PickleKind::kList});
      case kSetItem: {
        const uint32_t value = Pop(), key = Pop();
        return Add({key, value}, {PickleKind::kDict, PickleKind::kCall});
      }
      case kSetItems: {
        const std::vector<uint32_t> items = PopToMark();
        if (items.size() % 2 != 0) FailHere("a key without a value");
        return Add(items, {PickleKind::kDict, PickleKind::kCall});
      }
      default:
        return false;
    }
  }

  bool Add(const std::vector<uint32_t>& items, std::initializer_list<PickleKind> kinds) {
    PickleNode& target = Node(Top());
    if (std::find(kinds.begin(), kinds.end(), target.kind) == kinds.end()) {
      FailHere(std::string("items for ") + PickleKindName(target.kind));
    }
    target.items.insert(target.items.end(), items.begin(), items.end());
    return true;
  }

  bool ReadMemo(uint8_t opcode) {
    switch (opcode) {
      case kBinPut:
        memo_[static_cast<uint32_t>(Unsigned(1))] = Top();
        return true;
      case kLongBinPut:
        memo_[static_cast<uint32_t>(Unsigned(4))] = Top();
        return true;
      case kMemoize: {
        const uint32_t top = Top(), number = static_cast<uint32_t>(memo_.size());
        memo_[number] = top;
        return true;
      }
      case kBinGet:
        return Get(static_cast<uint32_t>(Unsigned(1)));
      case kLongBinGet:
        return Get(static_cast<uint32_t>(Unsigned(4)));
      case kFrame:  // that so many bytes may be read ahead
        if (Unsigned(8) > size_ - at_) FailHere("the pickle is truncated; copy it again");
        return true;
      default:
        return false;
    }
  }

  bool Get(uint32_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) FailHere("object " + std::to_string(number) + " was not put there before");
    stack_.push_back(found->second);
    return true;
  }

  bool ReadCall(uint8_t opcode) {
    switch (opcode) {
      case kGlobalName:
      case kInstance: {
        const std::string_view module = Line(), name = Line();
        PushGlobal(module, name);
        if (opcode == kInstance) FailHere("an instance of a class, of protocol 0");
        return true;
      }
      case kStackGlobal: {
        const PickleNode name = Node(Pop()), module = Node(Pop());
        if (name.kind != PickleKind::kText || module.kind != PickleKind::kText) FailHere("a global without a name");
        return PushGlobal(module.text, name.text);
      }
      case kReduce: {
        PickleNode call{PickleKind::kCall};
        const uint32_t arguments = Pop(), function = Pop();
        if (Node(function).kind != PickleKind::kGlobal || Node(arguments).kind != PickleKind::kTuple) {
          FailHere(std::string("a call of ") + PickleKindName(Node(function).kind) + " with " +
                   PickleKindName(Node(arguments).kind));
        }
        call.items = {function, arguments};
        return Push(std::move(call));
      }
      case kBuild:  // attributes, which objects of data do not need
        Pop();
        if (Node(Top()).kind != PickleKind::kCall) FailHere(std::string("attributes for ") + PickleKindName(Node(Top()).kind));
        return true;
      case kBinPersistentId: {
        PickleNode persistent{PickleKind::kPersistent};
        persistent.items = {Pop()};
        return Push(std::move(persistent));
      }
      default:
        return false;
    }
  }

  bool PushGlobal(std::string_view module, std::string_view name) {
    const auto same = [&](const PickleGlobal& global) { return global.module == module && global.name == name; };
    const auto* found = std::find_if(known_.begin(), known_.end(), same);
    if (found == known_.end()) {
      const std::string full = std::string(module.substr(0, kMaxNameBytes)) + "." + std::string(name.substr(0, kMaxNameBytes));
      FailHere("it names " + full + ", which no file of tensors needs; nothing was executed");
    }
    return PushInteger(PickleKind::kGlobal, found - known_.begin());
  }

  const uint8_t* const data_;
  const size_t size_;
  const std::string& where_;
  const Span<const PickleGlobal> known_;
  size_t at_ = 0, opcode_at_ = 0;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;  // how many objects stood below each
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace

const char* PickleKindName(PickleKind kind) {
  static constexpr const char* kNames[] = {"None",    "a bool", "an integer", "a long integer", "a float",   "a string", "bytes",
                                           "a tuple", "a list", "a dict",     "a global",       "an object", "a storage"};
  return kNames[static_cast<size_t>(kind)];
}

Pickle ReadPickle(const uint8_t* data, size_t size, const std::string& where, Span<const PickleGlobal> known) {
  return Reader(data, size, where, known).Read();
}

}  // namespace tarn::convert
