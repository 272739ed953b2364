// The .wbl file: written in one piece, read through a map; nothing is believed before its hash is
// checked.

#include "whimbrel/graph/package.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/graph/graph_codec.h"

namespace whimbrel {
namespace {

constexpr std::string_view kMagic = "WHIMBRL1";
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kVersionOffset = 8;
constexpr size_t kFlagsOffset = 12;
constexpr size_t kIndexOffsetOffset = 16;
constexpr size_t kIndexBytesOffset = 24;
constexpr size_t kIndexHashOffset = 32;
constexpr size_t kAlignment = 64;
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr uint64_t kLazyFromBytes = uint64_t{1} << 30;
// Inference looks into constants: shapes, axes, pads, scales. Two figures per axis of the largest
// rank take 128 bytes.
constexpr size_t kInferredBytes = 256;

enum SectionId : size_t { kManifest, kGraphs, kPlans, kWeights, kProbes, kSectionCount };
constexpr std::array<std::string_view, kSectionCount> kSectionNames{"manifest", "graphs", "plans",
                                                                    "weights", "probes"};

size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
void PutLittle(std::byte* to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
}

template <typename T>
T GetLittle(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Error DamagedFile(const std::string& path, const std::string& what) {
  return Error(Code::kInvalidData, path + ": " + what,
               "copy or download the package again, or make it anew with whimbrel migrate");
}

struct Section {
  std::string_view name;
  size_t offset = 0;  // from the start of the file, a multiple of 64
  size_t bytes = 0;   // without the padding up to the next multiple of 64, which is hashed too
  std::vector<std::string> chunks = {};

  size_t hashed_bytes() const { return RoundUp(bytes); }
  size_t end() const { return offset + hashed_bytes(); }
};

std::string ChunkHash(std::span<const std::byte> section, size_t chunk) {
  const size_t begin = chunk * kChunkBytes;
  return Sha256Hex(section.subspan(begin, std::min(kChunkBytes, section.size() - begin)));
}

size_t ChunkCount(size_t bytes) {
  return bytes / kChunkBytes + (bytes % kChunkBytes == 0 ? 0 : 1);
}

void CheckChunk(const MappedFile& file, const Section& section, size_t chunk) {
  const auto bytes = file.bytes().subspan(section.offset, section.hashed_bytes());
  if (ChunkHash(bytes, chunk) == section.chunks[chunk]) return;
  throw DamagedFile(file.path(), fmt::format("section {} is damaged (chunk {} of {})", section.name,
                                             chunk + 1, section.chunks.size()));
}

void CheckSection(const MappedFile& file, const Section& section) {
  for (size_t chunk = 0; chunk < section.chunks.size(); ++chunk) CheckChunk(file, section, chunk);
}

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
  const size_t head = RoundUp(sizeof(uint64_t) + text.size());
  std::vector<std::byte> section(head + blobs.bytes());
  PutLittle<uint64_t>(section.data(), text.size());
  std::memcpy(section.data() + sizeof(uint64_t), text.data(), text.size());
  blobs.CopyTo(std::span(section).subspan(head));
  return section;
}

std::string EncodeIndex(const std::array<Section, kSectionCount>& sections) {
  Json list = Json::array();
  for (const Section& section : sections) {
    list.push_back({{"name", section.name},
                    {"offset", section.offset},
                    {"bytes", section.bytes},
                    {"chunks", section.chunks}});
  }
  return Json{{"sections", std::move(list)}}.dump();
}

struct PackageFile {
  std::shared_ptr<const MappedFile> file;
  std::array<Section, kSectionCount> sections;

