// Packages: what is written comes back, nothing is copied or stored twice, and no damage gets past
// the reader.

#include "whimbrel/graph/package.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/graph/graph_codec.h"
#include "whimbrel/graph/infer_graph.h"

namespace whimbrel {
namespace {

using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A file name of its own for each test, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    static int count = 0;
    path_ = ::testing::TempDir() + "/" + test->name() + std::to_string(getpid()) + "_" +
            std::to_string(count++) + ".wbl";
  }
  ~TemporaryFile() { RemoveFile(path_); }
  const std::string& path() const { return path_; }
  std::string Read() const { return ReadTextFile(path_); }
  // Thousands of these are written: neither synced nor cut to nothing first, which file systems
  // sync too.
  void Write(const std::string& bytes) const {
    { const std::ofstream made(path_, std::ios::binary | std::ios::app); }
    std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(bytes.size())), 0);
  }

 private:
  std::string path_;
};

Tensor Ramp(const Shape& shape, float step = 0.25F) {
  Tensor t = Tensor::Host(DType::kFloat, shape);
  for (int64_t i = 0; i < t.elements(); ++i)
    t.data<float>()[i] = step * static_cast<float>(i % 13 - 6);
  return t;
}

ValueId AddInput(Graph& graph, const std::string& name, DType dtype, const Shape& shape) {
  ValueInfo info;
  info.dtype = dtype;
  info.dims = ToDims(shape);
  const ValueId id = graph.AddValue(name, std::move(info));
  graph.inputs.push_back(id);
  return id;
}

ValueId AddNode(Graph& graph, const std::string& op, std::vector<ValueId> inputs,
                Attributes attributes = {}) {
  const ValueId out = graph.AddValue(op + "_out" + std::to_string(graph.nodes.size()));
  Node node;
  node.name = op + "_" + std::to_string(graph.nodes.size());
  node.op = op;
  node.opset = 17;
  node.inputs = std::move(inputs);
  node.outputs = {out};
  node.attributes = std::move(attributes);
  node.schema = Registry::Get().Find("", op, 17);
  node.origins = {"model/" + op};
  EXPECT_NE(node.schema, nullptr) << op;
  graph.nodes.push_back(std::move(node));
  return out;
}

// A branch that computes `op` of its capture and a constant of its own.
Branch MakeBranch(const std::string& attribute, const std::string& op, const Graph& outer,
                  ValueId captured) {
  auto inner = std::make_shared<Graph>();
  inner->name = attribute;
  const ValueId capture = inner->AddValue("seen", outer.value(captured).info);
  inner->captures = {capture};
  const ValueId k = inner->AddConstant("k", Tensor::Scalar(3.0F));
  inner->outputs = {AddNode(*inner, op, {capture, k})};
  InferGraph(*inner);
  return {.attribute = attribute, .graph = inner, .outer = {captured}};
}

// If(cond, Relu(Conv(x)) + 3, Relu(Conv(x)) * 3)
std::shared_ptr<const Graph> ConvIf(int64_t size, const Tensor& weight) {
  auto graph = std::make_shared<Graph>();
  graph->name = "conv_if";
  graph->producer = "by hand";
  graph->ir_version = 8;
  graph->opsets = {{"", 17}, {"whimbrel", 1}};
  const ValueId x = AddInput(*graph, "x", DType::kFloat, {1, 2, size, size});
  const ValueId cond = AddInput(*graph, "cond", DType::kBool, {});
  const ValueId w = graph->AddConstant("w", weight);
  Attributes attributes;
  attributes.Set("pads", std::vector<int64_t>{1, 1, 1, 1});
  attributes.Set("group", int64_t{1});
  const ValueId conv = AddNode(*graph, "Conv", {x, w}, attributes);
  const ValueId relu = AddNode(*graph, "Relu", {conv});
  InferGraph(*graph);
  const ValueId y = AddNode(*graph, "If", {cond});
  graph->nodes.back().branches.push_back(MakeBranch("then_branch", "Add", *graph, relu));
  graph->nodes.back().branches.push_back(MakeBranch("else_branch", "Mul", *graph, relu));
  graph->outputs = {y};
  InferGraph(*graph);
  return graph;
}

