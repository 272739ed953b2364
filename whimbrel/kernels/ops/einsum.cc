// Einsum: y[labels of the output] = the sum over all other labels of the product of the inputs.
//
// in   Inputs    one or more, one type: f32 | f64 | f16 | integers, from 28 also bf16
// attr equation  string: "ij,jk->ik", "...ii", "bhqd,bhkd"; letters name dims, "..." the rest,
// right
//                aligned and broadcast; without -> the output has the ellipsis and the labels that
//                appear once, in ASCII order
// out  Output
// A label with several dims takes the one that is not 1. Integers wrap.
// Source: ONNX operator Einsum (12, 28).

#include <array>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/einsum_plan.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

using Labels = std::array<uint8_t, kMaxRank>;

// The dim that label has in one more operand; false when they do not fit.
bool Unify(Dim& known, const Dim& dim) {
  if (known.known() && dim.known()) {
    if (known.value() == 1) known = dim;
    return dim.value() == 1 || dim.value() == known.value();
  }
  // An unknown dim beside n > 1 is n (or 1); beside 1 it is itself.
  if (known.Is(1) || (!known.known() && dim.known() && !dim.Is(1))) {
    known = dim;
  } else if (!known.known() && !dim.known() && !known.Same(dim)) {
    known = Dim();
  }
  return true;
}

void Infer(InferContext& c) {
  const std::string_view text = c.attrs().String("equation", "");
  const EinsumEquation equation = ParseEinsum(text, c.inputs());
  std::array<std::optional<Dim>, kEinsumLabels> dims;
  bool open = false;  // an ellipsis of unknown length
  int dots = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const EinsumTerm& term = equation.input[i];
    if (!c.in(i).dims) {
      for (size_t k = 0; k < static_cast<size_t>(term.letters); ++k) {
        std::optional<Dim>& dim = dims[term.label[k]];
        if (!dim || !dim->known() || dim->Is(1)) dim = Dim();
      }
      open = open || term.ellipsis >= 0;
      continue;
    }
    Labels labels;
    const int rank = EinsumLabels(term, c.in(i).rank(), &labels);
    if (rank < 0) {
      c.Fail(fmt::format("input {} is {}, which does not fit its term in \"{}\"", i,
                         ToString(*c.in(i).dims), text));
    }
    dots = std::max(dots, rank - term.letters);
    for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
      const Dim& dim = (*c.in(i).dims)[d];
      std::optional<Dim>& known = dims[labels[d]];
      if (!known) {
        known = dim;
      } else if (!Unify(*known, dim)) {
        c.Fail(fmt::format("dim {} of input {} {} does not fit \"{}\": {} elsewhere", d, i,
                           ToString(*c.in(i).dims), text, ToString(*known)));
      }
    }
  }
  const EinsumTerm& term = equation.output;
  if (open && term.ellipsis >= 0) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  Labels labels;
  const int rank = EinsumLabels(term, term.letters + (term.ellipsis >= 0 ? dots : 0), &labels);
  if (rank < 0) c.Fail("the output has too many dims");
  Dims out;
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    out.push_back(dims[labels[d]].value_or(Dim()));
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

// Loops over the output's labels (`kept`) and, for each element, over the others (`summed`).
struct Plan {
  struct Loop {
    int rank = 0;
    int64_t count = 1;
    std::array<int64_t, kEinsumLabels> dims{};
    // strides[operand][loop dim]
    std::array<std::array<int64_t, kEinsumLabels>, kMaxEinsumInputs> strides{};
  };
  Loop kept, summed;
};

using LabelStrides = std::array<std::array<int64_t, kEinsumLabels>, kMaxEinsumInputs>;

void Append(Plan::Loop& loop, size_t label, int64_t dim, const LabelStrides& strides,
            size_t inputs) {
  const auto d = static_cast<size_t>(loop.rank++);
  loop.dims[d] = dim;
  loop.count *= dim;
  for (size_t i = 0; i < inputs; ++i) loop.strides[i][d] = strides[i][label];
}

