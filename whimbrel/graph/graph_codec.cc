// Graphs to JSON and back; the way back checks every number before it is used.

#include "whimbrel/graph/graph_codec.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/hash.h"
#include "whimbrel/graph/infer_graph.h"

namespace whimbrel {
namespace {

// A branch in a branch costs five levels of JSON; the reader of base takes 256.
constexpr int kMaxBranchDepth = 40;

[[noreturn]] void Damaged(const std::string& what) {
  throw Error(Code::kInvalidData, what);
}

DType DecodeDType(const Json& json) {
  return static_cast<DType>(DecodeInteger(json, 0, static_cast<int64_t>(DType::kBFloat16)));
}

Json EncodeDim(const Dim& dim) {
  if (dim.known()) return dim.value();
  return dim.text().empty() ? Json(nullptr) : Json(EncodeText(dim.text()));
}

Dim DecodeDim(const Json& json, int64_t least) {
  if (json.is_null()) return Dim();
  if (json.is_string()) return Dim::Symbol(DecodeText(json));
  return Dim(DecodeInteger(json, least));
}

Json EncodeDims(const std::optional<Dims>& dims) {
  if (!dims) return nullptr;
  Json list = Json::array();
  for (const Dim& dim : *dims) list.push_back(EncodeDim(dim));
  return list;
}

const Json::array_t& Array(const Json& json) {
  return json.get_ref<const Json::array_t&>();
}

std::optional<Dims> DecodeDims(const Json& json, int64_t least) {
  if (json.is_null()) return std::nullopt;
  Dims dims;
  for (const Json& dim : Array(json)) dims.push_back(DecodeDim(dim, least));
  return dims;
}

Json EncodeTexts(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(EncodeText(text));
  return list;
}

std::vector<std::string> DecodeTexts(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& text : Array(json)) texts.push_back(DecodeText(text));
  return texts;
}

Json EncodeValue(const Value& value, BlobWriter& weights) {
  const ValueInfo& info = value.info;
  Json json = {{"name", EncodeText(value.name)}};
  if (info.constant != nullptr) {
    json["constant"] = EncodeTensor(*info.constant, weights);  // says type and dims too
  } else {
    json["dtype"] = static_cast<int64_t>(info.dtype);
    json["dims"] = EncodeDims(info.dims);
  }
  if (info.elements) json["elements"] = EncodeDims(info.elements);
  return json;
}

Value DecodeValue(const Json& json, const std::shared_ptr<Buffer>& weights) {
  Value value{.name = DecodeText(json.at("name")), .info = {}};
  ValueInfo& info = value.info;
  if (const auto constant = json.find("constant"); constant != json.end()) {
    info.constant = std::make_shared<const Tensor>(DecodeTensor(*constant, weights));
    info.dtype = info.constant->dtype();
    info.dims = ToDims(info.constant->shape());
  } else {
    info.dtype = DecodeDType(json.at("dtype"));
    info.dims = DecodeDims(json.at("dims"), 0);
  }
  if (const auto elements = json.find("elements"); elements != json.end()) {
    info.elements = DecodeDims(*elements, std::numeric_limits<int64_t>::min());
  }
  return value;
}

Json EncodeAttribute(const AttributeValue& value, BlobWriter& weights) {
  switch (static_cast<AttributeType>(value.index())) {
    case AttributeType::kInt:
      return std::get<int64_t>(value);
    case AttributeType::kFloat:
      return EncodeFloat(std::get<float>(value));
    case AttributeType::kString:
      return EncodeText(std::get<std::string>(value));
    case AttributeType::kTensor:
      return EncodeTensor(std::get<Tensor>(value), weights);
    case AttributeType::kInts:
      return std::get<std::vector<int64_t>>(value);
    case AttributeType::kFloats: {
      Json list = Json::array();
      for (float v : std::get<std::vector<float>>(value)) list.push_back(EncodeFloat(v));
      return list;
    }
    case AttributeType::kStrings:
      return EncodeTexts(std::get<std::vector<std::string>>(value));
    case AttributeType::kGraph:
      break;  // branches are kept beside the attributes
  }
  throw Error(Code::kInternal, "a graph attribute has no place among a node's attributes");
}

AttributeValue DecodeAttribute(std::string_view type, const Json& json,
                               const std::shared_ptr<Buffer>& weights) {
  const auto is = [&](AttributeType wanted) { return type == AttributeTypeName(wanted); };
  if (is(AttributeType::kInt)) return DecodeInteger(json);
  if (is(AttributeType::kFloat)) return DecodeFloat(json);
  if (is(AttributeType::kString)) return DecodeText(json);
  if (is(AttributeType::kTensor)) return DecodeTensor(json, weights);
  if (is(AttributeType::kInts)) {
    std::vector<int64_t> list;
    for (const Json& v : Array(json)) list.push_back(DecodeInteger(v));
    return list;
  }
  if (is(AttributeType::kFloats)) {
    std::vector<float> list;
    for (const Json& v : Array(json)) list.push_back(DecodeFloat(v));
    return list;
  }
  if (is(AttributeType::kStrings)) return DecodeTexts(json);
  Damaged(fmt::format("attribute type {} is not known", type));
}

Json EncodeGraphAt(const Graph& graph, BlobWriter& weights, int depth);

Json EncodeNode(const Node& node, BlobWriter& weights, int depth) {
  if (node.schema == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("node {}: op {} is not known here", node.name, node.op),
                "compile the graph first: it says which ops are missing");
  }
  Json attributes = Json::array();
  for (const auto& [name, value] : node.attributes.all()) {
    attributes.push_back({{"name", EncodeText(name)},
                          {"type", AttributeTypeName(static_cast<AttributeType>(value.index()))},
                          {"value", EncodeAttribute(value, weights)}});
  }
  Json branches = Json::array();
  for (const Branch& branch : node.branches) {
    branches.push_back({{"attribute", EncodeText(branch.attribute)},
                        {"outer", branch.outer},
                        {"refused", EncodeText(branch.refused)},
                        {"graph", EncodeGraphAt(*branch.graph, weights, depth + 1)}});
  }
  return {{"name", EncodeText(node.name)},
          {"op", EncodeText(node.op)},
          {"domain", EncodeText(node.domain)},
          {"opset", node.opset},
          {"inputs", node.inputs},
          {"outputs", node.outputs},
          {"attributes", std::move(attributes)},
          {"branches", std::move(branches)},
          {"origins", EncodeTexts(node.origins)}};
}

