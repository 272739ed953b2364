// Convolution geometry: attributes and shapes to figures, for inference, cost and kernels, both
// directions.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/conv_common.h"

namespace whimbrel {
namespace {

constexpr int64_t kMaxGroups = int64_t{1} << 31;

// What inference knows of a convolution's operands.
struct Operands {
  Dims x;
  std::optional<Dims> w;
  int64_t groups = 1;
  WindowAttributes window;
};

int64_t ReadGroups(std::string_view op, const Attributes& attributes) {
  const int64_t groups = attributes.Int("group", 1);
  if (groups < 1 || groups > kMaxGroups) {
    throw Error(Code::kInvalidData, fmt::format("{}: attribute group is {}", op, groups));
  }
  return groups;
}

// Extents of W behind its two channel axes; 0 where not known.
std::vector<int64_t> KernelOf(const InferContext& c, const Dims& w) {
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w.size(); ++i) {
    if (w[i].Is(0)) c.Fail("the weights " + ToString(w) + " have a kernel without elements");
    kernel.push_back(w[i].known() ? w[i].value() : 0);
  }
  return kernel;
}

// Ranks, groups and window; nullopt when the rank of X is unknown.
std::optional<Operands> ReadOperands(InferContext& c) {
  if (!c.in(0).dims) return std::nullopt;
  Operands o;
  o.x = *c.in(0).dims;
  o.w = c.in(1).dims;
  o.groups = ReadGroups(c.schema().name, c.attrs());
  if (o.x.size() < 3) {
    c.Fail("data " + ToString(o.x) + " has rank " + std::to_string(o.x.size()) +
               ", at least 3 is needed",
           "batch, channels, then one axis or more");
  }
  if (o.w && o.w->size() != o.x.size()) {
    c.Fail("weights " + ToString(*o.w) + " and data " + ToString(o.x) + " differ in rank");
  }
  const auto kernel = o.w ? KernelOf(c, *o.w) : std::vector<int64_t>();
  o.window =
      ReadWindowAttributes(c.schema().name, c.attrs(), static_cast<int>(o.x.size()) - 2, kernel);
  return o;
}

void CheckBias(const InferContext& c, const Dim& channels) {
  if (!c.has(2) || !c.in(2).dims) return;
  const Dims& bias = *c.in(2).dims;
  const bool fits =
      bias.size() == 1 && (!bias[0].known() || !channels.known() || bias[0].Is(channels.value()));
  if (!fits) c.Fail("the bias must be [" + ToString(channels) + "], is " + ToString(bias));
}

std::span<const int64_t> SpatialOf(const Shape& shape) {
  return shape.dims().subspan(2);
}

// One axis of the transposed direction: the pads cut from the full extent, and what remains.
struct TransposedAxis {
  int64_t pad_begin, pad_end, out;
};

struct TransposedAttributes {
  WindowAttributes window;
  SpatialArray output_padding{};
  std::optional<SpatialArray> output_shape;
};

TransposedAttributes ReadTransposed(std::string_view op, const Attributes& attributes,
                                    const WindowAttributes& window) {
  TransposedAttributes t{.window = window, .output_padding = {}, .output_shape = std::nullopt};
  const auto spatial = static_cast<size_t>(window.spatial);
  const auto padding = attributes.Ints("output_padding");
  if (!padding.empty() && padding.size() != spatial) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: output_padding has {} entries for {} spatial axes", op,
                            padding.size(), spatial));
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    // a wider one would be rows that no tap can reach
    if (padding[i] < 0 || padding[i] >= std::max(window.stride[i], window.dilation[i])) {
      throw Error(Code::kInvalidData,
                  fmt::format("{}: output_padding {} must be below stride {} or dilation {}", op,
                              padding[i], window.stride[i], window.dilation[i]));
    }
    t.output_padding[i] = padding[i];
  }
  auto shape = attributes.Ints("output_shape");
  if (shape.empty()) return t;
  if (shape.size() == spatial + 2) shape = shape.subspan(2);  // some exporters write the full shape
  if (shape.size() != spatial) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: output_shape has {} entries for {} spatial axes", op, shape.size(),
                            spatial));
  }
  t.output_shape.emplace();
  for (size_t i = 0; i < spatial; ++i) {
    if (shape[i] < 1 || shape[i] > kMaxGroups) {
      throw Error(Code::kInvalidData, fmt::format("{}: output_shape holds {}", op, shape[i]));
    }
    (*t.output_shape)[i] = shape[i];
  }
  return t;
}