Plan MakePlan(const OpCall& call) {
  const size_t inputs = call.in.size();
  const EinsumEquation equation = ParseEinsum(call.attrs().String("equation", ""), inputs);
  std::array<int64_t, kEinsumLabels> dims{};
  std::array<bool, kEinsumLabels> used{};
  LabelStrides strides{};
  int dots = 0;
  for (size_t i = 0; i < inputs; ++i) {
    const Shape& shape = call.x(i).shape();
    Labels labels;
    const int rank = EinsumLabels(equation.input[i], shape.rank(), &labels);
    dots = std::max(dots, rank - equation.input[i].letters);
    const auto steps = shape.Strides();
    for (int d = 0; d < rank; ++d) {
      const auto k = static_cast<size_t>(d);
      if (!used[labels[k]] || dims[labels[k]] == 1) dims[labels[k]] = shape[d];
      used[labels[k]] = true;
      if (shape[d] != 1) strides[i][labels[k]] += steps[k];  // a repeated label: the diagonal
    }
  }
  Plan plan;
  Labels labels;
  const EinsumTerm& output = equation.output;
  const int rank =
      EinsumLabels(output, output.letters + (output.ellipsis >= 0 ? dots : 0), &labels);
  for (int d = 0; d < rank; ++d) {
    const size_t label = labels[static_cast<size_t>(d)];
    Append(plan.kept, label, dims[label], strides, inputs);
    used[label] = false;
  }
  for (size_t label = 0; label < used.size(); ++label) {
    if (used[label]) Append(plan.summed, label, dims[label], strides, inputs);
  }
  return plan;
}

using Offsets = std::array<int64_t, kMaxEinsumInputs>;

// Where each operand's elements of step `index` of the loop lie.
void AddOffsets(const Plan::Loop& loop, int64_t index, size_t inputs, Offsets& offsets) {
  for (auto d = static_cast<size_t>(loop.rank); d-- > 0;) {
    const int64_t at = index % loop.dims[d];
    index /= loop.dims[d];
    for (size_t i = 0; i < inputs; ++i) offsets[i] += at * loop.strides[i][d];
  }
}

template <typename W>
W Times(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return WrapMul(a, b);
  } else {
    return a * b;
  }
}

template <typename W>
W Plus(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return WrapAdd(a, b);
  } else {
    return a + b;
  }
}

// The sum over the last summed label, from `at` on.
template <typename T>
WideOf<T> SumOfRow(const std::array<const T*, kMaxEinsumInputs>& x, const Plan& plan,
                   const Offsets& at, size_t inputs, int64_t length) {
  using W = WideOf<T>;
  const auto last = static_cast<size_t>(plan.summed.rank - 1);
  const auto step = [&](size_t i) {
    return plan.summed.rank > 0 ? plan.summed.strides[i][last] : 0;
  };
  W sum = 0;
  if (inputs == 2) {  // the usual one, without the inner loop
    const T* a = x[0] + at[0];
    const T* b = x[1] + at[1];
    const int64_t a_step = step(0);
    const int64_t b_step = step(1);
    for (int64_t k = 0; k < length; ++k) {
      sum = Plus<W>(sum, Times<W>(Widen(a[k * a_step]), Widen(b[k * b_step])));
    }
    return sum;
  }
  for (int64_t k = 0; k < length; ++k) {
    W product = Widen(x[0][at[0] + k * step(0)]);
    for (size_t i = 1; i < inputs; ++i) {
      product = Times<W>(product, Widen(x[i][at[i] + k * step(i)]));
    }
    sum = Plus<W>(sum, product);
  }
  return sum;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const size_t inputs = call.in.size();
  const Plan plan = MakePlan(call);
  const int64_t length =
      plan.summed.rank > 0 ? plan.summed.dims[static_cast<size_t>(plan.summed.rank - 1)] : 1;
  const int64_t rows = length == 0 ? 0 : plan.summed.count / length;
  DispatchReference<kNumericTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    std::array<const T*, kMaxEinsumInputs> x{};
    for (size_t i = 0; i < inputs; ++i) x[i] = call.x(i).data<T>();
    T* y = call.y(0).data<T>();
    const int64_t grain = 1 + 16384 / (plan.summed.count + 1);
    ParallelFor(call.y(0).elements(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t element = begin; element < end; ++element) {
        Offsets base{};
        AddOffsets(plan.kept, element, inputs, base);
        WideOf<T> sum = 0;
        for (int64_t row = 0; row < rows; ++row) {
          Offsets at = base;
          AddOffsets(plan.summed, row * length, inputs, at);
          sum = Plus<WideOf<T>>(sum, SumOfRow<T>(x, plan, at, inputs, length));
        }
        y[element] = Narrow<T>(sum);
      }
    });
  });
}

