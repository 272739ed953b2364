// Executables: no allocation after warm-up, copies counted one by one, outputs that stay, dynamic
// steps, branches.

#include "whimbrel/graph/executable.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>

#include "tests/graph/model_builder.h"

#include "whimbrel/base/file.h"

// Counts every allocation of the process while `counting`, whichever thread makes it. oneDNN puts
// the arguments of each primitive into a small map of its own at every execution; those are told
// apart by their caller.
namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> own_count{0};
std::atomic<uint64_t> onednn_count{0};

void* Counted(size_t bytes, size_t alignment, void* caller) {
  if (counting.load(std::memory_order_relaxed)) {
    Dl_info info{};
    const bool onednn = dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
                        std::strstr(info.dli_fname, "libdnnl") != nullptr;
    (onednn ? onednn_count : own_count).fetch_add(1, std::memory_order_relaxed);
  }
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(bytes == 0 ? 1 : bytes)
                : std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

template <typename F>
uint64_t OwnAllocations(F action) {
  own_count = 0;
  counting = true;
  action();
  counting = false;
  return own_count.load();
}
}  // namespace

void* operator new(size_t bytes) {
  return Counted(bytes, 1, __builtin_return_address(0));
}
void* operator new[](size_t bytes) {
  return Counted(bytes, 1, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t a) {
  return Counted(bytes, static_cast<size_t>(a), __builtin_return_address(0));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return Counted(bytes, static_cast<size_t>(a), __builtin_return_address(0));
}
// The forms that do not throw end here too: a sanitizer minds memory of one family freed by another.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace whimbrel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Graph> Shared(const Graph& graph) {
  return std::make_shared<const Graph>(CloneGraph(graph));
}

std::vector<Tensor> InputsOf(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (ValueId id : graph.inputs) {
    const ValueInfo& info = graph.value(id).info;
    if (info.dtype == DType::kFloat) {
      inputs.push_back(RandomTensor(ToShape(*info.dims), 3));
    } else {
      Tensor t = Tensor::Host(info.dtype, ToShape(*info.dims));
      std::fill_n(static_cast<char*>(t.raw()), t.bytes(), char{0});
      inputs.push_back(t);
    }
  }
  return inputs;
}

struct StaticModel {
  std::string path;
  Shape shape;
};

