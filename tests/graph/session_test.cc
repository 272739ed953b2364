// Sessions: one executable for each set of shapes, the oldest dropped first; packages serve their
// buckets.

#include "whimbrel/graph/session.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "tests/graph/model_builder.h"

#include "whimbrel/base/file.h"

namespace whimbrel {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = JoinPath(::testing::TempDir(), "whimbrel-session-XXXXXX");
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ModelBuilder m;
    m.Input("x", {"N", "3"}).Input("z", {"N", "3"}).Constant("w", RandomTensor(Shape{3, 2}, 1));
    m.Node("Add", {"x", "z"}, {"a"})
        .Node("MatMul", {"a", "w"}, {"c"})
        .Node("Relu", {"c"}, {"y"})
        .Output("y");
    imported_ = std::make_unique<Graph>(m.Import());
    Write("model.onnx", m.Bytes());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }
  void Write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  std::unique_ptr<Session> Open(size_t max = 8) const {
    SessionOptions options;
    options.threads = 1;
    options.max_executables = max;
    return Session::Open(Path("model.onnx"), options);
  }
  static std::vector<Shape> Batch(int64_t n) { return {Shape{n, 3}, Shape{n, 3}}; }
  // The model compiled for two batch sizes.
  std::string Package() const {
    PackageContents contents;
    for (int64_t n : {1, 4}) {
      const auto compiled = CompileGraph(*imported_, At({{"x", Shape{n, 3}}}));
      contents.buckets.push_back({.shapes = compiled.shapes, .graph = compiled.graph});
    }
    WritePackage(Path("model.wbl"), contents);
    return Path("model.wbl");
  }

  std::string folder_;
  std::unique_ptr<Graph> imported_;
};

TEST_F(SessionTest, DescribesInputsAndOutputs) {
  const auto session = Open();
  ASSERT_THAT(session->inputs(), SizeIs(2));
  EXPECT_EQ(session->inputs()[0].name, "x");
  EXPECT_EQ(ToString(*session->inputs()[0].dims), "[N, 3]");
  EXPECT_EQ(ToString(*session->outputs()[0].dims), "[N, 2]");
  EXPECT_EQ(session->outputs()[0].dtype, DType::kFloat);
  EXPECT_FALSE(session->is_package());
}

TEST_F(SessionTest, KeepsOneExecutableForEachShape) {
  const auto session = Open();
  Executable& two = session->Prepare(Batch(2));
  Executable& five = session->Prepare(Batch(5));
  EXPECT_NE(&two, &five);
  EXPECT_EQ(&session->Prepare(Batch(2)), &two);
  EXPECT_EQ(&session->Prepare(Batch(5)), &five);
}

TEST_F(SessionTest, DropsTheLeastRecentlyUsedShape) {
  const auto session = Open(2);
  const uint64_t start = session->device().memory().current_bytes;
  Executable& one = session->Prepare(Batch(1));
  const uint64_t each = session->device().memory().current_bytes - start;
  session->Prepare(Batch(2));
  session->Prepare(Batch(1));  // used again: 2 is the oldest now
  session->Prepare(Batch(3));
  EXPECT_EQ(&session->Prepare(Batch(1)), &one);
  for (int64_t n = 4; n < 30; ++n) session->Prepare(Batch(n));
  EXPECT_LE(session->device().memory().current_bytes - start, 16 * (each + 4096));
  const auto tiny = Open(0);  // still serves, keeping one
  const Tensor x = RandomTensor(Shape{2, 3}, 1);
  EXPECT_EQ(tiny->Run({x, x})[0].shape(), (Shape{2, 2}));
}

TEST_F(SessionTest, RunsAnyBatchAndCopiesTheOutputs) {
  const auto session = Open();
  const Graph plain = Compiled(*imported_, false, {{"x", Shape{4, 3}}});
  const std::vector<Tensor> inputs{RandomTensor(Shape{4, 3}, 1), RandomTensor(Shape{4, 3}, 2)};
  const auto out = session->Run(inputs);
  const Tensor kept = CopyPlain(out[0]);
  session->Run({RandomTensor(Shape{4, 3}, 5), RandomTensor(Shape{4, 3}, 6)});
  EXPECT_TRUE(BitEqual(out[0], kept));
  EXPECT_TRUE(Close(out[0], RunNodeByNode(plain, inputs)[0], 1e-5));
}