// x [3] + k [3]
std::shared_ptr<const Graph> AddGraph(const Tensor& k) {
  auto graph = std::make_shared<Graph>();
  graph->name = "add";
  const ValueId x = AddInput(*graph, "x", k.dtype(), k.shape());
  graph->outputs = {AddNode(*graph, "Add", {x, graph->AddConstant("k", k)})};
  InferGraph(*graph);
  return graph;
}

PackageBucket Bucket(std::shared_ptr<const Graph> graph) {
  PackageBucket bucket;
  for (ValueId id : graph->inputs) {
    bucket.shapes.push_back({graph->value(id).name, ToShape(*graph->value(id).info.dims)});
  }
  bucket.graph = std::move(graph);
  return bucket;
}

std::vector<Tensor> RunGraph(const std::shared_ptr<const Graph>& graph,
                             const std::vector<Tensor>& inputs) {
  const auto device = OpenDevice("cpu:0");
  const auto stream = device->CreateStream({.threads = 1});
  Executable executable(graph, device);
  executable.Run(*stream, inputs);
  stream->Synchronize();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executable.outputs(); ++i)
    outputs.push_back(CopyPlain(executable.output(i)));
  return outputs;
}

PackageProbe Probe(const PackageContents& contents, size_t bucket, std::vector<Tensor> inputs) {
  PackageProbe probe{.bucket = bucket, .inputs = std::move(inputs), .outputs = {}};
  probe.outputs = RunGraph(contents.buckets[bucket].graph, probe.inputs);
  return probe;
}

PackageContents SmallContents() {
  PackageContents contents;
  contents.manifest = std::make_shared<const Json>(Json{{"model", "conv_if"}, {"target", "cpu"}});
  contents.buckets.push_back(Bucket(ConvIf(5, Ramp({3, 2, 3, 3}))));
  for (bool cond : {true, false}) {
    contents.probes.push_back(Probe(contents, 0, {Ramp({1, 2, 5, 5}), Tensor::Scalar(cond)}));
  }
  return contents;
}

std::string Dump(const Graph& graph) {
  BlobWriter blobs;
  return EncodeGraph(graph, blobs).dump();
}

std::string ErrorOf(const std::function<void()>& call, Code* code = nullptr) {
  try {
    call();
  } catch (const Error& e) {
    if (code != nullptr) *code = e.code();
    return e.what();
  }
  return "no error";
}

std::string ReadError(const TemporaryFile& file, VerifyMode mode = VerifyMode::kAuto,
                      Code* code = nullptr) {
  return ErrorOf([&] { ReadPackage(file.path(), mode); }, code);
}

uint64_t Number(const std::string& bytes, size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, 8);
  return value;
}

Json IndexOf(const std::string& bytes) {
  return ParseJson(bytes.substr(Number(bytes, 16)), "index");
}

Json SectionOf(const std::string& bytes, const std::string& name) {
  const Json index = IndexOf(bytes);
  for (const Json& section : index.at("sections")) {
    if (section.at("name") == name) return section;
  }
  throw std::logic_error(name);
}

// What the reader calls the place of a byte.
std::string PlaceOf(const Json& index, size_t position) {
  if (position < 64) return "header";
  for (const Json& section : index.at("sections")) {
    const size_t bytes = (section.at("bytes").get<size_t>() + 63) / 64 * 64;
    if (position < section.at("offset").get<size_t>() + bytes)
      return "section " + section.at("name").get<std::string>();
  }
  return "index";
}

void SealIndex(std::string& bytes) {
  const auto digest = Sha256().Update(std::string_view(bytes).substr(Number(bytes, 16))).Digest();
  std::memcpy(bytes.data() + 32, digest.data(), 32);
}

// Makes all hashes right again, as somebody would who forges a package.
void Seal(std::string& bytes) {
  Json index = IndexOf(bytes);
  for (Json& section : index.at("sections")) {
    const auto offset = section.at("offset").get<size_t>();
    const size_t size = (section.at("bytes").get<size_t>() + 63) / 64 * 64;
    size_t chunk = 0;
    for (Json& hash : section.at("chunks")) {
      const size_t begin = chunk++ << 20;
      hash = Sha256Hex(
          std::string_view(bytes).substr(offset + begin, std::min(size - begin, size_t{1} << 20)));
    }
  }
  const std::string text = index.dump();
  bytes.replace(Number(bytes, 16), std::string::npos, text);
  SealIndex(bytes);
}