// A product of all inputs and an addition for each step of all loops.
Cost EinsumCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const Plan plan = MakePlan(call);
  cost.flops = static_cast<double>(plan.kept.count) * static_cast<double>(plan.summed.count) *
               static_cast<double>(call.in.size());
  return cost;
}

OpSchema Schema(int since, int until, TypeMask types, std::vector<std::string_view> samples) {
  OpSchema schema =
      MakeSchema({.name = "Einsum",
                  .since = since,
                  .until = until,
                  .types = types,
                  .inputs = {"Inputs"},
                  .output = "Output",
                  .variadic = true,
                  .attributes = {{"equation", AttributeType::kString, true, "as \"ij,jk->ik\""}},
                  .infer = Infer,
                  .cost = EinsumCost,
                  .samples = std::move(samples)});
  schema.matrix_op = true;
  return schema;
}

WHIMBREL_REGISTER(Schema(12, 28, kNumericTypesTo12,
                         {"f32:3x4 equation=ij->ji", "f32:2x3x4 f32:2x4x5 equation=bij,bjk->bik",
                          "i32:5 i32:5 equation=i,i"}));
WHIMBREL_REGISTER(Schema(28, INT_MAX, kNumericTypes,
                         {"f32:3x16 f32:16x5 equation=ij,jk->ik",
                          "f32:3x4 equation=ij->",
                          "f32:3x4 equation=ij->i",
                          "f32: equation=->",
                          "f32: f32:3 equation=,i",
                          "f32:2x3x3 equation=...ii->...i",
                          "f32:3x3 equation=ii",
                          "f32:2x3x4 equation=...ij->...ji",
                          "f32:3x4 equation=ba",
                          "f32:2x5x3x4 f32:5x4x2 equation=...ij,...jk",
                          "f32:2x5x3 f32:1x3 equation=...i,...i->...",
                          "f32:2x3x4 equation=...i->i",
                          "f32:3 f32:4 f32:5 equation=a,B,c",
                          "f32:1x4 f32:3x4 equation=ij,ij->ij",
                          "f32:0x3 f32:3x4 equation=ij,jk->ik",
                          "f32:2x0 f32:0x4 equation=ij,jk->ik",
                          "f16:7x17 f16:17x3 equation=ij,jk->ik",
                          "bf16:7x17 bf16:17x2 equation=ij,jk->ik",
                          "f64:2x3 f64:3x4 f64:4x2 equation=ij,jk,kl->il",
                          "i64:3x4 i64:4x2 equation=ij,jk->ik",
                          "u8:3@0..255 u8:3@0..255 equation=i,i->i",
                          "f32:2x4x16x8 f32:2x4x16x8 equation=bhqd,bhkd->bhqk",
                          "f32:4 f32:4 equation=i,i nan=1"}));
WHIMBREL_REGISTER(Kernel{.op = "Einsum", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
