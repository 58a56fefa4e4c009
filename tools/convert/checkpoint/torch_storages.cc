#include "tools/convert/checkpoint/torch_storages.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "tools/convert/checkpoint/zip.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

struct Global {
  PickleGlobal global;
  StoredType dtype;  // of types; storages without a type hold bytes
};

// In the order of TorchGlobal, then the types.
constexpr Global kGlobals[] = {
    {{"collections", "OrderedDict"}, {}},
    {{"torch._utils", "_rebuild_tensor"}, {}},
    {{"torch._utils", "_rebuild_tensor_v2"}, {}},
    {{"torch._utils", "_rebuild_tensor_v3"}, {}},
    {{"torch._utils", "_rebuild_parameter"}, {}},
    {{"torch._utils", "_rebuild_parameter_with_state"}, {}},
    {{"torch._tensor", "_rebuild_from_type_v2"}, {}},
    {{"torch", "Tensor"}, {}},
    {{"torch.nn.parameter", "Parameter"}, {}},
    {{"torch", "FloatStorage"}, StoredType::kF32},
    {{"torch", "HalfStorage"}, StoredType::kF16},
    {{"torch", "BFloat16Storage"}, StoredType::kBf16},
    {{"torch", "DoubleStorage"}, StoredType::kF64},
    {{"torch", "LongStorage"}, StoredType::kI64},
    {{"torch", "IntStorage"}, StoredType::kI32},
    {{"torch", "ShortStorage"}, StoredType::kI16},
    {{"torch", "CharStorage"}, StoredType::kI8},
    {{"torch", "ByteStorage"}, StoredType::kU8},
    {{"torch", "BoolStorage"}, StoredType::kBool},
    {{"torch", "UntypedStorage"}, StoredType::kU8},
    {{"torch.storage", "UntypedStorage"}, StoredType::kU8},
    {{"torch", "float32"}, StoredType::kF32},
    {{"torch", "float16"}, StoredType::kF16},
    {{"torch", "bfloat16"}, StoredType::kBf16},
    {{"torch", "float64"}, StoredType::kF64},
    {{"torch", "int64"}, StoredType::kI64},
    {{"torch", "int32"}, StoredType::kI32},
    {{"torch", "int16"}, StoredType::kI16},
    {{"torch", "int8"}, StoredType::kI8},
    {{"torch", "uint64"}, StoredType::kU64},
    {{"torch", "uint32"}, StoredType::kU32},
    {{"torch", "uint16"}, StoredType::kU16},
    {{"torch", "uint8"}, StoredType::kU8},
    {{"torch", "bool"}, StoredType::kBool},
    {{"torch", "float8_e4m3fn"}, StoredType::kF8E4M3},
    {{"torch", "float8_e5m2"}, StoredType::kF8E5M2},
};

// 0x1950a86a20f9469cfc6c, with which checkpoints before PyTorch 1.6 begin.
constexpr std::string_view kMagic("\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19", 10);
constexpr int64_t kProtocol = 1001;
constexpr uint64_t kTarMagicAt = 257;
constexpr std::string_view kTarMagic = "ustar";

Pickle ReadPart(const uint8_t* data, size_t size, const std::string& where) {
  PickleGlobal known[std::size(kGlobals)];
  for (size_t i = 0; i < std::size(kGlobals); ++i) known[i] = kGlobals[i].global;
  return ReadPickle(data, size, where, known);
}

// What stands in the id of a storage: ("storage", type, key, device, elements), in old files and one more.
struct StorageId {
  StoredType dtype;
  std::string_view key;
  uint64_t elements;
};

StorageId ParseId(const Pickle& pickle, const PickleNode& node, const std::string& where) {
  if (node.kind != PickleKind::kPersistent) Fail(where, ": found ", PickleKindName(node.kind), ", expected a storage");
  const PickleNode& id = pickle.nodes[node.items[0]];
  const auto item = [&](size_t i) -> const PickleNode& { return pickle.nodes[id.items[i]]; };
  if (id.kind != PickleKind::kTuple || id.items.size() < 5 || item(0).text != "storage" || item(2).kind != PickleKind::kText ||
      item(4).kind != PickleKind::kInteger || item(4).integer < 0) {
    Fail(where, ": its storage is none of PyTorch");
  }
  if (id.items.size() > 5 && item(5).kind != PickleKind::kNone) Fail(where, ": its storage is a part of another one");
  return {TorchTypeOf(item(1), where), item(2).text, static_cast<uint64_t>(item(4).integer)};
}

TorchPickle ReadArchive(const uint8_t* data, size_t size, const std::string& name) {
  const std::map<std::string, ZipEntry> entries = ReadZip(data, size, name);
  constexpr std::string_view kPickle = "/data.pkl";
  std::string folder;
  for (const auto& [entry, place] : entries) {
    const size_t slash = entry.find('/');
    if (slash != std::string::npos && entry.substr(slash) == kPickle) folder = entry.substr(0, slash);
  }
  const auto pickle = entries.find(folder + std::string(kPickle));
  if (pickle == entries.end()) Fail(name, ": a zip archive without data.pkl, expected a checkpoint of torch.save()");
  if (entries.count(folder + "/constants.pkl") != 0) {
    Fail(name, ": a TorchScript archive, expected a state dict: torch.save(torch.jit.load(FILE).state_dict(), ...) writes one");
  }
  const auto bytes_of = [&](const std::string& entry, const ZipEntry& place) -> TorchPickle::Bytes {
    if (!place.stored) Fail(name, ": ", ValueText(entry), " is compressed, expected it stored, as torch.save() writes it");
    return {data + place.begin, place.bytes};
  };
  const auto order = entries.find(folder + "/byteorder");
  if (order != entries.end()) {
    const TorchPickle::Bytes bytes = bytes_of(order->first, order->second);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.bytes);
    if (text != "little") Fail(name, ": byteorder: ", ValueText(std::string(text.substr(0, 16))), ", expected \"little\"");
  }
  TorchPickle torch;
  const TorchPickle::Bytes dictionary = bytes_of(pickle->first, pickle->second);
  torch.pickle = ReadPart(dictionary.data, dictionary.bytes, name + ": data.pkl");
  const std::string prefix = folder + "/data/";
  for (auto at = entries.lower_bound(prefix); at != entries.end() && at->first.compare(0, prefix.size(), prefix) == 0; ++at) {
    torch.storages.emplace(at->first.substr(prefix.size()), bytes_of(at->first, at->second));
  }
  return torch;
}