std::pair<const char*, const char*> MapOf(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(FileName(path)) == std::string::npos) continue;
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) {
      return {reinterpret_cast<const char*>(begin), reinterpret_cast<const char*>(end)};
    }
  }
  return {nullptr, nullptr};
}

TEST(Package, GivesBackWhatWasWritten) {
  const TemporaryFile file;
  const PackageContents contents = SmallContents();
  const std::string hash = WritePackage(file.path(), contents);
  EXPECT_EQ(hash, Sha256Hex(file.Read()));
  EXPECT_TRUE(LooksLikePackage(file.path()));

  const PackageContents read = ReadPackage(file.path());
  EXPECT_EQ(*read.manifest, *contents.manifest);
  ASSERT_EQ(read.buckets.size(), 1);
  const PackageBucket& bucket = read.buckets[0];
  ASSERT_EQ(bucket.shapes.size(), 2);
  EXPECT_EQ(bucket.shapes[0].name, "x");
  EXPECT_EQ(bucket.shapes[0].shape, (Shape{1, 2, 5, 5}));
  EXPECT_EQ(ToText(*bucket.graph), ToText(*contents.buckets[0].graph));
  EXPECT_EQ(Dump(*bucket.graph), Dump(*contents.buckets[0].graph));
  EXPECT_EQ(bucket.graph->nodes[2].schema, Registry::Get().Find("", "If", 17));
  EXPECT_EQ(bucket.graph->nodes[2].branches[1].graph->captures.size(), 1);
  EXPECT_THAT(bucket.plan, HasSubstr("arena"));
  ASSERT_EQ(read.probes.size(), 2);
  for (size_t p = 0; p < 2; ++p) {
    EXPECT_TRUE(BitEqual(read.probes[p].inputs[0], contents.probes[p].inputs[0]));
    EXPECT_TRUE(BitEqual(read.probes[p].outputs[0], contents.probes[p].outputs[0]));
    EXPECT_EQ(read.probes[p].rtol, contents.probes[p].rtol);
  }
  EXPECT_NO_THROW(CheckProbes(read, file.path(), OpenDevice("cpu:0"), 1));
}

TEST(Package, EqualContentsGiveEqualBytes) {
  const TemporaryFile first;
  const TemporaryFile second;
  const TemporaryFile third;
  WritePackage(first.path(), SmallContents());
  WritePackage(second.path(), SmallContents());
  EXPECT_TRUE(first.Read() == second.Read());
  WritePackage(third.path(), ReadPackage(first.path()));
  EXPECT_TRUE(first.Read() == third.Read());
}