Json EncodeGraphAt(const Graph& graph, BlobWriter& weights, int depth) {
  if (depth > kMaxBranchDepth) {
    throw Error(Code::kUnsupported, fmt::format("graph {}: branches lie more than {} deep",
                                                graph.name, kMaxBranchDepth));
  }
  Json opsets = Json::array();
  for (const auto& [domain, version] : graph.opsets) {
    opsets.push_back({{"domain", EncodeText(domain)}, {"version", version}});
  }
  Json values = Json::array();
  for (const Value& value : graph.values) values.push_back(EncodeValue(value, weights));
  Json nodes = Json::array();
  for (const Node& node : graph.nodes) nodes.push_back(EncodeNode(node, weights, depth));
  return {{"name", EncodeText(graph.name)}, {"producer", EncodeText(graph.producer)},
          {"ir_version", graph.ir_version}, {"opsets", std::move(opsets)},
          {"inputs", graph.inputs},         {"outputs", graph.outputs},
          {"captures", graph.captures},     {"values", std::move(values)},
          {"nodes", std::move(nodes)}};
}

// Ids in [least, values); least is kNoValue where a value may be left out.
std::vector<ValueId> DecodeIds(const Json& json, const Graph& graph, ValueId least) {
  std::vector<ValueId> ids;
  const auto most = static_cast<int64_t>(graph.values.size()) - 1;
  for (const Json& id : Array(json)) {
    ids.push_back(static_cast<ValueId>(DecodeInteger(id, least, most)));
  }
  return ids;
}

Graph DecodeGraphUnchecked(const Json& json, const std::shared_ptr<Buffer>& weights);

Branch DecodeBranch(const Json& json, const Graph& outer, const std::shared_ptr<Buffer>& weights) {
  Branch branch{.attribute = DecodeText(json.at("attribute")),
                .graph = std::make_shared<Graph>(DecodeGraphUnchecked(json.at("graph"), weights)),
                .outer = DecodeIds(json.at("outer"), outer, 0),
                .refused = DecodeText(json.at("refused"))};
  return branch;
}

