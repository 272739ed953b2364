// Dim arithmetic and printing.

#include "whimbrel/kernels/dim.h"

#include <limits>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

// Beyond this an expression tells a reader nothing.
constexpr size_t kMaxText = 48;

Dim Expression(const Dim& a, std::string_view op, const Dim& b) {
  if (!a.known() && a.text().empty()) return Dim();
  if (!b.known() && b.text().empty()) return Dim();
  std::string text = "(" + ToString(a) + std::string(op) + ToString(b) + ")";
  return text.size() > kMaxText ? Dim() : Dim::Symbol(text);
}

// The one quotient that does not fit: -2^63 / -1.
bool QuotientOverflows(int64_t a, int64_t b) {
  return b == -1 && a == std::numeric_limits<int64_t>::min();
}

int64_t FloorOf(int64_t a, int64_t b) {
  int64_t q = a / b;
  if ((a % b != 0) && ((a < 0) != (b < 0))) --q;
  return q;
}

}  // namespace

Dim Dim::Symbol(std::string_view name) {
  Dim d;
  d.text_ = std::string(name);
  return d;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    return __builtin_add_overflow(a.value(), b.value(), &result) ? Dim() : Dim(result);
  }
  if (a.Is(0)) return b;
  if (b.Is(0)) return a;
  return Expression(a, "+", b);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    return __builtin_sub_overflow(a.value(), b.value(), &result) ? Dim() : Dim(result);
  }
  if (b.Is(0)) return a;
  if (a.Same(b)) return 0;
  return Expression(a, "-", b);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    int64_t result = 0;
    return __builtin_mul_overflow(a.value(), b.value(), &result) ? Dim() : Dim(result);
  }
  if (a.Is(1)) return b;
  if (b.Is(1)) return a;
  if (a.Is(0) || b.Is(0)) return 0;
  return Expression(a, "*", b);
}

Dim FloorDiv(const Dim& a, const Dim& b) {
  if (b.Is(0)) throw Error(Code::kInvalidData, "division of a dimension by zero");
  if (a.known() && b.known()) {
    return QuotientOverflows(a.value(), b.value()) ? Dim() : Dim(FloorOf(a.value(), b.value()));
  }
  if (b.Is(1)) return a;
  if (a.Same(b)) return 1;
  return Expression(a, "/", b);
}

Dim CeilDiv(const Dim& a, const Dim& b) {
  if (b.Is(0)) throw Error(Code::kInvalidData, "division of a dimension by zero");
  if (a.known() && b.known()) {
    if (QuotientOverflows(a.value(), b.value())) return Dim();
    const int64_t floor = FloorOf(a.value(), b.value());
    return a.value() % b.value() == 0 ? floor : floor + 1;
  }
  if (b.Is(1)) return a;
  return Expression(a, "/^", b);
}

std::string ToString(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.value());
  return dim.text().empty() ? "?" : dim.text();
}

std::string ToString(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + ToString(dims[i]);
  return text + "]";
}

bool AllKnown(const Dims& dims) {
  for (const Dim& d : dims) {
    if (!d.known()) return false;
  }
  return true;
}

Shape ToShape(const Dims& dims) {
  std::vector<int64_t> values;
  values.reserve(dims.size());
  for (const Dim& d : dims) {
    WHIMBREL_CHECK(d.known());
    values.push_back(d.value());
  }
  return Shape(std::span<const int64_t>(values));
}

Dims ToDims(const Shape& shape) {
  Dims dims;
  for (int64_t d : shape.dims()) dims.emplace_back(d);
  return dims;
}

Dim ProductOf(const Dims& dims, size_t begin, size_t end) {
  Dim product = 1;
  for (size_t i = begin; i < end; ++i) product = product * dims[i];
  return product;
}

std::optional<Dims> BroadcastDims(const Dims& a, const Dims& b) {
  const size_t rank = a.size() > b.size() ? a.size() : b.size();
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() < rank ? Dim(1) : a[i + a.size() - rank];
    const Dim y = i + b.size() < rank ? Dim(1) : b[i + b.size() - rank];
    if (x.Is(1)) {
      out[i] = y;
    } else if (y.Is(1) || x.Same(y)) {
      out[i] = x;
    } else if (x.known() && y.known()) {
      return std::nullopt;
    } else if (x.known()) {
      out[i] = x;
    } else if (y.known()) {
      out[i] = y;
    }
  }
  return out;
}

}  // namespace whimbrel
