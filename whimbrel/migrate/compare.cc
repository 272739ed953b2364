// Error figures of one tensor against its reference.

#include <cmath>

#include "whimbrel/migrate/align.h"

namespace whimbrel {

ErrorFigures Compare(const Tensor& value, const Tensor& reference, double rtol, double atol) {
  ErrorFigures f;
  f.elements = reference.elements();
  if (!value.defined() || value.dtype() != reference.dtype() ||
      !(value.shape() == reference.shape())) {
    f.worst_ratio = std::numeric_limits<double>::infinity();
    f.cosine = 0;
    return f;
  }
  const Tensor plain = value.layout() == Layout::kPlain ? value : CopyPlain(value);
  double dot = 0;
  double square_value = 0;
  double square_reference = 0;
  DispatchType(reference.dtype(), [&]<typename T>() {
    const T* a = plain.data<T>();
    const T* b = reference.data<T>();
    for (int64_t i = 0; i < f.elements; ++i) {
      const double x = static_cast<double>(a[i]);
      const double r = static_cast<double>(b[i]);
      if (std::isnan(x) || std::isnan(r) || std::isinf(x) || std::isinf(r)) {
        if ((std::isnan(x) && std::isnan(r)) || x == r) continue;
        ++f.nan_mismatch;
        if (f.worst_ratio < std::numeric_limits<double>::infinity()) f.worst_index = i;
        f.worst_ratio = std::numeric_limits<double>::infinity();
        f.max_abs = std::numeric_limits<double>::infinity();
        continue;
      }
      const double difference = std::fabs(x - r);
      dot += x * r;
      square_value += x * x;
      square_reference += r * r;
      if (difference == 0) continue;
      f.max_abs = std::max(f.max_abs, difference);
      f.max_rel = std::max(f.max_rel, difference / std::max(std::fabs(r), 1e-6));
      const double ratio = difference / (atol + rtol * std::fabs(r));
      if (ratio > f.worst_ratio) {
        f.worst_ratio = ratio;
        f.worst_index = i;
      }
    }
  });
  if (square_value > 0 && square_reference > 0) {
    f.cosine = dot / std::sqrt(square_value) / std::sqrt(square_reference);
  } else {
    f.cosine = square_value == square_reference ? 1 : 0;
  }
  return f;
}

}  // namespace whimbrel