Node DecodeNode(const Json& json, const Graph& graph, const std::shared_ptr<Buffer>& weights) {
  Node node;
  node.name = DecodeText(json.at("name"));
  node.op = DecodeText(json.at("op"));
  node.domain = DecodeText(json.at("domain"));
  node.opset = static_cast<int>(DecodeInteger(json.at("opset"), 0, INT_MAX));
  node.schema = Registry::Get().Find(node.domain, node.op, node.opset);
  if (node.schema == nullptr) {
    throw Error(
        Code::kUnsupported,
        fmt::format("node {}: package was made by a tool version that knows op {}{} of opset {}",
                    node.name, node.domain.empty() ? "" : node.domain + ".", node.op, node.opset),
        "make the package again with this version of the tool, or use a newer version");
  }
  node.inputs = DecodeIds(json.at("inputs"), graph, kNoValue);
  node.outputs = DecodeIds(json.at("outputs"), graph, kNoValue);
  for (const Json& attribute : Array(json.at("attributes"))) {
    node.attributes.Set(DecodeText(attribute.at("name")),
                        DecodeAttribute(attribute.at("type").get_ref<const std::string&>(),
                                        attribute.at("value"), weights));
  }
  for (const Json& branch : Array(json.at("branches"))) {
    node.branches.push_back(DecodeBranch(branch, graph, weights));
  }
  node.origins = DecodeTexts(json.at("origins"));
  return node;
}

Graph DecodeGraphUnchecked(const Json& json, const std::shared_ptr<Buffer>& weights) {
  Graph graph;
  graph.name = DecodeText(json.at("name"));
  graph.producer = DecodeText(json.at("producer"));
  graph.ir_version = DecodeInteger(json.at("ir_version"));
  for (const Json& opset : Array(json.at("opsets"))) {
    graph.opsets.insert_or_assign(
        DecodeText(opset.at("domain")),
        static_cast<int>(DecodeInteger(opset.at("version"), INT_MIN, INT_MAX)));
  }
  const auto& values = Array(json.at("values"));
  if (values.size() > static_cast<size_t>(INT32_MAX)) Damaged("more values than ids can name");
  for (const Json& value : values) graph.values.push_back(DecodeValue(value, weights));
  graph.inputs = DecodeIds(json.at("inputs"), graph, 0);
  graph.outputs = DecodeIds(json.at("outputs"), graph, 0);
  graph.captures = DecodeIds(json.at("captures"), graph, 0);
  for (const Json& node : Array(json.at("nodes"))) {
    graph.nodes.push_back(DecodeNode(node, graph, weights));
  }
  return graph;
}

bool Contradicts(const ValueInfo& stored, const ValueInfo& inferred) {
  if (stored.dtype != inferred.dtype) return true;
  if (!stored.dims || !inferred.dims) return false;
  if (stored.dims->size() != inferred.dims->size()) return true;
  for (size_t i = 0; i < stored.dims->size(); ++i) {
    const Dim& a = (*stored.dims)[i];
    const Dim& b = (*inferred.dims)[i];
    if (a.known() && b.known() && a.value() != b.value()) return true;
  }
  return false;
}

std::string Describe(const ValueInfo& info) {
  return fmt::format("{} {}", DTypeName(info.dtype), info.dims ? ToString(*info.dims) : "[...]");
}

}  // namespace

size_t BlobWriter::Add(const Tensor& tensor) {
  if (!tensor.has_data() || ItemSize(tensor.dtype()) == 0) {
    throw Error(Code::kUnsupported, fmt::format("a tensor of type {} has no bytes to be stored",
                                                DTypeName(tensor.dtype())));
  }
  if (tensor.bytes() == 0) return 0;
  const bool plain = tensor.layout() == Layout::kPlain;
  const std::pair<const void*, size_t> address{tensor.raw(), tensor.bytes()};
  if (plain) {
    if (const auto it = by_address_.find(address); it != by_address_.end()) return it->second;
  }
  Blob blob{.tensor = plain ? tensor : CopyPlain(tensor), .offset = bytes_};
  const auto [it, is_new] = by_hash_.try_emplace(
      Sha256Hex(std::span(blob.tensor.data<std::byte>(), blob.tensor.bytes())), bytes_);
  if (is_new) {
    bytes_ += (blob.tensor.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    blobs_.push_back(std::move(blob));
  }
  if (plain) by_address_.emplace(address, it->second);
  return it->second;
}

void BlobWriter::CopyTo(std::span<std::byte> to) const {
  WHIMBREL_CHECK(to.size() == bytes_);
  std::fill(to.begin(), to.end(), std::byte{0});
  for (const Blob& blob : blobs_) {
    std::memcpy(to.data() + blob.offset, blob.tensor.raw(), blob.tensor.bytes());
  }
}

Json EncodeTensor(const Tensor& tensor, BlobWriter& blobs) {
  const size_t offset = blobs.Add(tensor);
  const std::span<const int64_t> dims = tensor.shape().dims();
  return {{"dtype", static_cast<int64_t>(tensor.dtype())},
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"offset", offset},
          {"bytes", tensor.bytes()}};
}