TransposedAxis ResolveTransposed(std::string_view op, const TransposedAttributes& t, int axis,
                                 int64_t in) {
  const auto i = static_cast<size_t>(axis);
  const WindowAttributes& w = t.window;
  if (in < 1 || in > (int64_t{1} << 31)) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: spatial axis {} of {} elements", op, axis, in));
  }
  // Each factor is at most 2^31, so the sum stays below 2^63.
  const int64_t full = (in - 1) * w.stride[i] + t.output_padding[i] + w.extent(axis);
  const bool same = w.auto_pad == AutoPad::kSameUpper || w.auto_pad == AutoPad::kSameLower;
  TransposedAxis a{w.pad_begin[i], w.pad_end[i], 0};
  if (t.output_shape || same) {
    const int64_t wanted = t.output_shape ? (*t.output_shape)[i] : in * w.stride[i];
    const int64_t total = std::max<int64_t>(0, full - wanted);
    a.pad_begin = w.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
    a.pad_end = total - a.pad_begin;
    a.out = t.output_shape ? wanted : full - total;
    return a;
  }
  a.out = full - a.pad_begin - a.pad_end;
  if (a.out < 1) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: pads {} and {} leave nothing of spatial axis {}, {} before them",
                            op, a.pad_begin, a.pad_end, axis, full));
  }
  return a;
}

Dim TransposedOutput(const InferContext& c, const TransposedAttributes& t, int axis,
                     const Dim& in) {
  const auto i = static_cast<size_t>(axis);
  const WindowAttributes& w = t.window;
  if (t.output_shape) return (*t.output_shape)[i];
  if (w.kernel[i] == 0) return Dim();
  if (in.known()) return ResolveTransposed(c.schema().name, t, axis, in.value()).out;
  if (w.auto_pad == AutoPad::kSameUpper || w.auto_pad == AutoPad::kSameLower) {
    return t.output_padding[i] + w.extent(axis) >= w.stride[i] ? in * Dim(w.stride[i]) : Dim();
  }
  const int64_t shift =
      t.output_padding[i] + w.extent(axis) - w.stride[i] - w.pad_begin[i] - w.pad_end[i];
  return in * Dim(w.stride[i]) + Dim(shift);
}

Cost MacCost(const OpCall& call, double macs) {
  Cost cost = DefaultCost(call);
  cost.flops = 2 * macs;
  return cost;
}

}  // namespace

double ConvGeometry::macs() const {
  return static_cast<double>(batch) * static_cast<double>(out_channels) *
         static_cast<double>(out_size()) * static_cast<double>(group_in()) *
         static_cast<double>(kernel_size());
}

std::vector<AttributeSpec> ConvAttributes() {
  return {{.name = "auto_pad",
           .type = AttributeType::kString,
           .note = "NOTSET (default), VALID, SAME_UPPER, SAME_LOWER"},
          {.name = "dilations", .type = AttributeType::kInts, .note = "default 1"},
          {.name = "group", .type = AttributeType::kInt, .note = "default 1"},
          {.name = "kernel_shape", .type = AttributeType::kInts, .note = "default: that of W"},
          {.name = "pads", .type = AttributeType::kInts, .note = "begins, then ends; default 0"},
          {.name = "strides", .type = AttributeType::kInts, .note = "default 1"}};
}

std::vector<AttributeSpec> ConvTransposeAttributes() {
  auto attributes = ConvAttributes();
  attributes.push_back({.name = "output_padding",
                        .type = AttributeType::kInts,
                        .note = "added at the end; default 0"});
  attributes.push_back({.name = "output_shape",
                        .type = AttributeType::kInts,
                        .note = "spatial dims; sets the pads"});
  return attributes;
}