TEST(Package, KeepsAttributesOfEveryType) {
  Graph graph;
  graph.name = std::string("bytes \xff\x00\xc3", 9);
  const ValueId x = AddInput(graph, "x", DType::kFloat, {2});
  graph.value(x).info.dims = Dims{Dim::Symbol("N"), Dim(), 7};
  graph.value(x).info.elements = Dims{-3, Dim::Symbol("(H+1)/2"), Dim()};
  Attributes a;
  a.Set("int", std::numeric_limits<int64_t>::min());
  a.Set("float", 0.1F);
  a.Set("nan", std::bit_cast<float>(0xffc01234U));
  a.Set("string", std::string("\x00 \x80\xff \xe2\x82\xac", 8));
  a.Set("tensor", Tensor::FromValues<int64_t>({2, 1}, std::vector<int64_t>{-1, 1}));
  a.Set("half", Tensor::Host(DType::kFloat16, {0, 4}));
  a.Set("scalar", Tensor::Scalar(true));
  a.Set("ints", std::vector<int64_t>{1, -2});
  a.Set("none", std::vector<int64_t>{});
  a.Set("floats",
        std::vector<float>{-0.0F, kInf, -kInf, 1e-45F, std::numeric_limits<float>::max()});
  a.Set("strings", std::vector<std::string>{"", "\xfe"});
  graph.outputs = {AddNode(graph, "Relu", {x}, a)};
  graph.nodes[0].inputs.push_back(kNoValue);

  BlobWriter blobs;
  const std::string text = EncodeGraph(graph, blobs).dump();
  auto weights = Buffer::AllocateHost(blobs.bytes());
  blobs.CopyTo({weights->data(), weights->size()});
  const Graph read = DecodeGraph(ParseJson(text, "test"), weights);
  EXPECT_EQ(read.name, graph.name);
  EXPECT_EQ(ToString(*read.value(x).info.dims), "[N, ?, 7]");
  EXPECT_EQ(ToString(*read.value(x).info.elements), "[-3, (H+1)/2, ?]");
  EXPECT_EQ(read.nodes[0].inputs, graph.nodes[0].inputs);
  const Attributes& b = read.nodes[0].attributes;
  EXPECT_EQ(b.all().size(), a.all().size());
  EXPECT_EQ(b.Int("int", 0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(b.Float("float", 0), double{0.1F});
  EXPECT_EQ(std::bit_cast<uint32_t>(std::get<float>(b.all().at("nan"))), 0xffc01234U);
  EXPECT_EQ(b.String("string", ""), a.String("string", ""));
  EXPECT_TRUE(BitEqual(*b.TensorOrNull("tensor"), *a.TensorOrNull("tensor")));
  EXPECT_TRUE(BitEqual(*b.TensorOrNull("half"), *a.TensorOrNull("half")));
  EXPECT_TRUE(BitEqual(*b.TensorOrNull("scalar"), *a.TensorOrNull("scalar")));
  EXPECT_THAT(b.Ints("ints"), ::testing::ElementsAre(1, -2));
  EXPECT_TRUE(b.Has("none"));
  const auto floats = b.Floats("floats");
  ASSERT_EQ(floats.size(), 5);
  EXPECT_EQ(std::memcmp(floats.data(), a.Floats("floats").data(), floats.size_bytes()), 0);
  EXPECT_THAT(b.Strings("strings"), ::testing::ElementsAre("", "\xfe"));
}

TEST(Package, WeightsAreViewsOfTheMappedFile) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  const PackageContents read = ReadPackage(file.path());
  const auto [begin, end] = MapOf(file.path());
  ASSERT_NE(begin, nullptr);
  const Graph& graph = *read.buckets[0].graph;
  const Tensor& w = *graph.value(graph.FindValue("w")).info.constant;
  EXPECT_GE(w.data<char>(), begin);
  EXPECT_LE(w.data<char>() + w.bytes(), end);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.raw()) % 64, 0);
  EXPECT_TRUE(BitEqual(w, Ramp({3, 2, 3, 3})));
  const Tensor& probe = read.probes[0].inputs[0];
  EXPECT_TRUE(probe.data<char>() >= begin && probe.data<char>() < end);
}

TEST(Package, WeightsOutliveTheContents) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  std::shared_ptr<const Graph> graph = ReadPackage(file.path()).buckets[0].graph;
  RemoveFile(file.path());
  EXPECT_TRUE(BitEqual(*graph->value(graph->FindValue("w")).info.constant, Ramp({3, 2, 3, 3})));
}

TEST(Package, BucketsShareEqualWeights) {
  const TemporaryFile one;
  const TemporaryFile three;
  const Tensor weight = Ramp({3, 2, 3, 3});
  PackageContents contents;
  contents.buckets.push_back(Bucket(ConvIf(5, weight)));
  WritePackage(one.path(), contents);
  contents.buckets.push_back(Bucket(ConvIf(6, weight)));             // the same buffer
  contents.buckets.push_back(Bucket(ConvIf(7, CopyPlain(weight))));  // the same bytes
  WritePackage(three.path(), contents);
  EXPECT_EQ(SectionOf(one.Read(), "weights").at("bytes"),
            SectionOf(three.Read(), "weights").at("bytes"));
  const PackageContents read = ReadPackage(three.path());
  const auto weight_of = [&](size_t b) {
    const Graph& graph = *read.buckets[b].graph;
    return graph.value(graph.FindValue("w")).info.constant->raw();
  };
  EXPECT_EQ(weight_of(0), weight_of(1));
  EXPECT_EQ(weight_of(0), weight_of(2));
}