// Pickles one after the other.
class OldFile {
 public:
  OldFile(const uint8_t* data, size_t size, const std::string& name) : data_(data), size_(size), name_(name) {}

  TorchPickle Read() {
    const Pickle magic = Next("the magic number");
    if (magic.nodes[magic.root].text != kMagic) Fail(name_, ": a pickle, expected a checkpoint of torch.save()");
    const Pickle protocol = Next("the protocol"), system = Next("sizes of types");
    const PickleNode& number = protocol.nodes[protocol.root];
    if (number.kind != PickleKind::kInteger || number.integer != kProtocol) {
      Fail(name_, ": protocol ", number.integer, ", expected ", kProtocol);
    }
    CheckSystem(system);
    TorchPickle torch;
    torch.pickle = Next("the tensors");
    const Pickle keys = Next("keys of storages");
    std::map<std::string_view, StoredType> types;
    for (const PickleNode& node : torch.pickle.nodes) {
      if (node.kind != PickleKind::kPersistent) continue;
      const StorageId id = ParseId(torch.pickle, node, name_);
      types[id.key] = id.dtype;
    }
    for (const uint32_t item : keys.nodes[keys.root].items) {
      const std::string_view key = keys.nodes[item].text;
      const auto type = types.find(key);
      if (type == types.end()) Fail(name_, ": storage ", ValueText(std::string(key)), " belongs to no tensor");
      if (!torch.storages.emplace(key, NextStorage(ElementBytes(type->second))).second) {
        Fail(name_, ": storage ", ValueText(std::string(key)), " is there twice");
      }
    }
    return torch;
  }

 private:
  Pickle Next(const char* what) {
    Pickle pickle = ReadPart(data_ + at_, size_ - at_, name_ + ": " + what);
    at_ += pickle.bytes;
    return pickle;
  }

  void CheckSystem(const Pickle& system) const {
    const std::vector<uint32_t>& items = system.nodes[system.root].items;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (system.nodes[items[i]].text != "little_endian") continue;
      if (system.nodes[items[i + 1]].integer == 0) Fail(name_, ": written on a big-endian machine; save it again on another one");
    }
  }

  TorchPickle::Bytes NextStorage(uint64_t element_bytes) {
    uint64_t elements = 0, bytes = 0;
    if (size_ - at_ >= sizeof(elements)) std::memcpy(&elements, data_ + at_, sizeof(elements));
    const bool overflows = __builtin_mul_overflow(elements, element_bytes, &bytes);
    if (overflows || size_ - at_ < sizeof(elements) || bytes > size_ - at_ - sizeof(elements)) {
      Fail(name_, ": ", size_, " bytes, expected ", elements, " elements from byte ", at_, " on: truncated; copy it again");
    }
    const uint8_t* data = data_ + at_ + sizeof(elements);
    at_ += sizeof(elements) + bytes;
    return {data, bytes};
  }

  const uint8_t* const data_;
  const size_t size_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

void TorchStorage::Retype(StoredType type, const std::string& where) {
  const uint64_t bytes = elements * ElementBytes(dtype);
  if (bytes % ElementBytes(type) != 0) Fail(where, ": a storage of ", bytes, " bytes, expected elements of ", ElementBytes(type));
  dtype = type;
  elements = bytes / ElementBytes(type);
}

TorchStorage TorchPickle::Storage(const PickleNode& node, const std::string& where) const {
  const StorageId id = ParseId(pickle, node, where);
  const auto found = storages.find(id.key);
  if (found == storages.end()) Fail(where, ": its storage ", ValueText(std::string(id.key)), " is missing");
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(id.elements, ElementBytes(id.dtype), &bytes) || bytes != found->second.bytes) {
    Fail(where, ": its storage ", ValueText(std::string(id.key)), " has ", found->second.bytes, " bytes, expected ", id.elements,
         " elements of ", ElementBytes(id.dtype));
  }
  return {id.dtype, id.elements, found->second.data};
}

StoredType TorchTypeOf(const PickleNode& global, const std::string& where) {
  if (global.kind != PickleKind::kGlobal || global.integer < static_cast<int64_t>(TorchGlobal::kFirstType)) {
    Fail(where, ": found ", PickleKindName(global.kind), ", expected a type of elements");
  }
  return kGlobals[global.integer].dtype;
}

TorchPickle ReadTorchPickle(const uint8_t* data, size_t size, const std::string& name) {
  if (IsZip(data, size)) return ReadArchive(data, size, name);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size >= 2 && data[0] == 0x80) return OldFile(data, size, name).Read();
  if (text.size() > kTarMagicAt && text.substr(kTarMagicAt, kTarMagic.size()) == kTarMagic) {
    Fail(name, ": a tar archive, of PyTorch before 0.1.10: torch.load() it and torch.save() it again");
  }
  Fail(name, ": ", size, " bytes that are no checkpoint of torch.save(), which begins with \"PK\" or a pickle");
}

}  // namespace tarn::convert