// Models of others where the cache has them, and one of the repository.
std::vector<StaticModel> StaticFloatModels() {
  std::vector<StaticModel> found;
  const char* cache = std::getenv("WHIMBREL_CACHE");
  const char* home = std::getenv("HOME");
  const std::string root = cache != nullptr  ? cache
                           : home != nullptr ? std::string(home) + "/.cache/whimbrel"
                                             : "";
  for (const auto& [name, shape] : {std::pair("mtcnn_rnet", Shape{2, 24, 24, 3}),
                                    std::pair("ppocr_cls", Shape{1, 3, 48, 192})}) {
    const std::string path = root + "/models/" + name + "/model.onnx";
    if (FileExists(path)) found.push_back({path, shape});
  }
  found.push_back(
      {std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx", Shape{1, 24, 24, 3}});
  return found;
}

TEST(Executable, ARunAllocatesNothingAfterWarmUp) {
  for (const StaticModel& model : StaticFloatModels()) {
    SCOPED_TRACE(model.path);
    const Graph imported = ImportOnnx(model.path);
    const auto compiled =
        CompileGraph(imported, At({{imported.value(imported.inputs[0]).name, model.shape}}));
    const auto device = OpenDevice("cpu:0");
    for (int threads : {1, 2}) {
      Executable executable(compiled.graph, device, {});
      const auto stream = device->CreateStream({.threads = threads});
      const auto inputs = InputsOf(*compiled.graph);
      for (int i = 0; i < 3; ++i) executable.Run(*stream, inputs);
      const uint64_t pool = device->memory().allocations;
      const uint64_t own = OwnAllocations([&] {
        for (int i = 0; i < 5; ++i) executable.Run(*stream, inputs);
      });
      EXPECT_EQ(own, 0U) << threads << " threads";
      EXPECT_EQ(device->memory().allocations - pool, 0U);
    }
  }
}

// One node of each kind that the models above lack.
ModelBuilder ManyOps() {
  ModelBuilder m;
  m.Input("x", {"2", "4", "6", "8"})
      .Floats("scales", Shape{4}, {1, 1, 2, 2})
      .Ints("b", {1})
      .Ints("e", {4})
      .Ints("a", {2})
      .Ints("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  m.Constant("k", RandomTensor(Shape{8, 3}, 1))
      .Ints("big", {2, 4, 6, 8})
      .Constant("rows", Tensor::FromValues(Shape{2}, std::vector<int64_t>{2, 0}));
  m.Node("Transpose", {"x"}, {"t"}, {AttrInts("perm", {0, 3, 2, 1})})
      .Node("Resize", {"x", "", "scales"}, {"up"}, {AttrString("mode", "linear")});
  m.Node("Slice", {"x", "b", "e", "a"}, {"sl"})
      .Node("Pad", {"x", "pads"}, {"pd"})
      .Node("MatMul", {"x", "k"}, {"mm"})
      .Node("Softmax", {"mm"}, {"sm"});
  m.Node("ReduceMean", {"x"}, {"rm"}, {AttrInts("axes", {1, 3}), AttrInt("keepdims", 1)})
      .Node("Sub", {"x", "rm"}, {"cen"})
      .Node("Concat", {"x", "cen"}, {"cc"}, {AttrInt("axis", 1)});
  m.Node("MaxPool", {"cc"}, {"mp"}, {AttrInts("kernel_shape", {2, 2})})
      .Node("AveragePool", {"cc"}, {"ap"}, {AttrInts("kernel_shape", {2, 2})})
      .Node("GlobalAveragePool", {"cc"}, {"ga"});
  m.Node("Gather", {"x", "rows"}, {"gt"}, {AttrInt("axis", 2)})
      .Node("Expand", {"rm", "big"}, {"ex"})
      .Node("Split", {"x"}, {"s1", "s2"}, {AttrInt("axis", 1)});
  m.Node("Where", {"mask", "x", "cen"}, {"wh"})
      .Node("LeakyRelu", {"s2"}, {"lr"})
      .Node("Cast", {"x"}, {"ca"}, {AttrInt("to", 10)});
  m.Input("mask", {"1", "1", "6", "8"}, DType::kBool);
  for (const char* name :
       {"t", "up", "sl", "pd", "sm", "mp", "ap", "ga", "gt", "ex", "s1", "lr", "wh"})
    m.Output(name);
  m.Output("ca", DType::kFloat16);
  return m;
}

TEST(Executable, NoKernelOfACommonOpAllocates) {
  const Graph g = Compiled(ManyOps().Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const auto inputs = InputsOf(g);
  executable.BindInputs(inputs);
  for (int i = 0; i < 2; ++i) executable.Run(*stream, inputs);
  for (size_t s = 0; s < executable.steps().size(); ++s) {
    const PlanStep& step = executable.steps()[s];
    EXPECT_EQ(OwnAllocations([&] { executable.RunStep(s, *stream); }), 0U)
        << step.schema->name << ", kernel " << step.kernel->name;
  }
}

TEST(Executable, WeightsAreNeverCopiedAfterLoad) {
  const std::string path = std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx";
  const Graph imported = ImportOnnx(path);
  const auto compiled = CompileGraph(imported, {});
  const auto device = OpenDevice("cpu:0");
  const auto stream = OneThread();
  Executable executable(compiled.graph, device, {});
  const auto inputs = InputsOf(*compiled.graph);
  const CopyStats before = device->copies();
  for (int i = 0; i < 4; ++i) executable.Run(*stream, inputs);
  const CopyStats after = device->copies();
  EXPECT_EQ(after.copies, before.copies);
  EXPECT_EQ(after.host_to_device_bytes, before.host_to_device_bytes);
  EXPECT_EQ(after.alignment_bytes, before.alignment_bytes);
}

ModelBuilder AddExp() {
  ModelBuilder m;
  m.Input("x", {"4", "5"})
      .Input("z", {"5"})
      .Node("Add", {"x", "z"}, {"a"})
      .Node("Exp", {"a"}, {"y"})
      .Output("y")
      .Output("a");
  return m;
}

TEST(Executable, AMisalignedInputIsOneCountedCopyAndOneLine) {
  const Graph g = Compiled(AddExp().Import());
  const auto device = OpenDevice("cpu:0");
  const auto stream = OneThread();
  Executable executable(Shared(g), device, {});
  const Tensor room = RandomTensor(Shape{24}, 1);
  std::vector<Tensor> inputs{Tensor(DType::kFloat, Shape{4, 5}, room.buffer(), 4),
                             RandomTensor(Shape{5}, 2)};
  const CopyStats before = device->copies();
  executable.Run(*stream, inputs);
  CopyStats after = device->copies();
  EXPECT_EQ(after.copies - before.copies, 1U);
  EXPECT_EQ(after.alignment_bytes - before.alignment_bytes, 80U);
  ASSERT_THAT(executable.advice(), SizeIs(1));
  EXPECT_THAT(executable.advice()[0], HasSubstr("input x: 80 bytes"));
  EXPECT_FLOAT_EQ(executable.output(0).data<float>()[7],
                  std::exp(room.data<float>()[8] + inputs[1].data<float>()[2]));
  executable.Run(*stream, inputs);
  EXPECT_EQ(device->copies().alignment_bytes - after.alignment_bytes, 80U);  // once a run
  EXPECT_THAT(executable.advice(), SizeIs(1));                               // said once

  after = device->copies();
  Executable other(Shared(g), device, {});
  inputs[0] = RandomTensor(Shape{4, 5}, 1);
  other.Run(*stream, inputs);
  EXPECT_EQ(device->copies().copies, after.copies);
  EXPECT_THAT(other.advice(), IsEmpty());
}

TEST(Executable, AStagedInputThatIsAnOutputLivesToTheEnd) {
  ModelBuilder m;
  m.Input("x", {"64"})
      .Node("Neg", {"x"}, {"a"})
      .Node("Softmax", {"a"}, {"b"})
      .Node("Softmax", {"b"}, {"c"})
      .Node("Softmax", {"c"}, {"y"})
      .Output("y")
      .Output("x");
  const Graph g = Compiled(m.Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const Tensor room = RandomTensor(Shape{65}, 1);
  const auto stream = OneThread();
  const std::vector<Tensor> inputs{Tensor(DType::kFloat, Shape{64}, room.buffer(), 4)};
  executable.Run(*stream, inputs);
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(executable.output(1).data<float>()[i], room.data<float>()[i + 1]);
}

TEST(Executable, WrongInputsAreRefusedByName) {
  const Graph g = Compiled(AddExp().Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const Tensor x = RandomTensor(Shape{4, 5}, 1);
  const Tensor z = RandomTensor(Shape{5}, 2);
  const auto error = [&](const std::vector<Tensor>& inputs) {
    const Error e = ErrorFrom([&] { executable.Run(*stream, inputs); });
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return std::string(e.what());
  };
  EXPECT_THAT(error({x}), HasSubstr("1 inputs given, the model takes 2"));
  EXPECT_THAT(error({x, z, z}), HasSubstr("3 inputs given"));
  EXPECT_THAT(error({x, Tensor()}), HasSubstr("input z is missing"));
  EXPECT_THAT(error({x, RandomTensor(Shape{4}, 1)}),
              HasSubstr("input z: expected float32[5], got float32[4]"));
  EXPECT_THAT(error({Tensor::Host(DType::kDouble, Shape{4, 5}), z}),
              HasSubstr("expected float32[4, 5], got float64[4, 5]"));
  EXPECT_THAT(error({x, z.Reshaped(Shape{1, 5})}), HasSubstr("input z"));
  const Tensor room = Tensor::Host(DType::kFloat, Shape{4, 5, 1});
  EXPECT_THAT(error({room.WithLayout(Shape{4, 5, 1}, Layout::kChannelsLast), z}),
              HasSubstr("input x"));
  executable.Run(*stream, std::vector<Tensor>{x, z});  // and goes on
}

TEST(Executable, OutputsStayUntilTheNextRun) {
  const Graph g = Compiled(AddExp().Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  {
    const std::vector<Tensor> inputs{RandomTensor(Shape{4, 5}, 1), RandomTensor(Shape{5}, 2)};
    executable.Run(*stream, inputs);
  }
  const Tensor y = CopyPlain(executable.output(0));
  const Tensor a = CopyPlain(executable.output(1));
  std::vector<Tensor> noise;
  for (int i = 0; i < 20; ++i) noise.push_back(RandomTensor(Shape{4, 5}, 9));
  EXPECT_TRUE(BitEqual(executable.output(0), y));
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(y.data<float>()[i], std::exp(a.data<float>()[i]), 1e-5);
}

TEST(Executable, ExecutablesOfOneGraphDoNotDisturbEachOther) {
  const Graph g = Compiled(AddExp().Import());
  const auto shared = Shared(g);
  Executable one(shared, OpenDevice("cpu:0"), {});
  Executable two(shared, OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const std::vector<Tensor> a{RandomTensor(Shape{4, 5}, 1), RandomTensor(Shape{5}, 2)};
  const std::vector<Tensor> b{RandomTensor(Shape{4, 5}, 3), RandomTensor(Shape{5}, 4)};
  one.Run(*stream, a);
  const Tensor first = CopyPlain(one.output(0));
  two.Run(*stream, b);
  EXPECT_TRUE(BitEqual(one.output(0), first));
}

TEST(Executable, MemoryFiguresAddUp) {
  const auto compiled = CompileGraph(
      ImportOnnx(std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx"), {});
  Executable executable(compiled.graph, OpenDevice("cpu:0"), {});
  const ExecutableMemory m = executable.memory();
  EXPECT_EQ(m.arena_bytes, executable.plan().memory.arena_bytes);
  EXPECT_GT(m.constant_bytes, 100000U);
  EXPECT_LT(m.constant_bytes, 2000000U);
}

TEST(Executable, TooMuchMemoryIsAnErrorWithTheFigures) {
  const auto device = OpenDevice("cpu:0");
  ModelBuilder m;
  m.Input("x", {"1000", "1"})
      .Input("z", {"1", "5000"})
      .Node("Add", {"x", "z"}, {"a"})
      .Node("Softmax", {"a"}, {"y"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  device->SetMemoryLimit(device->memory().current_bytes + 1000000);
  const Error e = ErrorFrom([&] { Executable(Shared(g), device, {}); });
  device->SetMemoryLimit(0);
  EXPECT_EQ(e.code(), Code::kOutOfMemory);
  EXPECT_THAT(e.what(), HasSubstr("arena of "));
}

// boxes -> NMS -> its count and indices, used by what follows.
ModelBuilder Nms() {
  ModelBuilder m;
  m.Input("boxes", {"1", "4", "4"})
      .Input("scores", {"1", "1", "4"})
      .Constant("max", Tensor::Scalar(int64_t{10}))
      .Constant("iou", Tensor::Scalar(0.5F))
      .Constant("thr", Tensor::Scalar(0.3F));
  m.Ints("axes", {0}).Ints("two", {2}).Ints("minus", {-1}).Floats("zero", Shape{1}, {0});
  m.Node("NonMaxSuppression", {"boxes", "scores", "max", "iou", "thr"}, {"sel"});
  m.Node("Shape", {"sel"}, {"dims"})
      .Node("Cast", {"dims"}, {"fdims"}, {AttrInt("to", 1)})
      .Node("Unsqueeze", {"fdims", "axes"}, {"view"})
      .Node("Neg", {"view"}, {"neg"});
  m.Node("Gather", {"sel", "two"}, {"idx"}, {AttrInt("axis", 1)})
      .Node("Reshape", {"idx", "minus"}, {"flat"})
      .Node("Cast", {"flat"}, {"f"}, {AttrInt("to", 1)});
  m.Node("Concat", {"f", "zero"}, {"cat"}, {AttrInt("axis", 0)})
      .Node("ReduceMax", {"cat"}, {"top"}, {AttrInts("axes", {0}), AttrInt("keepdims", 1)});
  m.Output("sel", DType::kInt64).Output("neg").Output("top").Output("f");
  return m;
}

TEST(Executable, StepsWithShapesKnownAtRunTimeOnly) {
  const Graph g = Compiled(Nms().Import());
  for (bool reference : {false, true}) {
    Executable executable(Shared(g), OpenDevice("cpu:0"), {.only_reference = reference});
    const auto stream = OneThread();
    const Tensor boxes = Tensor::FromValues(
        Shape{1, 4, 4}, std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1.1F, 3, 3, 4, 4, 6, 6, 7, 7});
    for (int round = 0; round < 3; ++round) {
      // 3 boxes remain, then none, then 1.
      const std::vector<std::vector<float>> scores{
          {0.9F, 0.8F, 0.7F, 0.6F}, {0, 0, 0, 0}, {0, 0, 0, 0.9F}};
      const std::vector<int64_t> counts{3, 0, 1};
      const auto r = static_cast<size_t>(round);
      executable.Run(*stream,
                     std::vector<Tensor>{boxes, Tensor::FromValues(Shape{1, 1, 4}, scores[r])});
      EXPECT_EQ(executable.output(0).shape(), (Shape{counts[r], 3}));
      EXPECT_THAT(executable.output(1).values<float>(),
                  ElementsAre(-static_cast<float>(counts[r]), -3));
      EXPECT_THAT(executable.output(2).values<float>(), ElementsAre(counts[r] == 0 ? 0 : 3));
      EXPECT_EQ(executable.output(3).shape(), (Shape{counts[r]}));
    }
  }
}

TEST(Executable, KnownOutputsOfDynamicStepsMayBeConvolved) {
  // sel has an open dim; what Slice-free reduction gives of it is static and goes into a
  // channels-last kernel.
  ModelBuilder m = Nms();
  m.proto().mutable_graph()->clear_output();
  m.Ints("image", {1, 1, 1, 1})
      .Constant("w", RandomTensor(Shape{4, 1, 1, 1}, 1))
      .Node("Reshape", {"top", "image"}, {"r"});
  m.Node("Conv", {"r", "w"}, {"c"}).Node("Relu", {"c"}, {"y"}).Output("y");
  const Graph g = Compiled(m.Import());
  const Tensor boxes = Tensor::FromValues(
      Shape{1, 4, 4}, std::vector<float>{0, 0, 1, 1, 0, 0, 1, 1.1F, 3, 3, 4, 4, 6, 6, 7, 7});
  const std::vector<Tensor> inputs{
      boxes, Tensor::FromValues(Shape{1, 1, 4}, std::vector<float>{0, 0, 0.5F, 0})};
  EXPECT_TRUE(
      Close(RunPlan(g, inputs)[0], RunNodeByNode(Compiled(m.Import(), false), inputs)[0], 1e-5));
}

TEST(Executable, ManyDynamicRunsDoNotGrow) {
  const Graph g = Compiled(Nms().Import());
  const auto device = OpenDevice("cpu:0");
  Executable executable(Shared(g), device, {});
  const auto stream = OneThread();
  const std::vector<Tensor> inputs = InputsOf(g);
  executable.Run(*stream, inputs);
  const uint64_t before = device->memory().current_bytes;
  for (int i = 0; i < 200; ++i) executable.Run(*stream, inputs);
  EXPECT_EQ(device->memory().current_bytes, before);
}

// Outputs of the two branches differ in shape: what follows is dynamic.
ModelBuilder UnevenIf() {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool)
      .Input("x", {"4", "3"})
      .Ints("b", {1})
      .Ints("e", {2})
      .Node("Neg", {"x"}, {"n"});
  const auto then_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Exp", {"n"}, {"t"}).Output("t"); });
  const auto else_branch = BranchOf([](GraphBuilder& g) {
    g.Node("Slice", {"n", "b", "e"}, {"s"}).Node("Tanh", {"s"}, {"u"}).Output("u");
  });
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)});
  m.Node("ReduceSum", {"y"}, {"sum"}, {AttrInt("keepdims", 0)}).Output("y").Output("sum");
  return m;
}

TEST(Executable, BranchesOfDifferentShapes) {
  const Graph g = Compiled(UnevenIf().Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const Tensor x = RandomTensor(Shape{4, 3}, 1);
  for (bool c : {true, false, true, true, false}) {
    executable.Run(*stream, std::vector<Tensor>{Tensor::Scalar(c), x});
    const Tensor& y = executable.output(0);
    EXPECT_EQ(y.shape(), (c ? Shape{4, 3} : Shape{1, 3}));
    EXPECT_NEAR(y.data<float>()[1],
                c ? std::exp(-x.data<float>()[1]) : std::tanh(-x.data<float>()[4]), 1e-5);
    double sum = 0;
    for (float v : y.values<float>()) sum += v;
    EXPECT_NEAR(executable.output(1).data<float>()[0], sum, 1e-4);
  }
}

TEST(Executable, EqualBranchesAreStaticAndAllocateNothing) {
  ModelBuilder m;
  m.Input("c", std::vector<std::string>{}, DType::kBool)
      .Input("x", {"4", "3"})
      .Node("Neg", {"x"}, {"n"});
  const auto then_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Exp", {"n"}, {"t"}).Output("t"); });
  const auto else_branch = BranchOf([](GraphBuilder& g) { g.Output("n"); });
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)})
      .Node("Neg", {"y"}, {"z"})
      .Output("z")
      .Output("n");
  const Graph g = Compiled(m.Import());
  const auto device = OpenDevice("cpu:0");
  Executable executable(Shared(g), device, {});
  const auto stream = OneThread();
  const Tensor x = RandomTensor(Shape{4, 3}, 1);
  const std::vector<Tensor> yes{Tensor::Scalar(true), x};
  const std::vector<Tensor> no{Tensor::Scalar(false), x};
  for (int i = 0; i < 2; ++i) {
    executable.Run(*stream, yes);
    executable.Run(*stream, no);
  }
  const uint64_t pool = device->memory().allocations;
  EXPECT_EQ(OwnAllocations([&] { executable.Run(*stream, yes); }), 0U);
  EXPECT_EQ(device->memory().allocations, pool);
  EXPECT_NEAR(executable.output(0).data<float>()[5], -std::exp(-x.data<float>()[5]), 1e-5);
  executable.Run(*stream, no);
  EXPECT_FLOAT_EQ(executable.output(0).data<float>()[5], x.data<float>()[5]);
}

TEST(Executable, RunStepOnGivesPlainTensors) {
  ModelBuilder m;
  m.Input("x", {"1", "4", "6", "6"})
      .Constant("w", RandomTensor(Shape{8, 4, 3, 3}, 1))
      .Node("Conv", {"x", "w"}, {"c"})
      .Node("Relu", {"c"}, {"y"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const Tensor x = RandomTensor(Shape{1, 4, 6, 6}, 2);
  executable.Run(*stream, std::vector<Tensor>{x});
  for (size_t s = 0; s < executable.steps().size(); ++s) {
    if (executable.steps()[s].node < 0) continue;
    const auto out = executable.RunStepOn(s, std::vector<Tensor>{x, Tensor()}, *stream);
    EXPECT_TRUE(Close(out[0], CopyPlain(executable.output(0)), 1e-6));
  }
}

class Recorder final : public StepObserver {
 public:
  void Before(size_t step) override { order.push_back(static_cast<int>(step)); }
  void After(size_t step) override { order.push_back(-static_cast<int>(step)); }
  std::vector<int> order;
};

TEST(Executable, ObserversSeeEveryStep) {
  const Graph g = Compiled(AddExp().Import(), false);
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  Recorder recorder;
  executable.SetObserver(&recorder);
  const auto stream = OneThread();
  executable.Run(*stream,
                 std::vector<Tensor>{RandomTensor(Shape{4, 5}, 1), RandomTensor(Shape{5}, 2)});
  EXPECT_THAT(recorder.order, ElementsAre(0, 0, 1, -1));
}

TEST(Executable, EmptyTensorsRun) {
  ModelBuilder m;
  m.Input("x", {"N", "3"})
      .Constant("w", RandomTensor(Shape{3, 2}, 1))
      .Node("MatMul", {"x", "w"}, {"c"})
      .Node("Relu", {"c"}, {"r"})
      .Node("Exp", {"r"}, {"y"})
      .Output("y");
  const auto out =
      RunPlan(Compiled(m.Import(), true, {{"x", Shape{0, 3}}}), {RandomTensor(Shape{0, 3}, 1)});
  EXPECT_EQ(out[0].shape(), (Shape{0, 2}));
}

TEST(Executable, AKernelsErrorReachesTheCallerAndTheNextRunWorks) {
  ModelBuilder m;
  m.Input("x", {"4"})
      .Input("i", {"2"}, DType::kInt64)
      .Node("Gather", {"x", "i"}, {"y"})
      .Output("y");
  const Graph g = Compiled(m.Import());
  Executable executable(Shared(g), OpenDevice("cpu:0"), {});
  const auto stream = OneThread();
  const Tensor x = RandomTensor(Shape{4}, 1);
  EXPECT_THROW(
      executable.Run(*stream, std::vector<Tensor>{x, Tensor::FromValues(
                                                         Shape{2}, std::vector<int64_t>{0, 9})}),
      Error);
  executable.Run(*stream,
                 std::vector<Tensor>{x, Tensor::FromValues(Shape{2}, std::vector<int64_t>{3, -1})});
  EXPECT_EQ(executable.output(0).data<float>()[1], x.data<float>()[3]);
}

}  // namespace
}  // namespace whimbrel
