// Scale layouts and line parameters of quantised ops.

#include "whimbrel/kernels/ops/quantized.h"

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"

namespace whimbrel {
namespace {

bool OneElementDims(const Dims& dims) {
  for (const Dim& d : dims) {
    if (!d.Is(1)) return false;
  }
  return dims.size() <= 1;
}

int64_t ReadBlockSize(const InferContext& c) {
  const int64_t block = c.attrs().Int("block_size", 0);
  if (block < 0 || block > (int64_t{1} << 40)) c.Fail(fmt::format("block_size is {}", block));
  return block;
}

void CheckBlocked(const InferContext& c, const Dims& x, const Dims& scale, int64_t block) {
  const auto axis = static_cast<size_t>(
      NormalizeAxis(c.attrs().Int("axis", 1), static_cast<int>(x.size()), c.schema().name));
  bool fits = scale.size() == x.size();
  for (size_t i = 0; fits && i < x.size(); ++i) {
    fits = !Differ(scale[i], i == axis ? CeilDiv(x[i], Dim(block)) : x[i]);
  }
  if (!fits) {
    c.Fail(fmt::format("scales {} do not fit data {} with blocks of {} along axis {}",
                       ToString(scale), ToString(x), block, axis),
           "the scales have the dims of the data, but one for each block of the axis");
  }
}

void CheckPerAxis(const InferContext& c, const Dims& x, const Dim& scales) {
  const int rank = static_cast<int>(x.size());
  // The default axis 1 does not exist in a vector, whose only axis is meant.
  const auto axis = static_cast<size_t>(
      rank == 1 ? 0 : NormalizeAxis(c.attrs().Int("axis", 1), rank, c.schema().name));
  if (Differ(scales, x[axis])) {
    c.Fail(
        fmt::format("{} scales do not fit axis {} of data {}", ToString(scales), axis, ToString(x)),
        "one scale, or one for each element of the axis");
  }
}

}  // namespace

void InferScales(const InferContext& c) {
  const int64_t block = ReadBlockSize(c);
  if (!c.in(1).dims) return;
  const Dims& scale = *c.in(1).dims;
  if (c.has(2) && c.in(2).dims) {
    const Dims& zero = *c.in(2).dims;
    bool fits = OneElementDims(scale) && OneElementDims(zero);
    if (!fits) {
      fits = scale.size() == zero.size();
      for (size_t i = 0; fits && i < zero.size(); ++i) fits = !Differ(scale[i], zero[i]);
    }
    if (!fits) {
      c.Fail("zero points " + ToString(zero) + " and scales " + ToString(scale) +
             " differ in shape");
    }
  }
  if (block == 0 && scale.size() > 1) {
    c.Fail("scales " + ToString(scale) + " of rank " + std::to_string(scale.size()) +
               " need the attribute block_size",
           "without it there is one scale, or a vector of them");
  }
  if (!c.in(0).dims) return;
  const Dims& x = *c.in(0).dims;
  if (block != 0) return CheckBlocked(c, x, scale, block);
  if (scale.empty() || OneElementDims(scale)) return;
  if (x.empty()) c.Fail("a scalar has one scale, there are " + ToString(scale[0]));
  CheckPerAxis(c, x, scale[0]);
}

ScaleLayout ScaleLayoutOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  const Shape& scale = call.x(1).shape();
  const int64_t block = call.attrs().Int("block_size", 0);
  ScaleLayout layout;
  if (block == 0 && call.x(1).elements() == 1) {
    layout.inner = x.elements();
    return layout;
  }
  const int axis =
      x.rank() == 1 ? 0 : NormalizeAxis(call.attrs().Int("axis", 1), x.rank(), call.schema->name);
  layout.inner = x.Product(axis + 1, x.rank());
  layout.length = x[axis];
  layout.per_axis = block == 0;
  layout.step = block == 0 ? 0 : 1;
  layout.block = std::max<int64_t>(block, 1);
  layout.blocks = block == 0 ? x[axis] : scale[axis];
  // a dim that inference did not know
  const bool fits =
      block == 0 ? scale.rank() == 1 && scale[0] == x[axis]
                 : scale.rank() == x.rank() &&
                       call.x(1).elements() == x.Product(0, axis) * layout.inner *
                                                   ((x[axis] + layout.block - 1) / layout.block);
  if (!fits || (call.has(2) && call.x(2).elements() != call.x(1).elements())) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: scales {} do not fit data {} along axis {}", call.schema->name,
                            ToString(scale), ToString(x), axis));
  }
  return layout;
}

void CheckOneElement(const InferContext& c, size_t i) {
  if (!c.has(i) || !c.in(i).dims) return;
  for (const Dim& d : *c.in(i).dims) {
    if (d.known() && !d.Is(1)) {
      c.Fail(fmt::format("{} must have one element, is {}", c.schema().inputs[i].name,
                         ToString(*c.in(i).dims)));
    }
  }
}

double OneElement(const OpCall& call, size_t i) {
  if (!call.has(i)) return 0;
  if (call.x(i).elements() != 1) {
    throw Error(Code::kInvalidData, fmt::format("{}: input {} must have one element, is {}",
                                                call.schema->name, i, ToString(call.x(i).shape())));
  }
  return ElementAsDouble(call.x(i), 0);
}

void InferLineParameter(const InferContext& c, size_t i, size_t operand, bool rows) {
  if (!c.has(i) || !c.in(i).dims || !c.in(operand).dims) return;
  const Dims& have = *c.in(i).dims;
  const Dims& matrix = *c.in(operand).dims;
  if (OneElementDims(have) || matrix.empty()) return;
  // a vector operand is one row of A, or one column of B
  const Dim lines = matrix.size() == 1 ? Dim(1) : matrix[matrix.size() - (rows ? 2 : 1)];
  bool fits = have.size() == 1 && !Differ(have[0], lines);
  if (have.size() == matrix.size() && have.size() > 1) {
    fits = true;
    for (size_t d = 0; d < have.size(); ++d) {
      const bool summed = d == matrix.size() - (rows ? 1 : 2);
      fits = fits && !Differ(have[d], summed ? Dim(1) : matrix[d]);
    }
  }
  if (!fits) {
    c.Fail(fmt::format("{} {} does not fit {} {}", c.schema().inputs[i].name, ToString(have),
                       c.schema().inputs[operand].name, ToString(matrix)),
           fmt::format("one element, or one for each {}", rows ? "row" : "column"));
  }
}

LineParameter::LineParameter(const OpCall& call, size_t input, const Shape& operand, bool rows) {
  if (!call.has(input)) return;
  points_ = &call.x(input);
  const int64_t count = points_->elements();
  lines_ = operand.rank() == 1 ? 1 : operand[rows ? -2 : -1];
  const int64_t matrices = operand.rank() <= 2 ? 1 : operand.Product(0, operand.rank() - 2);
  one_ = count == 1;
  per_matrix_ = !one_ && points_->shape().rank() > 1;
  if (!one_ && count != (per_matrix_ ? matrices * lines_ : lines_)) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: input {} is {}, the operand {}", call.schema->name, input,
                            ToString(points_->shape()), ToString(operand)));
  }
  if (one_) first_ = ElementAsDouble(*points_, 0);
}

double LineParameter::At(int64_t matrix, int64_t line) const {
  if (one_) return first_;
  return ElementAsDouble(*points_, per_matrix_ ? matrix * lines_ + line : line);
}

}  // namespace whimbrel