TEST(Package, EveryFlippedByteIsRefusedByPlace) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  const std::string good = file.Read();
  const Json index = IndexOf(good);
  std::fstream out(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  for (size_t i = 0; i < good.size(); ++i) {
    const VerifyMode mode = i % 2 == 0 ? VerifyMode::kAuto : VerifyMode::kFull;
    out.seekp(static_cast<std::streamoff>(i))
        .put(static_cast<char>(good[i] ^ (1 << (i % 8))))
        .flush();
    const std::string error = ReadError(file, mode);
    ASSERT_THAT(error, HasSubstr(file.path())) << "byte " << i;
    ASSERT_THAT(error, HasSubstr(PlaceOf(index, i))) << "byte " << i;
    out.seekp(static_cast<std::streamoff>(i)).put(good[i]).flush();
  }
  EXPECT_EQ(ReadError(file), "no error");
}

TEST(Package, EveryTruncationIsRefused) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  for (size_t n = file.Read().size(); n-- > 0;) {
    ASSERT_EQ(truncate(file.path().c_str(), static_cast<off_t>(n)), 0);
    ASSERT_THAT(ReadError(file), HasSubstr(file.path())) << n << " bytes";
  }
  EXPECT_THAT(ReadError(file), HasSubstr("the file is empty"));
}

TEST(Package, BytesAfterTheEndAreRefused) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  const std::string good = file.Read();
  for (const std::string& tail : {std::string(1, '\0'), std::string(64, ' '), good}) {
    file.Write(good + tail);
    EXPECT_THAT(ReadError(file), HasSubstr("header says"));
  }
}

TEST(Package, SaysWhatAForeignFileIs) {
  const TemporaryFile file;
  Code code = Code::kOk;
  file.Write("this is a text file that is longer than a header of sixty-four bytes");
  EXPECT_THAT(ReadError(file, VerifyMode::kAuto, &code), HasSubstr("not a .wbl package"));
  EXPECT_EQ(code, Code::kInvalidData);
  EXPECT_FALSE(LooksLikePackage(file.path()));
  EXPECT_FALSE(LooksLikePackage(file.path() + ".absent"));
  EXPECT_FALSE(LooksLikePackage(::testing::TempDir()));
  WritePackage(file.path(), SmallContents());
  std::string bytes = file.Read();
  bytes[8] = 7;
  file.Write(bytes);
  EXPECT_THAT(ReadError(file, VerifyMode::kAuto, &code),
              HasSubstr("format version 7, this tool reads 1"));
  EXPECT_EQ(code, Code::kUnsupported);
}

TEST(Package, NamesTheOpOfANewerTool) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  std::string bytes = file.Read();
  bytes.replace(bytes.find("\"op\":\"Relu\"") + 6, 4, "Rule");
  Seal(bytes);
  file.Write(bytes);
  Code code = Code::kOk;
  EXPECT_THAT(ReadError(file, VerifyMode::kAuto, &code),
              HasSubstr("package was made by a tool version that knows op Rule"));
  EXPECT_EQ(code, Code::kUnsupported);
}

TEST(Package, ForgedShapesAreRefused) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  std::string bytes = file.Read();
  // The output of Conv made smaller than Conv writes.
  const std::string from = "\"name\":\"Conv_out0\",\"dtype\":1,\"dims\":[1,3,5,5]";
  ASSERT_NE(bytes.find(from), std::string::npos);
  bytes.replace(bytes.find(from) + from.size() - 4, 3, "1,1");
  Seal(bytes);
  file.Write(bytes);
  EXPECT_THAT(ReadError(file), HasSubstr("value Conv_out0 is stored as float32 [1, 3, 1, 1]"));
}

// Weights of some MiB in the first bucket alone.
PackageContents LargeContents() {
  PackageContents contents;
  Tensor large = Ramp({900000});
  for (int64_t i = 0; i < large.elements(); ++i) large.data<float>()[i] = static_cast<float>(i);
  contents.buckets.push_back(Bucket(AddGraph(large)));
  contents.buckets.push_back(Bucket(AddGraph(Ramp({3}))));
  return contents;
}

