// DFT: y[k] = sum over j of x[j] e^(-2 pi i j k / n) along an axis; inverse: the other sign, and
// divided by n.
//
// in   input       [..., 1] real or [..., 2] complex  f32 | f64 | f16 | bf16
//      dft_length  n, i32 | i64 scalar, optional: the axis is cut or filled with 0; default its
//                  length, for onesided inverse 2 (length - 1)
//      axis        i64 scalar, optional, default -2 (from 20; before an attribute, default 1)
// attr onesided    forward: only the n / 2 + 1 first bins of real input; inverse: such bins to n
//                  real elements
//      inverse
// out  output      [..., 2]; [..., 1] for onesided inverse
// Source: ONNX operator DFT (17, 20).

#include <optional>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/dft_common.h"

namespace whimbrel {
namespace {

// The axis among all dims but the last.
int AxisOf(std::string_view op, int64_t axis, int rank) {
  const int a = NormalizeAxis(axis, rank, op);
  if (a == rank - 1)
    throw Error(Code::kInvalidData, fmt::format("{}: axis {} is that of the parts", op, axis));
  return a;
}

struct Kind {
  bool inverse, onesided;
};
Kind KindOf(const Attributes& attributes) {
  return {attributes.Int("inverse", 0) != 0, attributes.Int("onesided", 0) != 0};
}

Dim BinsOf(const Kind& kind, const Dim& n) {
  return kind.onesided && !kind.inverse ? FloorDiv(n, Dim(2)) + Dim(1) : n;
}

void CheckParts(const InferContext& c, const Kind& kind, const Dims& x) {
  const Dim& parts = x.back();
  if (!parts.known()) return;
  if (!parts.Is(1) && !parts.Is(2))
    c.Fail("the last dim of " + ToString(x) + " must be 1 (real) or 2 (complex)");
  if (kind.onesided && parts.Is(kind.inverse ? 1 : 2))
    c.Fail(kind.inverse ? "onesided inverse needs complex input" : "onesided needs real input");
}

void Infer(InferContext& c) {
  const Kind kind = KindOf(c.attrs());
  std::optional<int64_t> axis;
  if (c.schema().since < 20) {
    axis = c.attrs().Int("axis", 1);
  } else if (c.has(2)) {
    const auto values = c.Integers(2);
    if (values && values->size() != 1) c.Fail("axis must be one number");
    if (values) axis = values->front();
  } else {
    axis = -2;
  }
  std::optional<int64_t> length;
  if (c.has(1)) length = InferPositive(c, 1, int64_t{1} << 40);
  if (!c.in(0).dims) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  Dims out = *c.in(0).dims;
  if (out.size() < 2) c.Fail("input must have rank 2 or more, is " + ToString(out));
  CheckParts(c, kind, out);
  if (axis) {
    const auto a =
        static_cast<size_t>(AxisOf(c.schema().name, *axis, static_cast<int>(out.size())));
    Dim n = length ? Dim(*length) : Dim();
    if (!c.has(1)) n = kind.inverse && kind.onesided ? (out[a] - Dim(1)) * Dim(2) : out[a];
    if (n.known() && n.value() < 1) c.Fail(fmt::format("a transform of length {}", n.value()));
    out[a] = BinsOf(kind, n);
  } else {
    for (size_t i = 0; i + 1 < out.size(); ++i) out[i] = Dim();
  }
  out.back() = kind.inverse && kind.onesided ? 1 : 2;
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

struct Plan {
  Kind kind;
  int axis = 0;
  int64_t length = 0;  // of the axis
  int64_t n = 0, bins = 0, inner = 1;
  bool complex = false;
  Shape out;
};

Plan PlanOf(const OpCall& call) {
  const std::string_view op = call.schema->name;
  const Shape& x = call.x(0).shape();
  Plan p{.kind = KindOf(call.attrs()), .out = x};
  int64_t axis = call.schema->since < 20 ? call.attrs().Int("axis", 1) : -2;
  if (call.schema->since >= 20 && call.has(2)) axis = ElementAsInt64(call.x(2), 0);
  p.axis = AxisOf(op, axis, x.rank());
  p.length = x[p.axis];
  p.n = p.kind.inverse && p.kind.onesided ? 2 * (p.length - 1) : p.length;
  if (call.has(1)) p.n = ElementAsInt64(call.x(1), 0);
  if (p.n < 1) throw Error(Code::kInvalidData, fmt::format("{}: dft_length is {}", op, p.n));
  p.bins = p.kind.onesided && !p.kind.inverse ? p.n / 2 + 1 : p.n;
  p.inner = x.Product(p.axis + 1, x.rank() - 1);
  p.complex = x[-1] == 2;
  p.out.set(p.axis, p.bins);
  p.out.set(-1, p.kind.inverse && p.kind.onesided ? 1 : 2);
  return p;
}

// Element k of the real signal whose first bins at() gives; numpy's irfft.
template <typename F>
double RealInverse(const Plan& p, int64_t k, F at) {
  const int64_t half = std::min(p.length, p.n / 2 + 1);
  const std::complex<double> sum = FourierSum(half, k, p.n, 1, [&](int64_t j) {
    // bin 0 and the middle one stand for themselves, the others also for their mirror images
    const bool single = j == 0 || 2 * j == p.n;
    return single ? std::complex<double>(at(j).real()) : 2.0 * at(j);
  });
  return sum.real() / static_cast<double>(p.n);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Plan p = PlanOf(call);
  call.ResizeOutput(0, call.x(0).dtype(), p.out);
  const int64_t results = p.out.Product(0, p.out.rank() - 1);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(results, 16384 / (p.length + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t k = i / p.inner % p.bins;
        const int64_t base = i / (p.inner * p.bins) * p.length * p.inner + i % p.inner;
        const auto at = [&](int64_t j) { return ComplexAt(x, base + j * p.inner, p.complex); };
        if (p.kind.inverse && p.kind.onesided) {
          y[i] = Narrow<T>(RealInverse(p, k, at));
          continue;
        }
        std::complex<double> sum =
            FourierSum(std::min(p.length, p.n), k, p.n, p.kind.inverse ? 1 : -1, at);
        if (p.kind.inverse) sum /= static_cast<double>(p.n);
        y[2 * i] = Narrow<T>(sum.real());
        y[2 * i + 1] = Narrow<T>(sum.imag());
      }
    });
  });
}

