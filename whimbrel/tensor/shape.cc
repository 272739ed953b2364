// Shape: checks, products, text form and broadcasting.

#include "whimbrel/tensor/shape.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// 2^58 elements of 16 bytes are 2^62 bytes: sums of two such sizes still fit 63 bits.
constexpr int64_t kMaxElements = int64_t{1} << 58;

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    throw Error(Code::kUnsupported,
                fmt::format("rank {} is above the limit of {}: [{}]", dims.size(), kMaxRank,
                            fmt::join(dims.first(kMaxRank), ", "))
                    .append(", ..."),
                "merge neighbouring dimensions before the export");
  }
  for (int64_t dim : dims) {
    if (dim < 0) {
      throw Error(Code::kInvalidData,
                  fmt::format("negative dimension {} in [{}]", dim, fmt::join(dims, ", ")));
    }
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int>(dims.size());
}

int64_t Shape::Product(int begin, int end) const {
  int64_t product = 1;
  bool too_large = false;
  for (int i = begin; i < end; ++i) {
    const int64_t dim = dims_[static_cast<size_t>(i)];
    if (dim == 0) return 0;
    too_large =
        too_large || __builtin_mul_overflow(product, dim, &product) || product > kMaxElements;
  }
  if (too_large) {
    throw Error(Code::kInvalidData,
                fmt::format("shape {} has more than 2^58 elements", ToString(*this)));
  }
  return product;
}

std::array<int64_t, kMaxRank> Shape::Strides() const {
  std::array<int64_t, kMaxRank> strides{};
  // Unsigned: a huge dim beside a 0 may wrap, and then no element is ever addressed.
  uint64_t stride = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims_[static_cast<size_t>(i)]);
  }
  return strides;
}

Shape Shape::Permuted(std::span<const int> perm) const {
  WHIMBREL_CHECK(perm.size() == static_cast<size_t>(rank_));
  Shape out;
  out.rank_ = rank_;
  for (size_t i = 0; i < perm.size(); ++i) {
    WHIMBREL_CHECK(perm[i] >= 0 && perm[i] < rank_);
    out.dims_[i] = dims_[static_cast<size_t>(perm[i])];
  }
  return out;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string ToString(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

Shape ParseShape(std::string_view text) {
  const auto fail = [&](std::string_view why) -> Error {
    return Error(Code::kInvalidArgument, fmt::format("shape \"{}\": {}", text, why),
                 "write the dimensions as 1x3x48x192 or 1,3,48,192");
  };
  std::vector<int64_t> dims;
  const char* at = text.data();
  const char* const end = at + text.size();
  char separator = 0;
  while (at != end) {
    int64_t dim = 0;
    const auto [next, code] = std::from_chars(at, end, dim);
    if (code == std::errc::result_out_of_range) throw fail("a dimension does not fit 63 bits");
    if (code != std::errc() || dim < 0) throw fail("expected a number that is not negative");
    dims.push_back(dim);
    at = next;
    if (at == end) break;
    if ((*at != 'x' && *at != ',') || (separator != 0 && *at != separator)) {
      throw fail("expected one kind of separator, 'x' or ','");
    }
    separator = *at++;
    if (at == end) throw fail("a dimension is missing at the end");
  }
  if (dims.size() > kMaxRank) throw fail(fmt::format("more than {} dimensions", kMaxRank));
  return Shape(dims);
}

bool BroadcastShapes(const Shape& a, const Shape& b, Shape* out) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<int64_t, kMaxRank> dims{};
  for (int i = 0; i < rank; ++i) {
    const int axis_a = i - (rank - a.rank());
    const int axis_b = i - (rank - b.rank());
    const int64_t dim_a = axis_a < 0 ? 1 : a[axis_a];
    const int64_t dim_b = axis_b < 0 ? 1 : b[axis_b];
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1) return false;
    dims[static_cast<size_t>(i)] = dim_a == 1 ? dim_b : dim_a;
  }
  *out = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
  return true;
}

int NormalizeAxis(int64_t axis, int rank, std::string_view op) {
  if (axis < -rank || axis >= rank) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: axis {} is outside [{}, {}) of a tensor of rank {}", op, axis,
                            -rank, rank, rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace whimbrel
