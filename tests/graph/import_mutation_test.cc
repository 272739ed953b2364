// Mutated models: import, inference, compilation and one run answer with Error or succeed, in
// bounded time and memory.

#include <chrono>
#include <fstream>
#include <iterator>
#include <sys/resource.h>

#include "tests/graph/model_builder.h"

#include "whimbrel/base/file.h"

namespace whimbrel {
namespace {

// Models that claim more than this are compiled but not run.
constexpr size_t kMaxRunBytes = size_t{64} << 20;

size_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

double FlopsOf(const Plan& plan) {
  double flops = 0;
  for (const PlanStep& step : plan.steps) flops += step.cost.flops;
  return flops;
}

// True when the model went all the way.
bool Drive(const std::string& bytes, const std::string& directory) {
  try {
    const Graph imported = ImportOnnxBytes(std::as_bytes(std::span(bytes)), "mutant", directory);
    Graph inferred = CloneGraph(imported);
    InferGraph(inferred);
    const auto compiled = CompileGraph(imported, {});
    const Plan plan = MakePlan(*compiled.graph, {});
    if (plan.memory.arena_bytes > kMaxRunBytes || FlopsOf(plan) > 1e9) return false;
    std::vector<Tensor> inputs;
    for (ValueId id : compiled.graph->inputs) {
      const ValueInfo& info = compiled.graph->value(id).info;
      const Shape shape = ToShape(*info.dims);
      if (static_cast<size_t>(shape.elements()) > kMaxRunBytes / 8) return false;
      Tensor t = Tensor::Host(info.dtype, shape);
      if (t.bytes() > 0) std::fill_n(static_cast<char*>(t.raw()), t.bytes(), char{0});
      inputs.push_back(std::move(t));
    }
    RunPlan(*compiled.graph, inputs);
    return true;
  } catch (const Error& e) {
    // What a file can cause has a code of its own.
    EXPECT_NE(e.code(), Code::kInternal) << e.what();
    return false;
  }
}

std::string Mutant(const std::string& bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string m = bytes;
  switch (seed % 5) {
    case 0:
      m.resize(random() % bytes.size());
      break;
    case 1:  // a piece twice
      m.insert(random() % m.size(), bytes.substr(random() % bytes.size(), random() % 200));
      break;
    case 2:  // a piece gone
      m.erase(random() % m.size(), random() % 64);
      break;
    default:  // few bytes changed; weights take most of the file, so half of them go to its ends
      for (unsigned i = 0; i <= random() % 4; ++i) {
        const size_t edge = std::min<size_t>(m.size(), 4000);
        size_t at = random() % m.size();
        if (random() % 2 == 0)
          at = random() % 2 == 0 ? random() % edge : m.size() - 1 - random() % edge;
        m[at] = random() % 3 == 0 ? static_cast<char>(m[at] ^ (1 << (random() % 8)))
                                  : static_cast<char>(random());
      }
  }
  return m;
}

void MutateModel(const std::string& name, int rounds) {
  const std::string directory = std::string(WHIMBREL_TEST_DATA) + "/derived/" + name;
  const std::string bytes = ReadTextFile(directory + "/model.onnx");
  ASSERT_TRUE(Drive(bytes, directory)) << "the model itself must run";
  const auto start = std::chrono::steady_clock::now();
  int ran = 0;
  for (int i = 0; i < rounds; ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    const auto before = std::chrono::steady_clock::now();
    ran += Drive(Mutant(bytes, static_cast<uint32_t>(i)), directory) ? 1 : 0;
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  }
  ::testing::Test::RecordProperty("ran", ran);
  ::testing::Test::RecordProperty(
      "seconds",
      static_cast<int>(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
  EXPECT_LT(PeakResidentBytes(), size_t{4} << 30);
}

TEST(Mutation, ExternalDataModelNeverCrashes) {
  MutateModel("rnet_extdata", static_cast<int>(Rounds(250)));
}
TEST(Mutation, NmsTailNeverCrashes) {
  MutateModel("yolox_tail_nms", static_cast<int>(Rounds(250)));
}

// Single fields of a small model with control flow set to odd values: reaches deeper than flipped
// bytes.
TEST(Mutation, OddFieldsNeverCrash) {
  ModelBuilder m;
  m.Input("x", {"2", "3", "8", "8"}).Input("c", std::vector<std::string>{}, DType::kBool);
  m.Constant("w", RandomTensor(Shape{4, 3, 3, 3}, 1))
      .Ints("shape", {2, -1})
      .Floats("scales", Shape{4}, {1, 1, 2, 2});
  m.Node("Conv", {"x", "w"}, {"conv"},
         {AttrInts("pads", {1, 1, 1, 1}), AttrInts("strides", {1, 1}), AttrInt("group", 1),
          AttrInts("dilations", {1, 1})});
  m.Node("Resize", {"conv", "", "scales"}, {"up"}, {AttrString("mode", "linear")});
  m.Node("Reshape", {"up", "shape"}, {"flat"}).Node("Shape", {"flat"}, {"dims"});
  const auto then_branch =
      BranchOf([](GraphBuilder& g) { g.Node("Relu", {"flat"}, {"t"}).Output("t"); });
  const auto else_branch = BranchOf([](GraphBuilder& g) {
    g.Node("Softmax", {"flat"}, {"e"}, {AttrInt("axis", -1)}).Output("e");
  });
  m.Node("If", {"c"}, {"y"},
         {AttrGraph("then_branch", then_branch), AttrGraph("else_branch", else_branch)});
  m.Node("Concat", {"y", "flat"}, {"z"}, {AttrInt("axis", 1)})
      .Node("MaxPool", {"conv"}, {"p"}, {AttrInts("kernel_shape", {2, 2})});
  m.Output("z").Output("p").Output("dims", DType::kInt64);
  ASSERT_TRUE(Drive(m.Bytes(), ""));
  constexpr std::array<int64_t, 14> kOdd{0,
                                         -1,
                                         -2,
                                         1,
                                         2,
                                         7,
                                         64,
                                         1000,
                                         INT32_MAX,
                                         INT32_MIN,
                                         INT64_MAX,
                                         INT64_MIN,
                                         int64_t{1} << 40,
                                         int64_t{1} << 62};
  std::mt19937 random(3);
  for (int round = 0; round < static_cast<int>(Rounds(1500)); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    onnx::ModelProto mutant = m.proto();
    auto* g = mutant.mutable_graph();
    const int64_t odd = kOdd[random() % kOdd.size()];
    auto* node = g->mutable_node(static_cast<int>(random() % g->node_size()));
    switch (random() % 8) {
      case 0:
        g->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(static_cast<int>(random() % 4))
            ->set_dim_value(odd);
        break;
      case 1:
        g->mutable_input(static_cast<int>(random() % 2))
            ->mutable_type()
            ->mutable_tensor_type()
            ->set_elem_type(static_cast<int>(random() % 18));
        break;
      case 2:
        if (node->attribute_size() > 0) {
          auto* a = node->mutable_attribute(static_cast<int>(random() % node->attribute_size()));
          if (a->ints_size() > 0)
            a->set_ints(static_cast<int>(random() % a->ints_size()), odd);
          else if (a->has_i())
            a->set_i(odd);
        }
        break;
      case 3:
        if (node->attribute_size() > 0) {
          auto* a = node->mutable_attribute(static_cast<int>(random() % node->attribute_size()));
          if (random() % 2 == 0)
            a->add_ints(odd);
          else
            a->clear_ints();
        }
        break;
      case 4:
        *g->mutable_initializer(1) = ToProto(
            "shape",
            Tensor::FromValues(Shape{2}, std::vector<int64_t>{odd, kOdd[random() % kOdd.size()]}));
        break;
      case 5:
        *g->mutable_initializer(2) = ToProto(
            "scales",
            Tensor::FromValues(Shape{4}, std::vector<float>{1, 1, static_cast<float>(odd), 2}));
        break;
      case 6:
        if (node->input_size() > 0)
          node->set_input(static_cast<int>(random() % node->input_size()),
                          std::array<const char*, 8>{"x", "w", "shape", "c", "flat", "conv", "",
                                                     "scales"}[random() % 8]);
        break;
      default:
        mutant.mutable_opset_import(0)->set_version(static_cast<int64_t>(random() % 25));
    }
    Drive(mutant.SerializeAsString(), "");
  }
  EXPECT_LT(PeakResidentBytes(), size_t{4} << 30);
}

}  // namespace
}  // namespace whimbrel
