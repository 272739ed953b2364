// Tensor and Buffer: sharing, limits, single elements, layouts.

#include "whimbrel/tensor/tensor.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/tensor/test_files.h"

namespace whimbrel {
namespace {

TEST(Tensor, SharesItsBufferAndViewsKeepItAlive) {
  Tensor view;
  {
    const Tensor t = Tensor::FromValues<float>({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
    view = t.Reshaped({3, 2});
    EXPECT_EQ(view.raw(), t.raw());
  }
  EXPECT_EQ(view.data<float>()[5], 5);
  EXPECT_EQ(view.bytes(), 24u);
  EXPECT_EQ(ErrorOf([&] { (void)view.Reshaped({7}); }).code(), Code::kInvalidArgument);
}

TEST(Tensor, RefusesMemoryThatIsTooSmall) {
  const auto buffer = Buffer::AllocateHost(16);
  EXPECT_NO_THROW(Tensor(DType::kFloat, {3}, buffer, 4));
  EXPECT_EQ(ErrorOf([&] { Tensor(DType::kFloat, {4}, buffer, 4); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { Tensor(DType::kFloat, {0}, buffer, 17); }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { Tensor(DType::kString, {1}, buffer); }).code(), Code::kUnsupported);
  EXPECT_EQ(ErrorOf([] { Tensor::Host(DType::kDouble, {int64_t{1} << 58}); }).code(),
            Code::kOutOfMemory);
  EXPECT_EQ(ErrorOf([] { (void)Buffer::AllocateHost(SIZE_MAX); }).code(), Code::kOutOfMemory);
  EXPECT_EQ(ErrorOf([] {
              Tensor::FromValues({3}, std::vector<int>{1, 2});
            }).code(),
            Code::kInternal);
}

TEST(Tensor, WithoutElementsHasAnAddress) {
  EXPECT_TRUE(Tensor::Host(DType::kFloat, {0, 4}).has_data());
  EXPECT_FALSE(Tensor::Described(DType::kFloat, {2}).has_data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Tensor::Host(DType::kFloat, {1}).raw()) % 64, 0u);
}

TEST(Buffer, BorrowedMemoryIsKeptByItsOwner) {
  auto owner = std::make_shared<std::vector<float>>(4, 2.5F);
  Tensor t(DType::kFloat, {4}, Buffer::Borrow(owner->data(), 16, owner));
  std::weak_ptr<std::vector<float>> weak = owner;
  owner.reset();
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(t.values<float>()[3], 2.5F);
  t = Tensor();
  EXPECT_TRUE(weak.expired());
}

class BufferTest : public FolderTest {};
TEST_F(BufferTest, FileRangesOutsideTheFileAreRefused) {
  const auto file = MappedFile::Open(Write("x", "0123456789"));
  EXPECT_EQ(static_cast<char>(*Buffer::FromFile(file, 9, 1)->data()), '9');
  EXPECT_EQ(Buffer::FromFile(file, 10, 0)->size(), 0u);
  for (const auto& [offset, bytes] :
       {std::pair<size_t, size_t>{0, 11}, {11, 0}, {SIZE_MAX, 2}, {2, SIZE_MAX}}) {
    EXPECT_EQ(ErrorOf([&, o = offset, b = bytes] { (void)Buffer::FromFile(file, o, b); }).code(),
              Code::kInvalidData);
  }
}

TEST(Tensor, ElementsConvertWithoutUndefinedCasts) {
  Tensor i8 = Tensor::Host(DType::kInt8, {1});
  SetElementFromDouble(i8, 0, -1.9);
  EXPECT_EQ(ElementAsInt64(i8, 0), -1);
  SetElementFromDouble(i8, 0, 300);
  EXPECT_EQ(ElementAsInt64(i8, 0), 44);
  SetElementFromDouble(i8, 0, std::nan(""));
  EXPECT_EQ(ElementAsInt64(i8, 0), 0);
  Tensor u64 = Tensor::Host(DType::kUint64, {1});
  SetElementFromDouble(u64, 0, 0x1p63);
  EXPECT_EQ(u64.values<uint64_t>()[0], uint64_t{1} << 63);
  EXPECT_EQ(ElementAsInt64(u64, 0), INT64_MAX);
  EXPECT_EQ(ElementAsDouble(u64, 0), 0x1p63);
  EXPECT_EQ(ElementAsInt64(Tensor::Scalar(std::numeric_limits<double>::infinity()), 0), INT64_MAX);
  EXPECT_EQ(ElementAsInt64(Tensor::Scalar(-1e300), 0), INT64_MIN);
  EXPECT_EQ(ElementAsInt64(Tensor::Scalar(std::nanf("")), 0), 0);
  EXPECT_EQ(ElementAsInt64(Tensor::Scalar(true), 0), 1);
  Tensor half = Tensor::Host(DType::kFloat16, {1});
  // Halfway between 1 and 1 + 2^-10 plus a little: by way of float it would fall to the even 1.
  SetElementFromDouble(half, 0, 1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(ElementAsDouble(half, 0), 1 + 0x1p-10);
}

TEST(Tensor, IntegerValuesOfEveryIntegerType) {
  EXPECT_EQ(IntegerValues(Tensor::FromValues({2}, std::vector<int32_t>{-5, 7})),
            (std::vector<int64_t>{-5, 7}));
  EXPECT_EQ(IntegerValues(Tensor::Scalar(true)), (std::vector<int64_t>{1}));
  EXPECT_EQ(ErrorOf([] { IntegerValues(Tensor::Scalar(1.0F)); }).code(), Code::kInvalidArgument);
}

// Layout change against the definition, over shapes that hit every rim of the tiles.
template <typename T>
void CheckLayout(const Shape& shape) {
  Tensor plain = Tensor::Host(kDTypeOf<T>, shape);
  for (int64_t i = 0; i < plain.elements(); ++i) plain.data<T>()[i] = static_cast<T>(i * 7 + 1);
  Tensor last = Tensor::Host(kDTypeOf<T>, shape).WithLayout(shape, Layout::kChannelsLast);
  ConvertLayout(plain, last);
  const int64_t channels = shape[1];
  const int64_t spatial = shape.Product(2, shape.rank());
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t s = 0; s < spatial; ++s) {
        ASSERT_EQ(last.data<T>()[(n * spatial + s) * channels + c],
                  plain.data<T>()[(n * channels + c) * spatial + s])
            << ToString(shape) << " at " << n << ' ' << c << ' ' << s;
      }
    }
  }
  EXPECT_TRUE(BitEqual(plain, last));
  EXPECT_TRUE(BitEqual(CopyPlain(last), plain));
}

TEST(Tensor, LayoutsConvertThereAndBack) {
  const Shape shapes[] = {{1, 3, 5, 7},   {2, 4, 8},      {1, 33, 31},  {3, 64, 9, 9},
                          {1, 1, 4, 4},   {1, 5, 1, 1},   {0, 3, 2, 2}, {2, 37, 3, 5, 7},
                          {1, 3, 97, 65}, {1, 130, 4, 4}, {2, 3, 0, 4}, {1, 2, 2, 2},
                          {1, 67, 66}};
  for (const Shape& shape : shapes) {
    CheckLayout<float>(shape);
    CheckLayout<uint8_t>(shape);
    CheckLayout<int16_t>(shape);
    CheckLayout<double>(shape);
  }
}

TEST(Tensor, LayoutsDoNotMixWithOtherShapesAndTypes) {
  const Tensor a = Tensor::Host(DType::kFloat, {1, 2, 3});
  Tensor b = Tensor::Host(DType::kFloat, {1, 3, 2});
  Tensor c = Tensor::Host(DType::kInt32, {1, 2, 3});
  EXPECT_EQ(ErrorOf([&] { ConvertLayout(a, b); }).code(), Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] { ConvertLayout(a, c); }).code(), Code::kInvalidArgument);
  EXPECT_FALSE(BitEqual(a, b));
  EXPECT_FALSE(BitEqual(a, c));
  const Tensor last = a.WithLayout(a.shape(), Layout::kChannelsLast);
  EXPECT_EQ(ErrorOf([&] { (void)last.Reshaped({6}); }).code(), Code::kInvalidArgument);
}

TEST(Tensor, BitEqualTellsZerosApartAndNansAlike) {
  EXPECT_FALSE(BitEqual(Tensor::Scalar(0.0F), Tensor::Scalar(-0.0F)));
  EXPECT_TRUE(BitEqual(Tensor::Scalar(std::nanf("")), Tensor::Scalar(std::nanf(""))));
}

}  // namespace
}  // namespace whimbrel
