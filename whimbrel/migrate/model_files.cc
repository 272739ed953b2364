// A walk over the protobuf wire format, so that no gigabyte of weights is copied to find a file
// name.

#include "whimbrel/migrate/model_files.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"

namespace whimbrel {
namespace {

using Bytes = std::span<const std::byte>;

// Fields of one message, one after another; ends at the first damage.
class WireReader {
 public:
  explicit WireReader(Bytes bytes) : rest_(bytes) {}

  struct Field {
    uint64_t number = 0;
    Bytes content;  // of length-delimited fields, else empty
  };

  std::optional<Field> Next() {
    const auto key = Varint();
    if (!key) return std::nullopt;
    Field field{.number = *key >> 3, .content = {}};
    switch (*key & 7) {
      case 0:
        return Varint() ? std::optional(field) : std::nullopt;
      case 1:
        return Skip(8) ? std::optional(field) : std::nullopt;
      case 2: {
        const auto length = Varint();
        if (!length || *length > rest_.size()) return std::nullopt;
        field.content = rest_.first(static_cast<size_t>(*length));
        rest_ = rest_.subspan(static_cast<size_t>(*length));
        return field;
      }
      case 5:
        return Skip(4) ? std::optional(field) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  bool Skip(size_t bytes) {
    if (rest_.size() < bytes) return false;
    rest_ = rest_.subspan(bytes);
    return true;
  }

  Bytes rest_;
};

std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7, kModelFunctions = 25;
constexpr uint64_t kGraphNode = 1, kGraphInitializer = 5;
constexpr uint64_t kFunctionNode = 7;
constexpr uint64_t kNodeAttribute = 5;
constexpr uint64_t kAttributeTensor = 5, kAttributeGraph = 6, kAttributeTensors = 10,
                   kAttributeGraphs = 11;
constexpr uint64_t kTensorExternalData = 13;
constexpr uint64_t kEntryKey = 1, kEntryValue = 2;
constexpr int kMaxDepth = 64;

void WalkTensor(Bytes tensor, std::set<std::string>& files) {
  WireReader reader(tensor);
  while (const auto field = reader.Next()) {
    if (field->number != kTensorExternalData) continue;
    WireReader entry(field->content);
    std::string_view key;
    std::string_view value;
    while (const auto part = entry.Next()) {
      if (part->number == kEntryKey) key = AsText(part->content);
      if (part->number == kEntryValue) value = AsText(part->content);
    }
    if (key == "location") files.emplace(value);
  }
}

void WalkGraph(Bytes graph, int depth, std::set<std::string>& files);

void WalkNode(Bytes node, int depth, std::set<std::string>& files) {
  WireReader reader(node);
  while (const auto field = reader.Next()) {
    if (field->number != kNodeAttribute) continue;
    WireReader attribute(field->content);
    while (const auto part = attribute.Next()) {
      if (part->number == kAttributeTensor || part->number == kAttributeTensors)
        WalkTensor(part->content, files);
      if (part->number == kAttributeGraph || part->number == kAttributeGraphs)
        WalkGraph(part->content, depth - 1, files);
    }
  }
}

void WalkGraph(Bytes graph, int depth, std::set<std::string>& files) {
  if (depth == 0) return;
  WireReader reader(graph);
  while (const auto field = reader.Next()) {
    if (field->number == kGraphNode) WalkNode(field->content, depth, files);
    if (field->number == kGraphInitializer) WalkTensor(field->content, files);
  }
}

}  // namespace

std::vector<std::string> ModelFiles(const std::string& path) {
  const auto file = MappedFile::Open(path);
  std::set<std::string> names;
  WireReader model(file->bytes());
  while (const auto field = model.Next()) {
    if (field->number == kModelGraph) WalkGraph(field->content, kMaxDepth, names);
    if (field->number == kModelFunctions) {
      WireReader function(field->content);
      while (const auto part = function.Next()) {
        if (part->number == kFunctionNode) WalkNode(part->content, kMaxDepth, names);
      }
    }
  }
  std::vector<std::string> paths{path};
  for (const std::string& name : names) paths.push_back(JoinPath(ParentDirectory(path), name));
  return paths;
}

std::string HashModel(const std::string& path) {
  Sha256 hash;
  bool first = true;
  for (const std::string& file : ModelFiles(path)) {
    const auto mapped = MappedFile::Open(file);
    // The model's own name may change; the names of its data files stand inside it.
    hash.Update(fmt::format("{}:{}\n", first ? "model" : FileName(file), mapped->bytes().size()));
    hash.Update(mapped->bytes());
    first = false;
  }
  return hash.HexDigest();
}

}  // namespace whimbrel
