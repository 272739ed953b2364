// Dim: one dimension during inference: a number, a named symbol or expression, or unknown.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/tensor/shape.h"

namespace whimbrel {

// Two dims are the same when both are known and equal, or carry the same non-empty text. Arithmetic on
// known dims gives known dims, or unknown when the result leaves 64 bits; else a readable expression
// ("(H+1)/2"), or unknown when it grows long.
class Dim {
 public:
  Dim() = default;                                  // unknown
  Dim(int64_t value) : value_(value), known_(true) {}  // NOLINT(google-explicit-constructor)
  static Dim Symbol(std::string_view name);
  bool known() const { return known_; }
  int64_t value() const { return value_; }  // only when known
  const std::string& text() const { return text_; }
  bool Same(const Dim& other) const {
    return known_ ? other.known_ && value_ == other.value_ : !other.known_ && !text_.empty() && text_ == other.text_;
  }
  bool Is(int64_t value) const { return known_ && value_ == value; }

 private:
  int64_t value_ = 0;  // may be negative for elements of shape tensors
  bool known_ = false;
  std::string text_;
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim FloorDiv(const Dim& a, const Dim& b);
Dim CeilDiv(const Dim& a, const Dim& b);

using Dims = std::vector<Dim>;

std::string ToString(const Dim& dim);    // "3", "N", "?"
std::string ToString(const Dims& dims);  // "[N, 3, ?, ?]"
bool AllKnown(const Dims& dims);
Shape ToShape(const Dims& dims);         // all known
Dims ToDims(const Shape& shape);
Dim ProductOf(const Dims& dims, size_t begin, size_t end);
// Numpy broadcasting; an unknown dim against 1 gives the unknown, against n > 1 gives n. nullopt = misfit.
std::optional<Dims> BroadcastDims(const Dims& a, const Dims& b);

}  // namespace whimbrel
