// Shape and DType: limits, text forms, broadcasting as numpy does it.

#include "whimbrel/tensor/shape.h"

#include <random>

#include "tests/tensor/test_files.h"

#include "whimbrel/tensor/dtype.h"

namespace whimbrel {
namespace {

TEST(DType, NamesAndSizesAgree) {
  EXPECT_EQ(DTypeName(DType::kFloat16), "float16");
  EXPECT_EQ(DTypeName(static_cast<DType>(23)), "type 23");
  EXPECT_EQ(DTypeName(static_cast<DType>(255)), "type 255");
  EXPECT_EQ(ItemSize(DType::kBFloat16), 2u);
  EXPECT_EQ(ItemSize(DType::kString), 0u);
  EXPECT_EQ(ItemSize(DType::kComplex64), 0u);
  EXPECT_EQ(ItemSize(static_cast<DType>(200)), 0u);
  for (int i = 1; i <= 16; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(DTypeName(type)), type);
    EXPECT_EQ(ItemSize(type) > 0, DispatchType(type, [&]<typename T>() {
                EXPECT_EQ(sizeof(T), ItemSize(type));
                EXPECT_EQ(kDTypeOf<T>, type);
              }));
  }
  EXPECT_EQ(DTypeFromName("f32"), DType::kFloat);
  EXPECT_EQ(DTypeFromName(""), DType::kUndefined);
  EXPECT_EQ(DTypeFromName("float8"), DType::kUndefined);
}

TEST(Shape, CountsElementsAndStrides) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.Product(1, 3), 12);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.Strides()[0], 12);
  EXPECT_EQ(shape.Strides()[2], 1);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{5, 0}).elements(), 0);
  const int perm[] = {2, 0, 1};
  EXPECT_EQ(shape.Permuted(perm), (Shape{4, 2, 3}));
  EXPECT_EQ(ToString(Shape{1, 3}), "[1, 3]");
  EXPECT_EQ(ToString(Shape{}), "[]");
}

TEST(Shape, RefusesWhatCannotBeStored) {
  const std::vector<int64_t> nine(9, 1);
  EXPECT_EQ(ErrorOf([&] { Shape shape{std::span<const int64_t>(nine)}; }).code(),
            Code::kUnsupported);
  EXPECT_EQ(ErrorOf([] { Shape({2, -1}); }).code(), Code::kInvalidData);
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(ErrorOf([&] { (void)Shape({big, big}).elements(); }).code(), Code::kInvalidData);
  EXPECT_EQ(ErrorOf([&] { (void)Shape({INT64_MAX}).elements(); }).code(), Code::kInvalidData);
  EXPECT_EQ((Shape{big, big, 0}).elements(), 0);
  EXPECT_EQ((Shape{big, big, 0}).Strides()[2], 1);
}

TEST(Shape, IsParsedFromText) {
  EXPECT_EQ(ParseShape("1x3x48x192"), (Shape{1, 3, 48, 192}));
  EXPECT_EQ(ParseShape("1,3"), (Shape{1, 3}));
  EXPECT_EQ(ParseShape("7"), (Shape{7}));
  EXPECT_EQ(ParseShape(""), Shape{});
  for (const char* text : {"1x", "x1", "1,,2", "-1", "1x2,3", "a", "1 x2", "99999999999999999999",
                           "1x1x1x1x1x1x1x1x1"}) {
    const Error error = ErrorOf([&] { ParseShape(text); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << text;
    EXPECT_MENTIONS(error, text);
  }
}

TEST(Shape, BroadcastsAsNumpy) {
  Shape out;
  EXPECT_TRUE(BroadcastShapes({8, 1, 6, 1}, {7, 1, 5}, &out));
  EXPECT_EQ(out, (Shape{8, 7, 6, 5}));
  EXPECT_TRUE(BroadcastShapes({}, {2, 3}, &out));
  EXPECT_EQ(out, (Shape{2, 3}));
  EXPECT_TRUE(BroadcastShapes({0, 1}, {1, 4}, &out));
  EXPECT_EQ(out, (Shape{0, 4}));
  EXPECT_FALSE(BroadcastShapes({0}, {2}, &out));
  EXPECT_FALSE(BroadcastShapes({2, 3}, {3, 2}, &out));
  Shape same{1, 3};
  EXPECT_TRUE(BroadcastShapes(same, {2, 1}, &same));
  EXPECT_EQ(same, (Shape{2, 3}));
}

TEST(Shape, BroadcastIsSymmetricAndTextRoundTrips) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<int64_t> dims[2];
    for (auto& list : dims) {
      for (unsigned rank = random() % (kMaxRank + 1); rank > 0; --rank)
        list.push_back(random() % 4);
    }
    const Shape a(dims[0]), b(dims[1]);
    Shape ab, ba;
    const bool fits = BroadcastShapes(a, b, &ab);
    EXPECT_EQ(fits, BroadcastShapes(b, a, &ba));
    if (fits) {
      EXPECT_EQ(ab, ba);
    }
    std::string text;
    for (int64_t dim : a.dims()) text += (text.empty() ? "" : "x") + std::to_string(dim);
    EXPECT_EQ(ParseShape(text), a);
  }
}

TEST(Shape, AxesAreNormalised) {
  EXPECT_EQ(NormalizeAxis(-1, 3, "Softmax"), 2);
  EXPECT_EQ(NormalizeAxis(0, 3, "Softmax"), 0);
  EXPECT_MENTIONS(ErrorOf([] { NormalizeAxis(3, 3, "Softmax"); }), "Softmax");
  EXPECT_EQ(ErrorOf([] { NormalizeAxis(-4, 3, "Softmax"); }).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace whimbrel
