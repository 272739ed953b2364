// safetensors: every figure of the header is checked before a tensor points anywhere.

#include "whimbrel/tensor/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/tensor/file_tensor.h"

namespace whimbrel {
namespace {

// The format's own limit, which also bounds the memory of the JSON parser.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kMetadataKey = "__metadata__";

struct Name2Type {
  std::string_view name;
  DType type;
};
constexpr Name2Type kNames[] = {
    {"F64", DType::kDouble},    {"F32", DType::kFloat},  {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16}, {"I64", DType::kInt64},  {"I32", DType::kInt32},
    {"I16", DType::kInt16},     {"I8", DType::kInt8},    {"U64", DType::kUint64},
    {"U32", DType::kUint32},    {"U16", DType::kUint16}, {"U8", DType::kUint8},
    {"BOOL", DType::kBool},
};
// Types of the format that have no tensor here.
constexpr std::string_view kForeign[] = {"F8_E4M3",     "F8_E5M2",     "F8_E8M0",
                                         "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4",
                                         "F6_E2M3",     "F6_E3M2",     "C64"};

struct Entry {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

DType TypeOf(std::string_view tensor, std::string_view name) {
  for (const Name2Type& row : kNames) {
    if (row.name == name) return row.type;
  }
  const bool foreign = std::ranges::find(kForeign, name) != std::end(kForeign);
  throw Error(
      foreign ? Code::kUnsupported : Code::kInvalidData,
      fmt::format("tensor '{}': {} type '{}'", tensor, foreign ? "no tensors of" : "unknown", name),
      foreign ? "convert the file to F32, F16 or BF16" : "");
}

// Checks that type, shape and offsets agree.
void SetShape(const std::vector<int64_t>& dims, Entry& entry) {
  try {
    entry.shape = Shape(dims);
    const auto needed = static_cast<uint64_t>(entry.shape.elements()) * ItemSize(entry.dtype);
    if (entry.end < entry.begin || entry.end - entry.begin != needed) {
      throw Error(Code::kInvalidData, fmt::format("{} {} needs {} bytes, its offsets are [{}, {})",
                                                  DTypeName(entry.dtype), ToString(entry.shape),
                                                  needed, entry.begin, entry.end));
    }
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("tensor '{}'", entry.name));
  }
}

bool ReadDims(simdjson::dom::array list, std::vector<int64_t>& dims) {
  for (const simdjson::dom::element item : list) {
    int64_t dim = 0;
    if (item.get(dim) || dim < 0) return false;
    dims.push_back(dim);
  }
  return true;
}

// Throws Errors without the path; the caller adds it.
Entry ParseEntry(std::string_view name, simdjson::dom::element value) {
  const auto fail = [&](std::string_view why) {
    return Error(Code::kInvalidData, fmt::format("tensor '{}': {}", name, why));
  };
  Entry entry;
  entry.name = name;
  simdjson::dom::object fields;
  if (value.get(fields)) throw fail("its entry is no object");
  bool seen[3] = {};
  std::vector<int64_t> dims;
  for (const auto& [key, field] : fields) {
    const int index = key == "dtype" ? 0 : key == "shape" ? 1 : key == "data_offsets" ? 2 : -1;
    if (index < 0) throw fail(fmt::format("unknown key '{}'", key));
    if (std::exchange(seen[index], true)) throw fail(fmt::format("key '{}' stands twice", key));
    std::string_view word;
    simdjson::dom::array list;
    if (index == 0) {
      if (field.get(word)) throw fail("dtype is no string");
      entry.dtype = TypeOf(name, word);
      continue;
    }
    if (field.get(list)) throw fail(fmt::format("{} is no list", key));
    if (index == 1) {
      if (!ReadDims(list, dims)) throw fail("a dimension is no number of 0 to 2^63 - 1");
      continue;
    }
    if (list.size() != 2 || list.at(0).get(entry.begin) || list.at(1).get(entry.end)) {
      throw fail("data_offsets are no two numbers");
    }
  }
  if (!seen[0] || !seen[1] || !seen[2]) throw fail("dtype, shape and data_offsets are needed");
  SetShape(dims, entry);
  return entry;
}

std::map<std::string, std::string> ParseMetadata(simdjson::dom::element value) {
  std::map<std::string, std::string> metadata;
  simdjson::dom::object fields;
  if (value.get(fields)) throw Error(Code::kInvalidData, "__metadata__ is no object");
  for (const auto& [key, field] : fields) {
    std::string_view text;
    if (field.get(text)) {
      throw Error(Code::kInvalidData, fmt::format("__metadata__: value of '{}' is no string", key));
    }
    metadata[std::string(key)] = text;
  }
  return metadata;
}

// The data must be covered without holes: a hole could hide bytes from whoever scans the file.
void CheckCover(const std::vector<Entry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      throw Error(Code::kInvalidData,
                  fmt::format("tensor '{}' begins at {}, the one before ends at {}: {}", entry.name,
                              entry.begin, at, entry.begin < at ? "an overlap" : "a hole"));
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw Error(Code::kInvalidData,
                fmt::format("the tensors{} end at {}, the file has {} bytes of data",
                            entries.empty() ? "" : " (last '" + entries.back().name + "')", at,
                            data_bytes));
  }
}

SafetensorsFile ReadMapped(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() < 8) {
    throw Error(Code::kInvalidData, fmt::format("{} bytes are no safetensors file", bytes.size()));
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  if (header_bytes > std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - 8)) {
    throw Error(
        Code::kInvalidData,
        fmt::format("a header of {} bytes is claimed, the file has {} after the length, the "
                    "limit is {}",
                    header_bytes, bytes.size() - 8, kMaxHeaderBytes));
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + 8);
  if (header_bytes == 0 || text[0] != '{') {
    throw Error(Code::kInvalidData, "the header does not begin with '{'");
  }
  simdjson::dom::parser parser(kMaxHeaderBytes);
  simdjson::dom::object root;
  auto code = parser.allocate(header_bytes, /*max_depth=*/16);
  if (!code) code = parser.parse(text, header_bytes).get(root);
  if (code) {
    throw Error(Code::kInvalidData,
                fmt::format("header is no JSON object: {}", simdjson::error_message(code)));
  }
  SafetensorsFile result;
  std::vector<Entry> entries;
  std::set<std::string_view> names;
  for (const auto& [key, value] : root) {
    if (!names.insert(key).second) {
      throw Error(Code::kInvalidData, fmt::format("tensor '{}' stands twice", key));
    }
    if (key == kMetadataKey) {
      result.metadata = ParseMetadata(value);
    } else {
      entries.push_back(ParseEntry(key, value));
    }
  }
  std::ranges::stable_sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  CheckCover(entries, bytes.size() - 8 - header_bytes);
  result.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    Tensor tensor = TensorOnFile(file, static_cast<size_t>(8 + header_bytes + entry.begin),
                                 entry.dtype, entry.shape);
    result.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return result;
}

