// Contents of a package to sections and back; what both sides hold true of them.

#include "whimbrel/graph/package.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/graph/graph_codec.h"
#include "whimbrel/graph/package_file.h"

namespace whimbrel {
namespace {

constexpr uint64_t kLazyFromBytes = uint64_t{1} << 30;
// Inference looks into constants: shapes, axes, pads, scales. Two figures per axis of the largest
// rank take 128 bytes.
constexpr size_t kInferredBytes = 256;

// What both the writer and the reader hold true of a bucket and of a probe.
void CheckContents(const PackageContents& contents, Code code) {
  const auto fail = [&](const std::string& what) { throw Error(code, what); };
  if (contents.buckets.empty()) fail("a package needs at least one bucket");
  for (size_t b = 0; b < contents.buckets.size(); ++b) {
    const PackageBucket& bucket = contents.buckets[b];
    const Graph& graph = *bucket.graph;
    if (bucket.shapes.size() != graph.inputs.size()) {
      fail(fmt::format("bucket {} names {} shapes, its graph has {} inputs", b,
                       bucket.shapes.size(), graph.inputs.size()));
    }
    for (size_t i = 0; i < bucket.shapes.size(); ++i) {
      const Value& input = graph.value(graph.inputs[i]);
      const InputShape& shape = bucket.shapes[i];
      if (input.name != shape.name || !input.info.static_shape() ||
          !(ToShape(*input.info.dims) == shape.shape)) {
        fail(fmt::format("bucket {}: input {} is {} {}, its shape is given as {} {}", b, i,
                         input.name, input.info.dims ? ToString(*input.info.dims) : "[...]",
                         shape.name, ToString(shape.shape)));
      }
    }
  }
  for (size_t p = 0; p < contents.probes.size(); ++p) {
    const PackageProbe& probe = contents.probes[p];
    if (probe.bucket >= contents.buckets.size()) {
      fail(fmt::format("probe {} is of bucket {}, there are {}", p, probe.bucket,
                       contents.buckets.size()));
    }
    const Graph& graph = *contents.buckets[probe.bucket].graph;
    if (probe.inputs.size() != graph.inputs.size() ||
        probe.outputs.size() != graph.outputs.size()) {
      fail(fmt::format("probe {} has {} inputs and {} outputs, its graph {} and {}", p,
                       probe.inputs.size(), probe.outputs.size(), graph.inputs.size(),
                       graph.outputs.size()));
    }
    for (size_t i = 0; i < probe.inputs.size(); ++i) {
      const Value& input = graph.value(graph.inputs[i]);
      if (probe.inputs[i].dtype() != input.info.dtype ||
          !(probe.inputs[i].shape() == ToShape(*input.info.dims))) {
        fail(fmt::format("probe {}: input {} is {} {}, the graph takes {} {}", p, input.name,
                         DTypeName(probe.inputs[i].dtype()), ToString(probe.inputs[i].shape()),
                         DTypeName(input.info.dtype), ToString(*input.info.dims)));
      }
    }
    if (!(std::isfinite(probe.rtol) && std::isfinite(probe.atol) && probe.rtol >= 0 &&
          probe.atol >= 0)) {
      fail(fmt::format("probe {}: tolerances {} and {} are no finite figures from 0 up", p,
                       probe.rtol, probe.atol));
    }
  }
}

std::string EncodeBuckets(const std::vector<PackageBucket>& buckets, BlobWriter& weights) {
  Json list = Json::array();
  for (const PackageBucket& bucket : buckets) {
    Json shapes = Json::array();
    for (const InputShape& shape : bucket.shapes) {
      const auto dims = shape.shape.dims();
      shapes.push_back({{"name", EncodeText(shape.name)},
                        {"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
    }
    list.push_back({{"shapes", std::move(shapes)}, {"graph", EncodeGraph(*bucket.graph, weights)}});
  }
  return list.dump();
}

std::string EncodePlans(const std::vector<PackageBucket>& buckets) {
  Json plans = Json::array();
  for (const PackageBucket& bucket : buckets) {
    plans.push_back(EncodeText(ToText(MakePlan(*bucket.graph, {}), *bucket.graph)));
  }
  const Json json = {{"device", DeviceKindName(DeviceKind::kCpu)},
                     {"isa", IsaName(ActiveIsa())},
                     {"plans", std::move(plans)}};
  return json.dump();
}

std::vector<std::byte> Bytes(std::string_view text) {
  const auto bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

// JSON length u64, JSON, then from the next multiple of 64 on the tensors' bytes.
std::vector<std::byte> EncodeProbes(const std::vector<PackageProbe>& probes) {
  BlobWriter blobs;
  const auto encode = [&](const std::vector<Tensor>& tensors) {
    Json list = Json::array();
    for (const Tensor& tensor : tensors) list.push_back(EncodeTensor(tensor, blobs));
    return list;
  };
  Json list = Json::array();
  for (const PackageProbe& probe : probes) {
    list.push_back({{"bucket", probe.bucket},
                    {"rtol", probe.rtol},
                    {"atol", probe.atol},
                    {"inputs", encode(probe.inputs)},
                    {"outputs", encode(probe.outputs)}});
  }
  const std::string text = list.dump();
  const size_t head = PaddedBytes(sizeof(uint64_t) + text.size());
  std::vector<std::byte> section(head + blobs.bytes());
  PutLittle<uint64_t>(section.data(), text.size());
  std::memcpy(section.data() + sizeof(uint64_t), text.data(), text.size());
  blobs.CopyTo(std::span(section).subspan(head));
  return section;
}

std::vector<PackageBucket> DecodeBuckets(std::string_view text,
                                         const std::shared_ptr<Buffer>& weights) {
  const Json json = ParseJson(text, "JSON");
  std::vector<PackageBucket> buckets;
  for (const Json& item : json.get_ref<const Json::array_t&>()) {
    PackageBucket bucket;
    for (const Json& entry : item.at("shapes").get_ref<const Json::array_t&>()) {
      std::vector<int64_t> dims;
      for (const Json& dim : entry.at("shape").get_ref<const Json::array_t&>()) {
        dims.push_back(DecodeInteger(dim, 0));
      }
      bucket.shapes.push_back(
          {DecodeText(entry.at("name")), Shape(std::span<const int64_t>(dims))});
    }
    bucket.graph = std::make_shared<const Graph>(DecodeGraph(item.at("graph"), weights));
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

void DecodePlans(std::string_view text, std::vector<PackageBucket>& buckets) {
  const Json json = ParseJson(text, "JSON");
  const auto& plans = json.at("plans").get_ref<const Json::array_t&>();
  if (plans.size() != buckets.size()) {
    throw Error(Code::kInvalidData,
                fmt::format("{} plans for {} buckets", plans.size(), buckets.size()));
  }
  for (size_t i = 0; i < plans.size(); ++i) buckets[i].plan = DecodeText(plans[i]);
}

// A byte other than 0 and 1 is no bool for the compiler: anything could follow.
void CheckBools(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  const std::span bytes(tensor.data<std::byte>(), tensor.bytes());
  if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
    throw Error(Code::kInvalidData, "a bool tensor holds bytes other than 0 and 1");
  }
}

std::vector<PackageProbe> DecodeProbes(const PackageFile& package) {
  const auto section = package.bytes(kProbes);
  const auto too_short = [&] {
    return Error(Code::kInvalidData, fmt::format("{} bytes are too few", section.size()));
  };
  if (section.size() < sizeof(uint64_t)) throw too_short();
  const auto text_bytes = GetLittle<uint64_t>(section.data());
  if (text_bytes > section.size() - sizeof(uint64_t)) throw too_short();
  const size_t head = PaddedBytes(sizeof(uint64_t) + text_bytes);
  if (head > section.size()) throw too_short();
  const auto blobs = Buffer::FromFile(package.file, package.sections[kProbes].offset + head,
                                      section.size() - head);
  const auto tensors = [&](const Json& list) {
    std::vector<Tensor> out;
    for (const Json& item : list.get_ref<const Json::array_t&>()) {
      out.push_back(DecodeTensor(item, blobs));
      CheckBools(out.back());
    }
    return out;
  };
  const Json json = ParseJson(AsText(section.subspan(sizeof(uint64_t), text_bytes)), "JSON");
  std::vector<PackageProbe> probes;
  for (const Json& item : json.get_ref<const Json::array_t&>()) {
    probes.push_back({.bucket = static_cast<size_t>(DecodeInteger(item.at("bucket"), 0)),
                      .inputs = tensors(item.at("inputs")),
                      .outputs = tensors(item.at("outputs")),
                      .rtol = item.at("rtol").get<double>(),
                      .atol = item.at("atol").get<double>()});
  }
  return probes;
}

}  // namespace

class PackageWeights {
 public:
  PackageWeights(std::shared_ptr<const MappedFile> file, PackageSection section)
      : file_(std::move(file)),
        section_(std::move(section)),
        buffer_(Buffer::FromFile(file_, section_.offset, section_.bytes)),
        checked_(section_.chunks.size(), false) {}

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  void CheckAll() { CheckChunks(0, checked_.size()); }

  // The chunks of all tensors of at most `largest` bytes.
  void Check(const Graph& graph, size_t largest = SIZE_MAX) {
    const auto check = [&](const Tensor& tensor) {
      if (tensor.bytes() <= largest) Check(tensor);
    };
    for (const Value& value : graph.values) {
      if (value.info.constant != nullptr) check(*value.info.constant);
    }
    for (const Node& node : graph.nodes) {
      for (const auto& [name, attribute] : node.attributes.all()) {
        if (const auto* tensor = std::get_if<Tensor>(&attribute)) check(*tensor);
      }
      for (const Branch& branch : node.branches) Check(*branch.graph, largest);
    }
  }

 private:
  void Check(const Tensor& tensor) {
    const auto* data = static_cast<const std::byte*>(tensor.raw());
    if (tensor.buffer() != buffer_ || tensor.bytes() == 0) return;
    const auto begin = static_cast<size_t>(data - buffer_->data());
    CheckChunks(begin / kPackageChunkBytes, ChunkCount(begin + tensor.bytes()));
    In(file_->path() + ": section weights", [&] { CheckBools(tensor); });
  }

  void CheckChunks(size_t begin, size_t end) {
    const std::lock_guard lock(mutex_);
    for (size_t chunk = begin; chunk < end; ++chunk) {
      if (checked_[chunk]) continue;
      CheckChunk(*file_, section_, chunk);
      checked_[chunk] = true;
    }
  }

  const std::shared_ptr<const MappedFile> file_;
  const PackageSection section_;
  const std::shared_ptr<Buffer> buffer_;
  std::mutex mutex_;
  std::vector<bool> checked_;  // per chunk; guarded by mutex_
};

std::string WritePackage(const std::string& path, const PackageContents& contents) {
  CheckContents(contents, Code::kInvalidArgument);
  for (const PackageBucket& bucket : contents.buckets) {
    VerifyGraph(*bucket.graph, "compiling");
    CheckInferred(*bucket.graph);
  }
  BlobWriter weights;
  PackageParts parts;
  parts[kManifest] = Bytes(DumpJson(contents.manifest ? *contents.manifest : Json::object()));
  parts[kGraphs] = Bytes(EncodeBuckets(contents.buckets, weights));
  parts[kPlans] = Bytes(EncodePlans(contents.buckets));
  parts[kProbes] = EncodeProbes(contents.probes);
  return WriteSections(path, parts, weights);
}

PackageContents ReadPackage(const std::string& path, VerifyMode mode) {
  const PackageFile package = OpenPackage(path);
  const auto text = [&](SectionId id) { return AsText(package.bytes(id)); };
  for (size_t id : {kManifest, kGraphs, kPlans, kProbes}) {
    CheckSection(*package.file, package.sections[id]);
  }
  PackageContents contents;
  contents.weights = std::make_shared<PackageWeights>(package.file, package.sections[kWeights]);
  const bool full = mode == VerifyMode::kFull ||
                    (mode == VerifyMode::kAuto && package.file->bytes().size() < kLazyFromBytes);
  if (full) contents.weights->CheckAll();

  In(path + ": section manifest",
     [&] { contents.manifest = std::make_shared<const Json>(ParseJson(text(kManifest), "JSON")); });
  In(path + ": section graphs",
     [&] { contents.buckets = DecodeBuckets(text(kGraphs), contents.weights->buffer()); });
  for (const PackageBucket& bucket : contents.buckets) {
    contents.weights->Check(*bucket.graph, full ? SIZE_MAX : kInferredBytes);
    In(path + ": section graphs", [&] { CheckInferred(*bucket.graph); });
  }
  In(path + ": section plans", [&] { DecodePlans(text(kPlans), contents.buckets); });
  In(path + ": section probes", [&] { contents.probes = DecodeProbes(package); });
  try {
    CheckContents(contents, Code::kInvalidData);
  } catch (const Error& e) {
    throw e.WithContext(path);
  }
  return contents;
}

void VerifyWeights(const PackageContents& contents, size_t bucket) {
  if (contents.weights != nullptr) contents.weights->Check(*contents.buckets.at(bucket).graph);
}

}  // namespace whimbrel