Cost TransformCost(const OpCall& call) {
  // as many operations as a fast transform takes
  Cost cost = DefaultCost(call);
  const auto elements = static_cast<double>(call.x(0).elements());
  cost.flops = 5 * elements * std::log2(std::max(elements, 2.0));
  return cost;
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  OpSchema s{.name = "DFT",
             .since = since,
             .until = until,
             .inputs = {{.name = "input", .types = kFloatTypes, .group = 1},
                        {.name = "dft_length", .types = kIndexTypes, .optional = true}},
             .outputs = {{.name = "output", .types = kFloatTypes, .group = 1}},
             .attributes = {{.name = "inverse", .type = AttributeType::kInt, .note = "default 0"},
                            {.name = "onesided", .type = AttributeType::kInt, .note = "default 0"}},
             .infer = Infer,
             .cost = TransformCost,
             .samples = std::move(samples),
             .matrix_op = true,
             .doc = "discrete Fourier transform along an axis"};
  if (since < 20) {
    s.attributes.push_back({.name = "axis", .type = AttributeType::kInt, .note = "default 1"});
  } else {
    s.inputs.push_back({.name = "axis", .types = TypeBit(DType::kInt64), .optional = true});
  }
  return s;
}

WHIMBREL_REGISTER(Schema(17, 20,
                         {"f32:2x9x1", "f32:2x9x4x2 axis=2 inverse=1",
                          "f32:2x9x1 i64:={12}! onesided=1"}));
WHIMBREL_REGISTER(Schema(20, INT_MAX,
                         {"f32:2x64x1", "f32:1x1x1", "f32:2x9x4x2 - i64:={1}!",
                          "f32:2x9x2 inverse=1", "f32:2x9x1 i64:={16} onesided=1",
                          "f32:2x9x1 i32:={5}! onesided=1", "f32:2x9x2 onesided=1 inverse=1",
                          "f32:2x9x2 i64:={15}! onesided=1 inverse=1", "f32:0x9x1",
                          "f32:2x3x5x1 i64:={4} i64:={-3}", "f32:2x9x1 nan=1",
                          "f64:2x100x2 inverse=1", "f16:2x9x1", "bf16:2x9x1 onesided=1"}));
WHIMBREL_REGISTER(Kernel{.op = "DFT", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
