// Field reports of the sections on import, ops, NMS and gather: the exact inputs, through import,
// plan and run.

#include <optional>

#include "tests/graph/model_builder.h"

namespace whimbrel {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> Ramp(int from, int count, float step = 1) {
  std::vector<float> v;
  for (int i = 0; i < count; ++i) v.push_back(static_cast<float>(from + i) * step);
  return v;
}

// Folding would compute constant graphs before the plan does; inputs keep the plan busy. Both kinds
// of kernels must give the same.
std::vector<Tensor> RunBoth(const ModelBuilder& m, const std::vector<Tensor>& inputs) {
  const Graph imported = m.Import();
  const auto fast = RunPlan(Compiled(imported), inputs);
  const auto reference = RunPlan(Compiled(imported, false), inputs, true);
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_TRUE(Close(fast[i], reference[i], 1e-5));
  return fast;
}

std::vector<float> Values(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}
std::vector<float> Part(const Tensor& t, size_t begin, size_t end) {
  const auto v = Values(t);
  return {v.begin() + static_cast<ptrdiff_t>(begin), v.begin() + static_cast<ptrdiff_t>(end)};
}

#define EXPECT_VALUES(tensor, tolerance, ...)                             \
  EXPECT_THAT(tensor, Pointwise(FloatNear(static_cast<float>(tolerance)), \
                                std::vector<float>(__VA_ARGS__)))

TEST(Reports, Row01SoftmaxMeansWhatItsOpsetSays) {
  const Tensor x = Tensor::FromValues(Shape{2, 3, 4}, Ramp(0, 24, 0.1F));
  for (int opset : {11, 13}) {
    ModelBuilder m(opset);
    m.Input("x", {"2", "3", "4"}).Node("Softmax", {"x"}, {"y"}).Output("y");
    const Tensor y = RunBoth(m, {x})[0];
    const std::vector<float> expected =
        opset == 11 ? std::vector<float>{.04533F, .05010F, .05537F, .06119F}
                    : std::vector<float>{.21384F, .23633F, .26118F, .28865F};
    EXPECT_VALUES(Part(y, 0, 4), 1e-5, expected);
    double sum = 0;
    for (float v : Part(y, 0, 12)) sum += v;
    EXPECT_NEAR(sum, opset == 11 ? 1 : 3, 1e-5);
  }
}

TEST(Reports, Row02NearestResizeTakesTheExactPixel) {
  const Tensor x = Tensor::FromValues(Shape{1, 1, 1, 26}, Ramp(0, 26));
  ModelBuilder a(13);
  a.Input("x", {"1", "1", "1", "26"})
      .Floats("s", Shape{4}, {1, 1, 1, 64.0F / 26})
      .Node("Resize", {"x", "", "s"}, {"y"},
            {AttrString("mode", "nearest"),
             AttrString("coordinate_transformation_mode", "half_pixel"),
             AttrString("nearest_mode", "round_prefer_ceil")})
      .Output("y");
  const Tensor ya = RunBoth(a, {x})[0];
  EXPECT_EQ(ya.shape(), (Shape{1, 1, 1, 64}));
  EXPECT_THAT(Part(ya, 28, 36), ElementsAre(11, 11, 12, 12, 13, 13, 14, 14));
  ModelBuilder b(13);
  b.Input("x", {"1", "1", "1", "26"})
      .Ints("n", {1, 1, 1, 64})
      .Node("Resize", {"x", "", "", "n"}, {"y"},
            {AttrString("mode", "nearest"),
             AttrString("coordinate_transformation_mode", "asymmetric"),
             AttrString("nearest_mode", "floor")})
      .Output("y");
  const auto yb = Values(RunBoth(b, {x})[0]);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(yb[static_cast<size_t>(i)], static_cast<float>(i * 26 / 64)) << i;
}

TEST(Reports, Row03ResizeLeavesAxesOfScaleOneAlone) {
  const Tensor x = Tensor::FromValues(Shape{4, 4, 10, 10}, Ramp(0, 1600));
  ModelBuilder m(11);
  m.Input("x", {"4", "4", "10", "10"})
      .Floats("roi", Shape{0}, {})
      .Floats("s", Shape{4}, {1, 1, 3, 3});
  m.Node("Resize", {"x", "roi", "s"}, {"y"},
         {AttrString("mode", "nearest"),
          AttrString("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
          AttrString("nearest_mode", "ceil")})
      .Output("y");
  const Tensor y = RunBoth(m, {x})[0];
  ASSERT_EQ(y.shape(), (Shape{4, 4, 30, 30}));
  for (int plane = 0; plane < 16; ++plane) {
    for (int i = 0; i < 900; ++i) {
      const float v = y.data<float>()[plane * 900 + i];
      ASSERT_TRUE(v >= static_cast<float>(plane * 100) && v < static_cast<float>(plane * 100 + 100))
          << plane << " " << i;
    }
  }
}

TEST(Reports, Row04AveragePoolCountsNoPhantomCells) {
  const Tensor x = Tensor::FromValues(Shape{1, 1, 4, 4}, Ramp(1, 16));
  for (int opset : {11, 19}) {
    ModelBuilder m(opset);
    m.Input("x", {"1", "1", "4", "4"})
        .Node("AveragePool", {"x"}, {"y"},
              {AttrInts("kernel_shape", {3, 3}), AttrInts("strides", {2, 2}),
               AttrInts("pads", {1, 1, 1, 1}), AttrInt("ceil_mode", 1),
               AttrInt("count_include_pad", 1)})
        .Output("y");
    EXPECT_VALUES(Values(RunBoth(m, {x})[0]), 1e-3,
                  {1.5556F, 3.3333F, 2, 6.3333F, 11, 6, 4.5F, 7.5F, 4});
  }
}

TEST(Reports, Row06ConcatTakesEmptyTensors) {
  ModelBuilder m;
  m.Input("a", {"2"})
      .Input("b", {"0"})
      .Node("Concat", {"b", "a"}, {"y"}, {AttrInt("axis", 0)})
      .Output("y");
  EXPECT_THAT(Values(RunBoth(m, {Tensor::FromValues(Shape{2}, std::vector<float>{1, 2}),
                                 Tensor::Host(DType::kFloat, Shape{0})})[0]),
              ElementsAre(1, 2));
}

TEST(Reports, Row07ReduceOfAScalarIsTheScalar) {
  for (const char* op : {"ReduceMin", "ReduceMax", "ReduceMean"}) {
    ModelBuilder m;
    m.Input("x", std::vector<std::string>{}).Node(op, {"x"}, {"y"}).Output("y");
    const Tensor y = RunBoth(m, {Tensor::Scalar(2.0F)})[0];
    EXPECT_EQ(y.shape(), Shape{});
    EXPECT_EQ(y.data<float>()[0], 2);
  }
}

TEST(Reports, Row11SliceBackwardsToTheSmallestIndex) {
  ModelBuilder m;
  m.Input("x", {"5"})
      .Ints("b", {-1})
      .Ints("e", {INT64_MIN})
      .Ints("a", {0})
      .Ints("s", {-1})
      .Node("Slice", {"x", "b", "e", "a", "s"}, {"y"})
      .Output("y");
  EXPECT_THAT(Values(RunBoth(m, {Tensor::FromValues(Shape{5}, Ramp(0, 5))})[0]),
              ElementsAre(4, 3, 2, 1, 0));
}

TEST(Reports, Row11PadMayCut) {
  ModelBuilder m;
  m.Input("x", {"6"}).Ints("p", {-2, 1}).Node("Pad", {"x", "p"}, {"y"}).Output("y");
  EXPECT_THAT(Values(RunBoth(m, {Tensor::FromValues(Shape{6}, Ramp(0, 6))})[0]),
              ElementsAre(2, 3, 4, 5, 0));
}

TEST(Reports, Row11ReshapeKeepsZeroWhereAllowed) {
  ModelBuilder m(14);
  m.Input("x", {"0", "3"})
      .Ints("s", {3, 0})
      .Node("Reshape", {"x", "s"}, {"y"}, {AttrInt("allowzero", 1)})
      .Output("y");
  EXPECT_EQ(RunBoth(m, {Tensor::Host(DType::kFloat, Shape{0, 3})})[0].shape(), (Shape{3, 0}));
}

TEST(Reports, Row11ExpandAndWhereBroadcastBothWays) {
  ModelBuilder e;
  e.Input("x", {"3", "4"}).Ints("s", {1}).Node("Expand", {"x", "s"}, {"y"}).Output("y");
  EXPECT_EQ(RunBoth(e, {RandomTensor(Shape{3, 4}, 1)})[0].shape(), (Shape{3, 4}));
  ModelBuilder w;
  w.Input("c", {"2", "1"}, DType::kBool)
      .Input("x", {"3"})
      .Input("z", {"1", "2", "1"})
      .Node("Where", {"c", "x", "z"}, {"y"})
      .Output("y");
  Tensor c = Tensor::Host(DType::kBool, Shape{2, 1});
  c.data<bool>()[0] = true;
  c.data<bool>()[1] = false;
  EXPECT_EQ(RunBoth(w, {c, RandomTensor(Shape{3}, 1), RandomTensor(Shape{1, 2, 1}, 2)})[0].shape(),
            (Shape{1, 2, 3}));
}

TEST(Reports, Row11SplitOfSevenInThree) {
  ModelBuilder m(18);
  m.Input("x", {"7"})
      .Node("Split", {"x"}, {"a", "b", "c"}, {AttrInt("axis", 0), AttrInt("num_outputs", 3)})
      .Output("a")
      .Output("b")
      .Output("c");
  const auto out = RunBoth(m, {Tensor::FromValues(Shape{7}, Ramp(0, 7))});
  EXPECT_THAT(Values(out[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(out[1]), ElementsAre(3, 4, 5));
  EXPECT_THAT(Values(out[2]), ElementsAre(6));
}

std::vector<std::vector<int64_t>> Nms(const Tensor& boxes, const Tensor& scores,
                                      std::optional<int64_t> max, float iou, float threshold) {
  ModelBuilder m;
  m.Input("b", boxes.shape())
      .Input("s", scores.shape())
      .Constant("iou", Tensor::Scalar(iou))
      .Constant("t", Tensor::Scalar(threshold));
  if (max) {
    m.Constant("max", Tensor::Scalar(*max))
        .Node("NonMaxSuppression", {"b", "s", "max", "iou", "t"}, {"y"});
  } else {
    m.Node("NonMaxSuppression", {"b", "s"}, {"y"});
  }
  m.Output("y", DType::kInt64);
  const Tensor y = RunBoth(m, {boxes, scores})[0];
  EXPECT_EQ(y.shape().rank(), 2);
  EXPECT_EQ(y.shape()[1], 3);
  std::vector<std::vector<int64_t>> rows;
  for (int64_t r = 0; r < y.shape()[0]; ++r)
    rows.push_back(
        {y.data<int64_t>()[r * 3], y.data<int64_t>()[r * 3 + 1], y.data<int64_t>()[r * 3 + 2]});
  return rows;
}

TEST(Reports, Row14NmsTakesFlippedCornersAndHugeLimits) {
  // Boxes apart from each other with corners in any order: all above the threshold stay, by falling
  // score.
  const Tensor boxes = Tensor::FromValues(
      Shape{1, 6, 4}, std::vector<float>{1, 1, 0, 0, 2, 2, 3, 3, 5,  4,  4,  5,
                                         6, 7, 7, 6, 8, 8, 9, 9, 11, 11, 10, 10});
  const Tensor scores = Tensor::FromValues(
      Shape{1, 1, 6},
      std::vector<float>{.595507F, .0366178F, .258525F, .634127F, .736206F, .931845F});
  EXPECT_THAT(Nms(boxes, scores, 1501274884, .9092919F, .104928255F),
              ElementsAre(ElementsAre(0, 0, 5), ElementsAre(0, 0, 4), ElementsAre(0, 0, 3),
                          ElementsAre(0, 0, 0), ElementsAre(0, 0, 2)));
  // A box and the same box with flipped corners suppress each other.
  const Tensor twins =
      Tensor::FromValues(Shape{1, 2, 4}, std::vector<float>{0, 0, 1, 1, 1, 1, 0, 0});
  EXPECT_THAT(
      Nms(twins, Tensor::FromValues(Shape{1, 1, 2}, std::vector<float>{.6F, .9F}), 10, .5F, 0),
      ElementsAre(ElementsAre(0, 0, 1)));
}

TEST(Reports, Row15NmsOfLaterBatches) {
  std::vector<float> boxes;
  std::vector<float> scores;
  for (int batch = 0; batch < 2; ++batch)
    boxes.insert(boxes.end(), {0,   0,   .3F, .3F, 0,   0,   .4F, .4F, 0, 0,
                               .5F, .5F, .5F, .5F, .9F, .9F, .5F, .5F, 1, 1});
  for (int i = 0; i < 4; ++i) scores.insert(scores.end(), {.1F, .2F, .6F, .3F, .9F});
  const auto rows = Nms(Tensor::FromValues(Shape{2, 5, 4}, boxes),
                        Tensor::FromValues(Shape{2, 2, 5}, scores), 4, .4F, .25F);
  std::vector<std::vector<int64_t>> expected;
  for (int64_t b : {0, 1}) {
    for (int64_t c : {0, 1}) {
      expected.push_back({b, c, 4});
      expected.push_back({b, c, 2});
    }
  }
  EXPECT_THAT(rows, ElementsAreArray(expected));
}

TEST(Reports, Row16NmsDefaultsAndEmptiesGiveNoRows) {
  EXPECT_TRUE(Nms(RandomTensor(Shape{1, 3, 4}, 1, 0, 1), RandomTensor(Shape{1, 1, 3}, 2, 0, 1),
                  std::nullopt, 0, 0)
                  .empty());
  EXPECT_TRUE(Nms(Tensor::Host(DType::kFloat, Shape{1, 0, 4}),
                  Tensor::Host(DType::kFloat, Shape{1, 1, 0}), 5, .5F, 0)
                  .empty());
}

TEST(Reports, GatherCountsFromTheEnd) {
  ModelBuilder m;
  m.Input("x", {"3", "2"})
      .Constant("i", Tensor::Scalar(int64_t{-1}))
      .Node("Gather", {"x", "i"}, {"y"}, {AttrInt("axis", 0)})
      .Output("y");
  EXPECT_THAT(Values(RunBoth(m, {Tensor::FromValues(Shape{3, 2}, Ramp(0, 6))})[0]),
              ElementsAre(4, 5));
}

}  // namespace
}  // namespace whimbrel