std::string_view NameOf(const std::string& tensor, DType dtype) {
  for (const Name2Type& row : kNames) {
    if (row.type == dtype) return row.name;
  }
  throw Error(Code::kUnsupported,
              fmt::format("tensor '{}': safetensors has no type for {}", tensor, DTypeName(dtype)));
}

}  // namespace

SafetensorsFile ReadSafetensors(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return ReadMapped(file);
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

void WriteSafetensors(const std::string& path,
                      const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  // Wide types first: after the padded header every tensor then lies at a multiple of its item
  // size.
  std::vector<const std::pair<std::string, Tensor>*> order;
  order.reserve(tensors.size());
  for (const auto& entry : tensors) order.push_back(&entry);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
    return ItemSize(a->second.dtype()) > ItemSize(b->second.dtype());
  });
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!metadata.empty()) root[std::string(kMetadataKey)] = metadata;
  uint64_t at = 0;
  std::set<std::string_view> names{kMetadataKey};
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    if (!names.insert(name).second) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: tensor name '{}' is taken", path, name));
    }
    const std::span<const int64_t> dims = tensor.shape().dims();
    root[name] = {{"dtype", NameOf(name, tensor.dtype())},
                  {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                  {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string header;
  try {
    header = root.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a name is not UTF-8: {}", path, error.what()));
  }
  header.append((8 - header.size() % 8) % 8, ' ');

  std::string file(8, '\0');
  file.reserve(8 + header.size() + at);
  const uint64_t header_bytes = header.size();
  std::memcpy(file.data(), &header_bytes, 8);
  file += header;
  for (const auto* entry : order) {
    const Tensor& tensor = entry->second;
    if (tensor.bytes() == 0) continue;
    const Tensor plain = tensor.layout() == Layout::kPlain ? tensor : CopyPlain(tensor);
    file.append(plain.data<char>(), plain.bytes());
  }
  WriteFileAtomic(path, file);
}

}  // namespace whimbrel
