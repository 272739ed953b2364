// Values of elementwise and shape ops that other engines got wrong, and what inference knows of
// shape arithmetic. Expected numbers: ONNX Runtime 1.32, numpy, or exact arithmetic where they are
// undefined.

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "whimbrel/kernels/kernels.h"
#include "whimbrel/kernels/sample.h"

namespace whimbrel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

const OpSchema& SchemaOf(std::string_view op, int opset) {
  const OpSchema* schema = Registry::Get().Find("", op, opset);
  EXPECT_NE(schema, nullptr) << op;
  return *schema;
}

Tensor Compute(std::string_view op, std::string_view sample, int opset = 27) {
  const OpSchema& schema = SchemaOf(op, opset);
  return RunSample(schema, *Registry::Get().Reference("", op), ParseSample(schema, sample), nullptr)
      .at(0);
}

template <typename T>
std::vector<T> Values(const Tensor& t) {
  EXPECT_EQ(t.dtype(), kDTypeOf<T>);
  const auto values = t.values<T>();
  return {values.begin(), values.end()};
}

std::vector<int64_t> Integers(std::string_view op, std::string_view sample, int opset = 27) {
  return IntegerValues(Compute(op, sample, opset));
}

ValueInfo Elements(const Dims& elements) {
  ValueInfo info;
  info.dtype = DType::kInt64;
  info.dims = Dims{static_cast<int64_t>(elements.size())};
  info.elements = elements;
  return info;
}

ValueInfo Infer(std::string_view op, std::vector<ValueInfo> inputs,
                const Attributes& attributes = {}, int opset = 27) {
  return InferOutputs(SchemaOf(op, opset), attributes, opset, inputs, 1).at(0);
}