TEST(Package, DamagedWeightsNameTheirChunk) {
  const TemporaryFile file;
  WritePackage(file.path(), LargeContents());
  std::string bytes = file.Read();
  bytes[SectionOf(bytes, "weights").at("offset").get<size_t>() + (2 << 20) + 5] ^= 4;
  file.Write(bytes);
  Code code = Code::kOk;
  EXPECT_EQ(ReadError(file, VerifyMode::kFull, &code),
            file.path() + ": section weights is damaged (chunk 3 of 4)");
  EXPECT_EQ(code, Code::kInvalidData);
  EXPECT_THAT(ReadError(file, VerifyMode::kAuto), HasSubstr("chunk 3 of 4"));
}

TEST(Package, LazyWeightsAreCheckedBeforeTheirFirstUse) {
  const TemporaryFile file;
  WritePackage(file.path(), LargeContents());
  std::string bytes = file.Read();
  bytes[SectionOf(bytes, "weights").at("offset").get<size_t>() + (1 << 20)] ^= 1;
  file.Write(bytes);
  PackageContents read = ReadPackage(file.path(), VerifyMode::kLazy);
  EXPECT_NO_THROW(VerifyWeights(read, 1));
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(ErrorOf([&] { VerifyWeights(read, 0); }),
                HasSubstr("section weights is damaged (chunk 2 of 4)"));
  }
  read.probes.push_back({.bucket = 0, .inputs = {Ramp({900000})}, .outputs = {Ramp({900000})}});
  EXPECT_THAT(ErrorOf([&] { CheckProbes(read, "p", OpenDevice("cpu:0"), 1); }),
              HasSubstr("chunk 2 of 4"));
  EXPECT_NO_THROW(VerifyWeights(LargeContents(), 0));  // made in memory: nothing to check
}

// A forged file may be refused or may run, but never leaves its bounds (run under ASan to see it).
// True when it was good enough to be run.
bool ReadAndRun(const TemporaryFile& file) {
  bool accepted = false;
  try {
    const PackageContents read = ReadPackage(file.path());
    accepted = true;
    CheckProbes(read, file.path(), OpenDevice("cpu:0"), 1);
  } catch (const Error& e) {
    EXPECT_NE(e.code(), Code::kInternal) << e.what();
  }
  return accepted;
}

TEST(Package, ForgedBytesNeverLeaveTheirBounds) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  const std::string good = file.Read();
  const size_t index = Number(good, 16);
  std::mt19937 random(7);
  const std::string alphabet = "0123456789-,:[]{}\"nulltrue .eE\\";
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    const bool in_index = round % 4 == 0;
    const int edits = 1 + static_cast<int>(random() % 3);
    for (int e = 0; e < edits; ++e) {
      const size_t at =
          in_index ? index + random() % (bytes.size() - index) : 64 + random() % (index - 64);
      bytes[at] =
          random() % 4 == 0 ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
    }
    if (in_index) {
      SealIndex(bytes);
    } else {
      Seal(bytes);
    }
    file.Write(bytes);
    accepted += ReadAndRun(file) ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);  // else the forgeries would test the JSON reader only
}