TEST_F(SessionTest, WrongInputsAreRefusedAndTheSessionGoesOn) {
  const auto session = Open();
  const Tensor x = RandomTensor(Shape{2, 3}, 1);
  EXPECT_THAT(ErrorFrom([&] { session->Run({x}); }).what(),
              HasSubstr("1 inputs given, the model takes 2"));
  EXPECT_THAT(ErrorFrom([&] { session->Run({x, x, x}); }).what(), HasSubstr("3 inputs given"));
  EXPECT_THAT(ErrorFrom([&] {
                session->Run({x, RandomTensor(Shape{3, 3}, 1)});
              }).what(),
              HasSubstr("N is 2 already"));
  EXPECT_THAT(ErrorFrom([&] {
                session->Run({RandomTensor(Shape{2, 4}, 1), x});
              }).what(),
              HasSubstr("dimension 1 is 3 in the model, 4 was given"));
  EXPECT_EQ(ErrorFrom([&] {
              session->Run({Tensor::Host(DType::kInt64, Shape{2, 3}), x});
            }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(session->Run({x, x})[0].shape(), (Shape{2, 2}));
}

TEST_F(SessionTest, DefaultShapesAreSaid) {
  const auto session = Open();
  std::vector<std::string> assumed;
  session->PrepareDefault({}, &assumed);
  EXPECT_THAT(assumed, SizeIs(2));
  assumed.clear();
  Executable& given = session->PrepareDefault({{"z", Shape{6, 3}}}, &assumed);
  EXPECT_THAT(assumed, SizeIs(0));
  EXPECT_EQ(&given, &session->Prepare(Batch(6)));
}

TEST_F(SessionTest, ReferenceKernelsGiveTheSame) {
  SessionOptions options;
  options.only_reference = true;
  const auto reference = Session::Open(Path("model.onnx"), options);
  const std::vector<Tensor> inputs{RandomTensor(Shape{4, 3}, 1), RandomTensor(Shape{4, 3}, 2)};
  EXPECT_TRUE(Close(Open()->Run(inputs)[0], reference->Run(inputs)[0], 1e-5));
  for (const PlanStep& step : reference->Prepare(Batch(4)).steps()) EXPECT_EQ(step.kernel->rank, 0);
}

TEST_F(SessionTest, PackagesServeTheirBucketsOnly) {
  const auto session = Session::Open(Package(), {});
  EXPECT_TRUE(session->is_package());
  EXPECT_EQ(session->imported(), nullptr);
  const std::vector<Tensor> inputs{RandomTensor(Shape{4, 3}, 1), RandomTensor(Shape{4, 3}, 2)};
  EXPECT_TRUE(Close(session->Run(inputs)[0], Open()->Run(inputs)[0], 1e-6));
  const Error other = ErrorFrom([&] { session->Prepare(Batch(2)); });
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  for (const char* word : {"[2, 3]", "x:[1, 3]", "x:[4, 3]"})
    EXPECT_THAT(other.what(), HasSubstr(word));
  EXPECT_EQ(&session->PrepareDefault({}, nullptr), &session->Prepare(Batch(1)));
  EXPECT_EQ(&session->PrepareDefault({{"x", Shape{4, 3}}, {"z", Shape{4, 3}}}, nullptr),
            &session->Prepare(Batch(4)));
  EXPECT_THAT(ErrorFrom([&] {
                session->PrepareDefault({{"nope", Shape{1}}}, nullptr);
              }).what(),
              HasSubstr("no input nope"));
}

TEST_F(SessionTest, FindsTheModelThatAPathMeans) {
  EXPECT_EQ(ResolveModelPath(folder_), Path("model.onnx"));
  EXPECT_EQ(ModelStem(folder_), FileName(folder_));
  EXPECT_EQ(ModelStem(Path("model.onnx")), FileName(folder_));
  EXPECT_EQ(ModelStem(Path("other.onnx")), "other");
  Write("one/only.onnx", "x");
  EXPECT_EQ(ResolveModelPath(Path("one")), Path("one/only.onnx"));
  Write("one/second.onnx", "x");
  EXPECT_EQ(ErrorFrom([&] { ResolveModelPath(Path("one")); }).code(), Code::kNotFound);
  EXPECT_EQ(ErrorFrom([&] { ResolveModelPath(Path("none")); }).code(), Code::kNotFound);
  EXPECT_EQ(ErrorFrom([&] { Session::Open(Path("one/only.onnx"), {}); }).code(),
            Code::kInvalidData);
}

TEST_F(SessionTest, UnknownDevicesAreRefused) {
  SessionOptions options;
  options.device = "cpu:99";
  EXPECT_EQ(ErrorFrom([&] { Session::Open(Path("model.onnx"), options); }).code(), Code::kNotFound);
}

}  // namespace
}  // namespace whimbrel
