// Field reports on Softmax, pooling and convolution, as exact cases; each test is named after its
// row.

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "whimbrel/kernels/kernels.h"
#include "whimbrel/kernels/sample.h"

namespace whimbrel {
namespace {

std::vector<double> RunReference(std::string_view op, int opset, std::string_view text,
                                 const std::vector<float>& first = {}) {
  const OpSchema* schema = Registry::Get().Find("", op, opset);
  EXPECT_NE(schema, nullptr);
  Sample sample = ParseSample(*schema, text);
  sample.opset = opset;
  if (!first.empty()) sample.inputs[0] = Tensor::FromValues(sample.inputs[0].shape(), first);
  const auto got = RunSample(*schema, *Registry::Get().Reference("", op), sample, nullptr);
  std::vector<double> values;
  for (int64_t i = 0; i < got.at(0).elements(); ++i) values.push_back(ElementAsDouble(got[0], i));
  return values;
}

void ExpectStart(const std::vector<double>& got, const std::vector<double>& want, double limit) {
  ASSERT_GE(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], limit) << "element " << i;
}

std::vector<float> Tenths(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i) / 10);
  return values;
}

TEST(ReportRows, Row1SoftmaxBeforeOpset13FlattensFromAxis1) {
  for (int opset : {7, 10, 11, 12}) {
    const auto y = RunReference("Softmax", opset, "f32:2x3x4", Tenths(24));
    ExpectStart(y, {.04533, .05010, .05537, .06119}, 1e-5);
    double sum = 0;
    for (size_t i = 0; i < 12; ++i) sum += y[i];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(ReportRows, Row1SoftmaxFromOpset13TakesTheLastAxis) {
  for (int opset : {13, 21, 28}) {
    ExpectStart(RunReference("Softmax", opset, "f32:2x3x4", Tenths(24)),
                {.21384, .23633, .26118, .28865}, 1e-5);
  }
}

TEST(ReportRows, Row4AveragePoolDoesNotCountWhatHangsOverThePadding) {
  const std::string_view text =
      "f32:1x1x4x4={1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16} kernel_shape=3,3 strides=2,2 "
      "pads=1,1,1,1 ceil_mode=1 "
      "count_include_pad=1";
  for (int opset : {10, 11, 19, 22}) {
    const auto y = RunReference("AveragePool", opset, text);
    ASSERT_EQ(y.size(), 9u);
    ExpectStart(y, {1.5556, 3.3333, 2, 6.3333, 11, 6, 4.5, 7.5, 4}, 1e-4);
  }
}

// The row's data is in its thread; the rule is the same: the last window covers 3 values and 2
// pads.
TEST(ReportRows, Row5LastWindowOfAOneAxisAveragePool) {
  const auto y = RunReference("AveragePool", 19,
                              "f32:1x1x9={1,2,3,4,5,6,7,8,9} kernel_shape=7 strides=3 pads=3,3 "
                              "ceil_mode=1 count_include_pad=1");
  ASSERT_EQ(y.size(), 4u);
  ExpectStart(y, {10.0 / 7, 28.0 / 7, 39.0 / 7, 24.0 / 6}, 1e-5);
}

TEST(ReportRows, Row23SoftmaxOfARowOfMinusInfinityIsNaN) {
  const auto y = RunReference("Softmax", 13, "f32:2x2={-inf,-inf,0,-inf}");
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[3], 0);
}

TEST(ReportRows, Row24LayerNormalizationOfLargeHalvesIsNotZero) {
  const auto y =
      RunReference("LayerNormalization", 17, "f16:1x4={60000,-60000,30000,-30000} f16:4={1,1,1,1}");
  ExpectStart(y, {1.265, -1.265, .6323, -.6323}, 1e-3);
}

TEST(ReportRows, ConvPutsTheOddPadOfSameWhereItsNameSays) {
  ExpectStart(RunReference("Conv", 11, "f32:1x1x3={1,2,3} f32:1x1x2={1,10} auto_pad=SAME_UPPER"),
              {21, 32, 3}, 0);
  ExpectStart(RunReference("Conv", 11, "f32:1x1x3={1,2,3} f32:1x1x2={1,10} auto_pad=SAME_LOWER"),
              {10, 21, 32}, 0);
}

TEST(ReportRows, MaxPoolRefusesWindowsOnPaddingAlone) {
  EXPECT_THROW(RunReference("MaxPool", 12, "f32:1x1x4 kernel_shape=1 strides=2 pads=0,1"), Error);
}

// A model may ask for Y_h alone; the other outputs are then null in the call.
TEST(Lstm, GivesOnlyTheOutputsThatAreAskedFor) {
  const OpSchema* schema = Registry::Get().Find("", "LSTM", 14);
  const Kernel* kernel = Registry::Get().Reference("", "LSTM");
  const Sample sample =
      ParseSample(*schema, "f32:5x2x3 f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 outputs=3");
  const auto all = RunSample(*schema, *kernel, sample, nullptr);
  std::vector<const Tensor*> in;
  for (const Tensor& t : sample.inputs) in.push_back(&t);
  Tensor last = Tensor::Host(DType::kFloat, all[1].shape());
  const std::array<Tensor*, 3> out{nullptr, &last, nullptr};
  OpCall call;
  call.schema = schema;
  call.attributes = &sample.attributes;
  call.opset = 14;
  call.in = in;
  call.out = out;
  std::vector<std::byte> scratch(kernel->workspace(call));
  const auto stream = OpenDevice("cpu:0")->CreateStream({});
  kernel->run(call, scratch, *stream);
  EXPECT_TRUE(BitEqual(last, all[1]));
}

TEST(Lstm, BatchFirstIsTheSameWithAxesSwapped) {
  const OpSchema* schema = Registry::Get().Find("", "LSTM", 14);
  const Kernel* kernel = Registry::Get().Reference("", "LSTM");
  // one entry and one step apart, so that the data of both layouts is the same bytes
  const std::string rest = " f32:1x8x3! f32:1x8x2! f32:1x16! hidden_size=2 outputs=3";
  const auto steps = RunSample(*schema, *kernel, ParseSample(*schema, "f32:5x1x3" + rest), nullptr);
  const auto batch =
      RunSample(*schema, *kernel, ParseSample(*schema, "f32:1x5x3" + rest + " layout=1"), nullptr);
  EXPECT_EQ(batch[0].shape(), (Shape{1, 5, 1, 2}));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(BitEqual(batch[i].Reshaped(steps[i].shape()), steps[i])) << i;
}

TEST(Lstm, RefusesLengthsBeyondTheSequence) {
  const OpSchema* schema = Registry::Get().Find("", "LSTM", 14);
  const Sample sample =
      ParseSample(*schema, "f32:5x2x3 f32:1x8x3! f32:1x8x2! - i32:2={3,6} hidden_size=2 outputs=3");
  EXPECT_THROW(RunSample(*schema, *Registry::Get().Reference("", "LSTM"), sample, nullptr), Error);
}

TEST(BatchNormalization, RefusesTrainingOfOldOpsetsInWords) {
  EXPECT_THROW(RunReference("BatchNormalization", 9,
                            "f32:1x2x3 f32:2! f32:2! f32:2! f32:2={1,1} outputs=3"),
               Error);
}

}  // namespace
}  // namespace whimbrel