  std::span<const std::byte> bytes(SectionId id) const {
    return file->bytes().subspan(sections[id].offset, sections[id].bytes);
  }
};

// Errors of `read` get the place put before them; JSON of another form than expected is damage.
template <typename F>
auto In(const std::string& place, F read) {
  try {
    return read();
  } catch (const Error& e) {
    throw e.WithContext(place);
  } catch (const Json::exception& e) {
    throw Error(Code::kInvalidData, fmt::format("{}: {}", place, e.what()));
  }
}

// Where the index lies, by the header.
std::span<const std::byte> CheckHeader(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string& path = file.path();
  if (bytes.empty()) throw DamagedFile(path, "the file is empty, not a .wbl package");
  if (bytes.size() < kMagic.size() || AsText(bytes.first(kMagic.size())) != kMagic) {
    throw Error(Code::kInvalidData,
                path + ": not a .wbl package (header: the first 8 bytes are not " +
                    std::string(kMagic) + ")",
                "check that this is the file you mean");
  }
  if (bytes.size() < kHeaderBytes) {
    throw DamagedFile(
        path, fmt::format("header is cut short ({} of {} bytes)", bytes.size(), kHeaderBytes));
  }
  const auto version = GetLittle<uint32_t>(bytes.data() + kVersionOffset);
  if (version != kFormatVersion) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: header: format version {}, this tool reads {}", path, version,
                            kFormatVersion),
                "make the package again with this version of the tool");
  }
  const auto flags = GetLittle<uint32_t>(bytes.data() + kFlagsOffset);
  if (flags != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: header: flags {:#x} are not known to this tool", path, flags),
                "make the package again with this version of the tool");
  }
  const auto offset = GetLittle<uint64_t>(bytes.data() + kIndexOffsetOffset);
  const auto size = GetLittle<uint64_t>(bytes.data() + kIndexBytesOffset);
  if (offset < kHeaderBytes || offset > bytes.size() || size != bytes.size() - offset) {
    throw DamagedFile(path,
                      fmt::format("header says that the index has {} bytes at {} and ends the "
                                  "file, the file has {} bytes",
                                  size, offset, bytes.size()));
  }
  return bytes.subspan(offset);
}

std::array<Section, kSectionCount> DecodeIndex(std::string_view text, size_t index_offset) {
  const auto fail = [](const std::string& what) { throw Error(Code::kInvalidData, what); };
  const Json json = ParseJson(text, "JSON");
  const auto& list = json.at("sections").get_ref<const Json::array_t&>();
  std::array<Section, kSectionCount> sections;
  if (list.size() != sections.size()) fail("it names other sections");
  size_t expected = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const Json& item = list[i];
    Section& section = sections[i];
    section.name = kSectionNames[i];
    if (item.at("name").get_ref<const std::string&>() != section.name) {
      fail(fmt::format("section {} is not in its place", section.name));
    }
    // No gaps and no overlaps: every byte is in one section.
    const auto offset = static_cast<int64_t>(expected);
    section.offset = static_cast<size_t>(DecodeInteger(item.at("offset"), offset, offset));
    const auto room = static_cast<int64_t>(index_offset - expected);
    section.bytes = static_cast<size_t>(DecodeInteger(item.at("bytes"), 0, room));
    if (section.hashed_bytes() > static_cast<size_t>(room)) {
      fail(fmt::format("section {} reaches into the index", section.name));
    }
    for (const Json& hash : item.at("chunks").get_ref<const Json::array_t&>()) {
      section.chunks.push_back(hash.get_ref<const std::string&>());
    }
    if (section.chunks.size() != ChunkCount(section.hashed_bytes())) {
      fail(fmt::format("section {} has {} hashes for {} bytes", section.name, section.chunks.size(),
                       section.bytes));
    }
    expected = section.end();
  }
  if (expected != index_offset) fail("bytes lie outside every section");
  return sections;
}

PackageFile OpenPackage(const std::string& path) {
  PackageFile package{.file = MappedFile::Open(path), .sections = {}};
  const auto index = CheckHeader(*package.file);
  const auto stored = package.file->bytes().subspan(kIndexHashOffset, 32);
  const auto actual = Sha256().Update(index).Digest();
  if (!std::equal(actual.begin(), actual.end(), stored.begin())) {
    throw DamagedFile(path, "index is damaged (its hash is not the one in the header)");
  }
  const auto index_offset = package.file->bytes().size() - index.size();
  In(path + ": index", [&] { package.sections = DecodeIndex(AsText(index), index_offset); });
  return package;
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
  const size_t head = RoundUp(sizeof(uint64_t) + text_bytes);
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

struct Worst {
  int64_t element = -1;  // -1: all fit
  double excess = 0;     // beyond the tolerance; infinite for NaN and infinities that do not agree
  int64_t count = 0;
};

Worst Compare(const Tensor& got, const Tensor& expected, double rtol, double atol) {
  Worst worst;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = ElementAsDouble(got, i);
    const double b = ElementAsDouble(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool finite = std::isfinite(a) && std::isfinite(b);
    const double excess = finite ? std::abs(a - b) - (atol + rtol * std::abs(b)) : INFINITY;
    if (excess <= 0) continue;
    ++worst.count;
    if (worst.element < 0 || excess > worst.excess) {
      worst.element = i;
      worst.excess = excess;
    }
  }
  return worst;
}

void CheckOutput(const Tensor& output, const Tensor& expected, const PackageProbe& probe,
                 const std::string& place) {
  constexpr std::string_view kHint =
      "the package does not compute here what it computed when it was made: make it again on this "
      "machine";
  const Tensor got = output.layout() == Layout::kPlain ? output : CopyPlain(output);
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape())) {
    throw Error(
        Code::kInvalidData,
        fmt::format("{}: expected {} {}, got {} {}", place, DTypeName(expected.dtype()),
                    ToString(expected.shape()), DTypeName(got.dtype()), ToString(got.shape())),
        std::string(kHint));
  }
  const Worst worst = Compare(got, expected, probe.rtol, probe.atol);
  if (worst.element < 0) return;
  throw Error(Code::kInvalidData,
              fmt::format("{}: {} of {} elements differ, worst is element {}: expected {}, got {} "
                          "(rtol {}, atol {})",
                          place, worst.count, expected.elements(), worst.element,
                          ElementAsDouble(expected, worst.element),
                          ElementAsDouble(got, worst.element), probe.rtol, probe.atol),
              std::string(kHint));
}

}  // namespace