void InferConv(InferContext& c) {
  const DType type = c.in(0).dtype;
  const auto o = ReadOperands(c);
  if (!o) return c.SetOut(0, type, std::nullopt);
  Dims out(o->x.size());
  out[0] = o->x[0];
  if (o->w) {
    const Dims& w = *o->w;
    const Dim expected = w[1] * Dim(o->groups);
    if (expected.known() && o->x[1].known() && !expected.Is(o->x[1].value())) {
      c.Fail(fmt::format("weights {} with group {} go with {} channels, data {} has {}",
                         ToString(w), o->groups, expected.value(), ToString(o->x),
                         o->x[1].value()));
    }
    if (w[0].known() && w[0].value() % o->groups != 0) {
      c.Fail(
          fmt::format("{} output channels do not divide into {} groups", w[0].value(), o->groups));
    }
    out[1] = w[0];
  }
  CheckBias(c, out[1]);
  for (int axis = 0; axis < o->window.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis) + 2;
    out[i] = WindowOutput(c.schema().name, o->window, axis, o->x[i]);
  }
  c.SetOut(0, type, std::move(out));
}

void InferConvTranspose(InferContext& c) {
  const DType type = c.in(0).dtype;
  const auto o = ReadOperands(c);
  if (!o) return c.SetOut(0, type, std::nullopt);
  const TransposedAttributes t = ReadTransposed(c.schema().name, c.attrs(), o->window);
  Dims out(o->x.size());
  out[0] = o->x[0];
  const Dim& channels = o->x[1];
  if (channels.known() && channels.value() % o->groups != 0) {
    c.Fail(
        fmt::format("{} input channels do not divide into {} groups", channels.value(), o->groups));
  }
  if (o->w) {
    const Dims& w = *o->w;
    if (w[0].known() && channels.known() && !w[0].Is(channels.value())) {
      c.Fail(fmt::format("weights {} go with {} channels, data {} has {}", ToString(w),
                         w[0].value(), ToString(o->x), channels.value()));
    }
    out[1] = w[1] * Dim(o->groups);
  }
  CheckBias(c, out[1]);
  for (int axis = 0; axis < o->window.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis) + 2;
    out[i] = TransposedOutput(c, t, axis, o->x[i]);
  }
  c.SetOut(0, type, std::move(out));
}

ConvGeometry ConvGeometryOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  const Shape& w = call.x(1).shape();
  const std::string_view op = call.schema->name;
  const auto window = ReadWindowAttributes(op, call.attrs(), x.rank() - 2, SpatialOf(w));
  ConvGeometry g{MakeWindowGeometry(op, window, SpatialOf(x))};
  g.batch = x[0];
  g.in_channels = x[1];
  g.out_channels = w[0];
  g.groups = ReadGroups(op, call.attrs());
  return g;
}

ConvGeometry ConvTransposeGeometryOf(const OpCall& call) {
  const Shape& x = call.x(0).shape();
  const Shape& w = call.x(1).shape();
  const std::string_view op = call.schema->name;
  const auto window = ReadWindowAttributes(op, call.attrs(), x.rank() - 2, SpatialOf(w));
  const TransposedAttributes t = ReadTransposed(op, call.attrs(), window);
  ConvGeometry g;
  g.spatial = window.spatial;
  g.kernel = window.kernel;
  g.stride = window.stride;
  g.dilation = window.dilation;
  for (int axis = 0; axis < g.spatial; ++axis) {
    const auto i = static_cast<size_t>(axis);
    g.in[i] = x[axis + 2];
    const TransposedAxis a = ResolveTransposed(op, t, axis, g.in[i]);
    g.pad_begin[i] = a.pad_begin;
    g.pad_end[i] = a.pad_end;
    g.out[i] = a.out;
  }
  g.batch = x[0];
  g.in_channels = x[1];
  g.groups = ReadGroups(op, call.attrs());
  g.out_channels = w[1] * g.groups;
  return g;
}

Cost ConvCost(const OpCall& call) {
  return MacCost(call, ConvGeometryOf(call).macs());
}

// Each input element meets every tap once.
Cost ConvTransposeCost(const OpCall& call) {
  const ConvGeometry g = ConvTransposeGeometryOf(call);
  return MacCost(call, static_cast<double>(call.x(0).elements()) *
                           static_cast<double>(g.group_out()) *
                           static_cast<double>(g.kernel_size()));
}

}  // namespace whimbrel