Tensor DecodeTensor(const Json& json, const std::shared_ptr<Buffer>& blobs) {
  const DType dtype = DecodeDType(json.at("dtype"));
  if (ItemSize(dtype) == 0) Damaged(fmt::format("a tensor has type {}", DTypeName(dtype)));
  std::vector<int64_t> dims;
  for (const Json& dim : Array(json.at("shape"))) dims.push_back(DecodeInteger(dim, 0));
  const Shape shape{std::span<const int64_t>(dims)};
  const size_t wanted = static_cast<size_t>(shape.elements()) * ItemSize(dtype);
  const auto offset = static_cast<size_t>(DecodeInteger(json.at("offset"), 0));
  const auto bytes = static_cast<size_t>(DecodeInteger(json.at("bytes"), 0));
  if (bytes != wanted) {
    Damaged(fmt::format("a tensor {} {} has {} bytes", DTypeName(dtype), ToString(shape), bytes));
  }
  if (offset % BlobWriter::kAlignment != 0 || offset > blobs->size() ||
      bytes > blobs->size() - offset) {
    Damaged(fmt::format("a tensor lies at {}, {} bytes; {} bytes are there", offset, bytes,
                        blobs->size()));
  }
  return Tensor(dtype, shape, blobs, offset);
}

Json EncodeGraph(const Graph& graph, BlobWriter& weights) {
  return EncodeGraphAt(graph, weights, 0);
}

Graph DecodeGraph(const Json& json, const std::shared_ptr<Buffer>& weights) {
  Graph graph = DecodeGraphUnchecked(json, weights);
  try {
    VerifyGraph(graph, "reading");
  } catch (const Error& e) {
    Damaged(e.what());  // not a pass, the file is to blame
  }
  return graph;
}

void CheckInferred(const Graph& graph) {
  Graph copy = CloneGraph(graph);
  InferGraph(copy);
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    const ValueInfo& inferred = copy.values[i].info;
    if (!Contradicts(value.info, inferred)) continue;
    Damaged(fmt::format("value {} is stored as {}, its op gives {}", value.name,
                        Describe(value.info), Describe(inferred)));
  }
  for (const Node& node : graph.nodes) {
    for (const Branch& branch : node.branches) {
      if (!branch.refused.empty()) continue;  // never run
      for (size_t i = 0; i < branch.outer.size(); ++i) {
        const Value& outer = graph.value(branch.outer[i]);
        const Value& inner = branch.graph->value(branch.graph->captures[i]);
        if (!Contradicts(inner.info, outer.info)) continue;
        Damaged(fmt::format("node {}: {} takes {} as {}, it is {}", node.name, branch.attribute,
                            outer.name, Describe(inner.info), Describe(outer.info)));
      }
      // Once more by itself: inference passes over a branch that is never taken, planning does not.
      CheckInferred(*branch.graph);
    }
  }
}

std::string EncodeText(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {  // U+0080 to U+00FF in UTF-8
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

std::string DecodeText(const Json& json) {
  const auto& text = json.get_ref<const std::string&>();
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
      continue;
    }
    // Two bytes, the first C2 or C3; the JSON reader has checked that the rest follows.
    if (first > 0xC3 || i + 1 >= text.size()) Damaged("a text holds a character above 255");
    const auto second = static_cast<unsigned char>(text[++i]);
    bytes += static_cast<char>(((first & 0x03) << 6) | (second & 0x3F));
  }
  return bytes;
}

int64_t DecodeInteger(const Json& json, int64_t least, int64_t most) {
  if (!json.is_number_integer()) Damaged(fmt::format("{} stands for an integer", json.type_name()));
  const bool large =
      json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const int64_t value = large ? 0 : json.get<int64_t>();
  if (large || value < least || value > most) {
    Damaged(fmt::format("{} is outside {} to {}", json.dump(), least, most));
  }
  return value;
}

Json EncodeFloat(float value) {
  if (std::isfinite(value)) return static_cast<double>(value);
  return fmt::format("bits {:08x}", std::bit_cast<uint32_t>(value));
}

float DecodeFloat(const Json& json) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    uint32_t bits = 0;
    bool good = text.size() == 13 && text.starts_with("bits ");
    for (size_t i = 5; good && i < text.size(); ++i) {
      const size_t digit = std::string_view("0123456789abcdef").find(text[i]);
      good = digit != std::string_view::npos;
      bits = (bits << 4) | static_cast<uint32_t>(digit & 15);
    }
    if (!good) Damaged("a text stands for a float");
    return std::bit_cast<float>(bits);
  }
  if (!json.is_number()) Damaged(fmt::format("{} stands for a float", json.type_name()));
  const auto value = json.get<double>();
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    Damaged(fmt::format("{} is no float", json.dump()));
  }
  return static_cast<float>(value);
}

}  // namespace whimbrel