class PackageWeights {
 public:
  PackageWeights(std::shared_ptr<const MappedFile> file, Section section)
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
    CheckChunks(begin / kChunkBytes, ChunkCount(begin + tensor.bytes()));
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
  const Section section_;
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
  std::array<std::vector<std::byte>, kSectionCount> parts;
  parts[kManifest] = Bytes(DumpJson(contents.manifest ? *contents.manifest : Json::object()));
  parts[kGraphs] = Bytes(EncodeBuckets(contents.buckets, weights));
  parts[kPlans] = Bytes(EncodePlans(contents.buckets));
  parts[kProbes] = EncodeProbes(contents.probes);

  std::array<Section, kSectionCount> sections;
  size_t end = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t bytes = i == kWeights ? weights.bytes() : parts[i].size();
    sections[i] = {.name = kSectionNames[i], .offset = end, .bytes = bytes};
    end = sections[i].end();
  }
  std::vector<std::byte> file(end);  // zero: so is the padding
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto place = std::span(file).subspan(sections[i].offset, sections[i].hashed_bytes());
    if (i == kWeights) {
      weights.CopyTo(place.first(sections[i].bytes));
    } else {
      std::copy(parts[i].begin(), parts[i].end(), place.begin());
    }
    for (size_t chunk = 0; chunk < ChunkCount(place.size()); ++chunk) {
      sections[i].chunks.push_back(ChunkHash(place, chunk));
    }
  }
  const std::string index = EncodeIndex(sections);
  const auto hash = Sha256().Update(index).Digest();
  std::copy(kMagic.begin(), kMagic.end(), reinterpret_cast<char*>(file.data()));
  PutLittle<uint32_t>(file.data() + kVersionOffset, kFormatVersion);
  PutLittle<uint64_t>(file.data() + kIndexOffsetOffset, end);
  PutLittle<uint64_t>(file.data() + kIndexBytesOffset, index.size());
  std::copy(hash.begin(), hash.end(), file.data() + kIndexHashOffset);
  const auto index_bytes = AsBytes(index);
  file.insert(file.end(), index_bytes.begin(), index_bytes.end());
  WriteFileAtomic(path, std::span<const std::byte>(file));
  return Sha256Hex(file);
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

bool LooksLikePackage(const std::string& path) {
  if (!FileExists(path) || IsDirectory(path)) return false;
  try {
    const auto file = MappedFile::Open(path);
    const auto bytes = file->bytes();
    return bytes.size() >= kMagic.size() && AsText(bytes.first(kMagic.size())) == kMagic;
  } catch (const Error&) {
    return false;
  }
}

void CheckProbes(const PackageContents& contents, const std::string& source,
                 const std::shared_ptr<Device>& device, int threads) {
  const auto stream = device->CreateStream({.threads = threads});
  std::unique_ptr<Executable> executable;  // of the last probe's bucket
  std::optional<size_t> prepared;
  for (size_t p = 0; p < contents.probes.size(); ++p) {
    const PackageProbe& probe = contents.probes[p];
    const Graph& graph = *contents.buckets.at(probe.bucket).graph;
    const std::string place = fmt::format("{}: probe {}", source, p);
    try {
      if (prepared != probe.bucket) {
        VerifyWeights(contents, probe.bucket);
        executable = Executable::Make(*stream, contents.buckets[probe.bucket].graph, device);
        prepared = probe.bucket;
      }
      executable->Run(*stream, probe.inputs);
      stream->Synchronize();
    } catch (const Error& e) {
      throw e.WithContext(place);
    }
    for (size_t i = 0; i < probe.outputs.size(); ++i) {
      CheckOutput(executable->output(i), probe.outputs[i], probe,
                  fmt::format("{}: output {}", place, graph.value(graph.outputs[i]).name));
    }
  }
}

}  // namespace whimbrel