TEST(Package, ForgedNumbersNeverLeaveTheirBounds) {
  const TemporaryFile file;
  WritePackage(file.path(), SmallContents());
  const std::string good = file.Read();
  std::vector<size_t> digits;  // of the structure: graphs and the head of the probes
  for (const char* name : {"graphs", "probes"}) {
    const Json section = SectionOf(good, name);
    const auto offset = section.at("offset").get<size_t>();
    const auto end = offset + section.at("bytes").get<size_t>();
    for (size_t i = offset + 8; i < end; ++i) {
      if (std::isdigit(static_cast<unsigned char>(good[i])) != 0) digits.push_back(i);
    }
  }
  int accepted = 0;
  for (size_t at : digits) {
    for (char digit : {'0', '1', '2', '4', '9', '-'}) {
      std::string bytes = good;
      bytes[at] = digit;
      Seal(bytes);
      file.Write(bytes);
      accepted += ReadAndRun(file) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Package, RefusesToWriteProbesThatDoNotFit) {
  const TemporaryFile file;
  Code code = Code::kOk;
  const auto error = [&](const PackageContents& contents) {
    return ErrorOf([&] { WritePackage(file.path(), contents); }, &code);
  };
  PackageContents contents;
  EXPECT_THAT(error(contents), HasSubstr("at least one bucket"));
  contents.buckets.push_back(Bucket(AddGraph(Ramp({3}))));
  contents.probes = {{.bucket = 1, .inputs = {}, .outputs = {}}};
  EXPECT_THAT(error(contents), HasSubstr("probe 0 is of bucket 1, there are 1"));
  contents.probes = {{.bucket = 0, .inputs = {Ramp({4})}, .outputs = {Ramp({3})}}};
  EXPECT_THAT(error(contents), HasSubstr("input x is float32 [4], the graph takes float32 [3]"));
  contents.probes = {{.bucket = 0, .inputs = {Ramp({3})}, .outputs = {Ramp({3})}, .rtol = kNaN}};
  EXPECT_THAT(error(contents), HasSubstr("tolerances"));
  contents.probes.clear();
  contents.buckets[0].shapes[0].shape = {5};
  EXPECT_THAT(error(contents), HasSubstr("bucket 0: input 0 is x [3]"));
  EXPECT_EQ(code, Code::kInvalidArgument);
  EXPECT_FALSE(FileExists(file.path()));
}

std::string ProbeError(const std::vector<float>& input, const Tensor& expected, double rtol,
                       double atol) {
  PackageContents contents;
  contents.buckets.push_back(
      Bucket(AddGraph(Tensor::FromValues<float>({3}, std::vector<float>(3, 0.0F)))));
  contents.probes = {{.bucket = 0,
                      .inputs = {Tensor::FromValues<float>({3}, input)},
                      .outputs = {expected},
                      .rtol = rtol,
                      .atol = atol}};
  return ErrorOf([&] { CheckProbes(contents, "model.wbl", OpenDevice("cpu:0"), 1); });
}

Tensor Floats(const std::vector<float>& values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(CheckProbes, PassesWithinTheTolerance) {
  EXPECT_EQ(ProbeError({1, kNaN, kInf}, Floats({1, kNaN, kInf}), 0, 0), "no error");
  EXPECT_EQ(ProbeError({101, 0.125F, -99}, Floats({100, 0, -100}), 0.01, 0.125), "no error");
}

TEST(CheckProbes, NamesTheWorstElementWithItsFigures) {
  EXPECT_EQ(ProbeError({1, 2.5F, 4}, Floats({1, 2, 3}), 0.001, 0.0001),
            "model.wbl: probe 0: output Add_out0: 2 of 3 elements differ, worst is element 2: "
            "expected 3, got 4 (rtol 0.001, atol 0.0001)");
}

TEST(CheckProbes, InfinityAndNaNEqualOnlyThemselves) {
  EXPECT_THAT(ProbeError({1, 1, 1}, Floats({1, kInf, 1}), 1, 1),
              HasSubstr("element 1: expected inf, got 1"));
  EXPECT_THAT(ProbeError({1, kInf, 1}, Floats({1, -kInf, 1}), 1, 1),
              HasSubstr("expected -inf, got inf"));
  EXPECT_THAT(ProbeError({9, 1, kNaN}, Floats({0, 1, 1}), 1, 1),
              HasSubstr("element 2: expected 1, got nan"));
  EXPECT_THAT(ProbeError({1, 1, 1}, Floats({1, 1, kNaN}), 1, 1), HasSubstr("expected nan, got 1"));
}

TEST(CheckProbes, TypeAndShapeMustBeEqual) {
  EXPECT_THAT(ProbeError({1, 1, 1}, Floats({1, 1}), 1, 1),
              HasSubstr("expected float32 [2], got float32 [3]"));
  EXPECT_THAT(
      ProbeError({1, 1, 1}, Tensor::FromValues<double>({3}, std::vector<double>{1, 1, 1}), 1, 1),
      HasSubstr("expected float64 [3], got float32 [3]"));
}

}  // namespace
}  // namespace whimbrel