std::string Message(std::string_view op, const Attributes& attributes, int opset) {
  try {
    InferOutputs(SchemaOf(op, opset), attributes, opset, {}, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const Dim kN = Dim::Symbol("N");

TEST(Max, KeepsNanOnEitherSide) {
  EXPECT_THAT(Values<float>(Compute("Max", "f32:3={1,nan,2} f32:3={nan,1,3}")),
              ElementsAre(IsNan(), IsNan(), 3));
  EXPECT_THAT(Values<float>(Compute("Min", "f32:3={1,nan,2} f32:3={nan,1,3}")),
              ElementsAre(IsNan(), IsNan(), 2));
}

TEST(Pow, TakesIntegersToPowersOfAnotherType) {
  EXPECT_THAT(Integers("Pow", "i32:2={2,3} f32:2={-1,2}"), ElementsAre(0, 9));
  EXPECT_THAT(Integers("Pow", "i64:2={3037000499,-1} i64:2={2,-3}"),
              ElementsAre(9223372030926249001, -1));
}

TEST(Div, NeverTraps) {
  EXPECT_THAT(Integers("Div", "i32:5={7,-7,-7,3,-2147483648} i32:5={2,2,-2,0,-1}"),
              ElementsAre(3, -3, 3, 0, -2147483648));
  EXPECT_THAT(Integers("Div", "i8:2={-128,5} i8:2={-1,0}"), ElementsAre(-128, 0));
}

TEST(Mul, WrapsWithoutOverflowingAnInt) {
  EXPECT_THAT(Integers("Mul", "u16:1={65535} u16:1={65535}"), ElementsAre(1));
}

TEST(Cast, GivesWhatX86GivesBeyondTheRange) {
  const std::string from = "f32:8={300,-1.5,3e9,-3e9,1e20,nan,inf,70000} to=";
  constexpr int64_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Integers("Cast", from + "2"), ElementsAre(44, 255, 0, 0, 0, 0, 0, 112));
  EXPECT_THAT(Integers("Cast", from + "5"), ElementsAre(300, -1, 0, 0, 0, 0, 0, 4464));
  EXPECT_THAT(Integers("Cast", from + "6"),
              ElementsAre(300, -1, kMin32, kMin32, kMin32, kMin32, kMin32, 70000));
  EXPECT_THAT(Integers("Cast", from + "7"),
              ElementsAre(300, -1, 3000000000, -3000000000, kMin64, kMin64, kMin64, 70000));
  EXPECT_THAT(Integers("Cast", from + "9"), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(Cast, RoundsOnceTo16Bits) {
  // By way of float both would end on a tie and round to even.
  EXPECT_THAT(Values<Half>(Compute("Cast", "f64:1={1.00048828125001} to=10")),
              ElementsAre(Half(1.0009765625)));
  EXPECT_THAT(Values<BFloat16>(Compute("Cast", "i64:1={4629700416936869889} to=16")),
              ElementsAre(BFloat16(4647714815446351872.0)));
}

TEST(Clip, TakesBoundsAsAttributesThenAsInputs) {
  EXPECT_THAT(Values<float>(Compute("Clip", "f32:3={-9,0.5,9} min=0 max=1", 7)),
              ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Values<float>(Compute("Clip", "f32:3={-9,0.5,9} - f32:={1}", 11)),
              ElementsAre(-9, 0.5, 1));
  EXPECT_THAT(Integers("Clip", "i8:3={1,5,9} i8:={4} i8:={2}", 13), ElementsAre(2, 2, 2));
  EXPECT_THAT(Values<float>(Compute("Clip", "f32:2={inf,nan}")),
              ElementsAre(std::numeric_limits<float>::max(), IsNan()));
}

TEST(Where, BroadcastsAllThree) {
  EXPECT_EQ(Compute("Where", "bool:2x1 f32:3 f32:1x2x1").shape(), (Shape{1, 2, 3}));
}

TEST(Expand, KeepsDimensionsWhereTheShapeSaysOne) {
  EXPECT_EQ(Compute("Expand", "f32:3x4 i64:1={1}").shape(), (Shape{3, 4}));
}

TEST(Range, CountsAlikeInInferenceAndKernel) {
  EXPECT_THAT(Integers("Range", "i64:={10} i64:={4} i64:={-2}"), ElementsAre(10, 8, 6));
  EXPECT_THAT(Integers("Range", "i64:={5} i64:={9} i64:={-1}"), ElementsAre());
  EXPECT_EQ(Compute("Range", "f32:={0.1} f32:={0.7} f32:={0.2}").elements(), 3);
  EXPECT_THROW(Compute("Range", "i64:={5} i64:={9} i64:={0}"), Error);
}

TEST(ShapeElements, FollowArithmeticOnSymbols) {
  ValueInfo image;
  image.dtype = DType::kFloat;
  image.dims = Dims{kN, 3, 7};
  Attributes last_two;
  last_two.Set("start", int64_t{-2});
  EXPECT_EQ(ToString(*Infer("Shape", {image}).elements), "[N, 3, 7]");
  EXPECT_EQ(ToString(*Infer("Shape", {image}, last_two).elements), "[3, 7]");
  EXPECT_EQ(ToString(*Infer("Div", {Elements({kN, -7}), Elements({2})}).elements), "[(N/2), -3]");
  EXPECT_EQ(ToString(*Infer("Div", {Elements({kN}), Elements({0})}).elements), "[?]");
  EXPECT_EQ(ToString(*Infer("Range", {Elements({0}), Elements({kN}), Elements({1})}).dims), "[N]");
}

// expand(x, [-1, 5]) as exporters write it: Where(Equal(target, -1), ones, target).
TEST(ShapeElements, ADimensionIsNeverMinusOne) {
  const ValueInfo equal = Infer("Equal", {Elements({kN, -1, 5}), Elements({-1})});
  EXPECT_EQ(equal.dtype, DType::kBool);
  EXPECT_EQ(ToString(*equal.elements), "[0, 1, 0]");
  const ValueInfo chosen = Infer("Where", {equal, Elements({1}), Elements({kN, -1, 5})});
  EXPECT_EQ(ToString(*chosen.elements), "[N, 1, 5]");
}

TEST(ConstantOfShape, RefusesNegativeDimensions) {
  EXPECT_THROW(Infer("ConstantOfShape", {Elements({2, -1})}), Error);
  EXPECT_EQ(ToString(*Infer("ConstantOfShape", {Elements({kN, 0})}).dims), "[N, 0]");
}

TEST(Constant, NamesTheFormsThatItRefuses) {
  Attributes attributes;
  attributes.Set("value_string", std::string("x"));
  EXPECT_THAT(Message("Constant", attributes, 13), HasSubstr("value_string"));
  attributes.Set("value_int", int64_t{1});
  EXPECT_THAT(Message("Constant", attributes, 13), HasSubstr("exactly one"));
  EXPECT_THAT(Message("Constant", {}, 13), HasSubstr("exactly one"));
}

}  // namespace
}  // namespace whimbrel
