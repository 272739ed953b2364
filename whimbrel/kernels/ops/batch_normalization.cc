// BatchNormalization: y[n, c, p] = (x[n, c, p] - mean[c]) / sqrt(var[c] + epsilon) * scale[c] +
// b[c]; in training mode mean and var are those of the batch itself.
//
// in   X                  [batch, channels, spatial...]  f32 | f64 | f16, from opset 14 also bf16
//      scale, B           [channels]  type of X; from 15 a type of their own
//      mean, var          [channels]  type of X; from 14 a type of their own
// attr epsilon            float, default 1e-5
//      momentum           float, default 0.9, for the running statistics
//      spatial            opset 7 only; 1 (default)
//      training_mode      from 14; 0 (default)
// out  Y                  like X
//      running_mean, running_var  [channels], training mode from 14: old * momentum + batch * (1 - momentum)
// Source: ONNX operator BatchNormalization (7, 9, 14, 15). Training of opsets below 14 is refused.

#include <cmath>

#include "whimbrel/kernels/reference.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto refuse = [&c](const std::string& what) {
    throw Error(Code::kUnsupported, std::string(c.schema().name) + ": " + what,
                "export the model for inference (eval mode)");
  };
  const bool training = c.attrs().Int("training_mode", 0) != 0;
  if (c.attrs().Int("spatial", 1) != 1)
    refuse("spatial 0 (statistics for each position) is not supported");
  if (c.outputs() > 1 && !training) refuse("running mean and variance are outputs of training only");
  if (c.in(0).dims) {
    const Dims& x = *c.in(0).dims;
    if (x.empty()) c.Fail("data of rank 0 has no channels");
    const Dim channels = x.size() == 1 ? Dim(1) : x[1];
    for (size_t i = 1; i < 5; ++i) {
      if (!c.in(i).dims) continue;
      const Dims& p = *c.in(i).dims;
      const bool fits =
          p.size() == 1 && (!p[0].known() || !channels.known() || p[0].Is(channels.value()));
      if (!fits) {
        c.Fail("input " + std::string(c.schema().inputs[i].name) + " must be [" +
               ToString(channels) + "], is " + ToString(p));
      }
    }
  }
  InferLikeFirst(c);
  if (training) {
    c.SetOut(1, c.in(3).dtype, c.in(3).dims);
    c.SetOut(2, c.in(4).dtype, c.in(4).dims);
  }
}

Cost BatchCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops =
      2 * static_cast<double>(call.y(0).elements());  // one factor and one addend for each channel
  return cost;
}

int64_t Channels(const OpCall& call) {
  const Shape& shape = call.x(0).shape();
  return shape.rank() == 1 ? 1 : shape[1];
}

bool Training(const OpCall& call) { return call.attrs().Int("training_mode", 0) != 0; }

// Mean and variance a channel, in training mode.
size_t StatisticsBytes(const OpCall& call) {
  return Training(call) ? 2 * sizeof(double) * static_cast<size_t>(Channels(call)) : 0;
}

// Population statistics over the batch and the spatial axes; updates the running outputs.
void TakeStatistics(const OpCall& call, double* statistics, int64_t channels, int64_t plane_size) {
  const int64_t batch = call.x(0).elements() / (channels * plane_size);
  const double momentum = call.attrs().Float("momentum", 0.9F);
  for (int64_t c = 0; c < channels; ++c) {
    const auto each = [&](auto&& visit) {
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t at = (n * channels + c) * plane_size;
        for (int64_t i = at; i < at + plane_size; ++i) visit(ElementAsDouble(call.x(0), i));
      }
    };
    const auto count = static_cast<double>(batch * plane_size);
    double sum = 0, squares = 0;
    each([&](double x) { sum += x; });
    const double mean = sum / count;
    each([&](double x) { squares += (x - mean) * (x - mean); });
    statistics[2 * c] = mean;
    statistics[2 * c + 1] = squares / count;
    for (size_t k = 0; k < 2; ++k) {
      if (!call.has_out(1 + k)) continue;
      const double old = ElementAsDouble(call.x(3 + k), c);
      SetElementFromDouble(call.y(1 + k), c,
                           old * momentum + statistics[2 * c + static_cast<int64_t>(k)] * (1 - momentum));
    }
  }
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Shape& shape = call.x(0).shape();
  if (shape.elements() == 0) return;
  const double epsilon = call.attrs().Float("epsilon", 1e-5);
  const int64_t channels = Channels(call);
  const int64_t plane_size = shape.rank() < 3 ? 1 : shape.Product(2, shape.rank());
  auto* const statistics = reinterpret_cast<double*>(workspace.data());
  const bool training = Training(call);
  if (training) TakeStatistics(call, statistics, channels, plane_size);
  DispatchReference<kFloatTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(
        shape.elements() / plane_size, 16384 / plane_size + 1, [&](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const int64_t c = plane % channels;
            const double mean = training ? statistics[2 * c] : ElementAsDouble(call.x(3), c);
            const double var = training ? statistics[2 * c + 1] : ElementAsDouble(call.x(4), c);
            const double scale = ElementAsDouble(call.x(1), c),
                         shift = ElementAsDouble(call.x(2), c);
            const double root = std::sqrt(var + epsilon);
            for (int64_t i = plane * plane_size; i < (plane + 1) * plane_size; ++i) {
              y[i] = Narrow<T>((Widen(x[i]) - mean) / root * scale + shift);
            }
          }
        });
  });
}

OpSchema Schema(int since, int until, std::vector<std::string_view> samples) {
  const TypeMask types = since >= 14 ? kFloatTypes : kFloatTypes & ~TypeBit(DType::kBFloat16);
  // groups: opset 14 lets mean and var have a type of their own, 15 scale and B too
  const int scale_group = since >= 15 ? 2 : 1;
  const int mean_group = since >= 14 ? 3 : 1;
  OpSchema s{
      .name = "BatchNormalization",
      .since = since,
      .until = until,
      .inputs = {{.name = "X", .types = types, .group = 1},
                 {.name = "scale", .types = types, .group = scale_group},
                 {.name = "B", .types = types, .group = scale_group},
                 {.name = "mean", .types = types, .group = mean_group},
                 {.name = "var", .types = types, .group = mean_group}},
      .outputs = {{.name = "Y", .types = types, .group = 1}},
      .attributes = {{.name = "epsilon",
                      .type = AttributeType::kFloat,
                      .note = "default 1e-5, added to the variance"},
                     {.name = "momentum",
                      .type = AttributeType::kFloat,
                      .note = "default 0.9, for the running statistics of training"}},
      .infer = Infer,
      .cost = BatchCost,
      .samples = std::move(samples),
  };
  const int further = since >= 14 ? 2 : 4;
  for (int i = 0; i < further; ++i)
    s.outputs.push_back({.name = since < 14 ? "training" : i == 0 ? "running_mean" : "running_var",
                         .types = types,
                         .optional = true});
  if (since < 9)
    s.attributes.push_back({.name = "spatial", .type = AttributeType::kInt, .note = "1"});
  if (since >= 14)
    s.attributes.push_back({.name = "training_mode", .type = AttributeType::kInt, .note = "0"});
  return s;
}

WHIMBREL_REGISTER(Schema(7, 9,
                         {"f32:2x4x5x5 f32:4! f32:4! f32:4! f32:4@0.1..2!",
                          "f32:2x4x5 f32:4! f32:4! f32:4! f32:4@0.1..2! spatial=1"}));
WHIMBREL_REGISTER(
    Schema(9, 14,
           {"f32:1x16x14x14 f32:16! f32:16! f32:16! f32:16@0.1..2! epsilon=1e-3 momentum=0.9",
            "f16:1x4x5x5 f16:4! f16:4! f16:4! f16:4@0.1..2!"}));
WHIMBREL_REGISTER(Schema(14, 15,
                         {"f32:1x4x7x7 f32:4! f32:4! f32:4! f32:4@0.1..2! training_mode=0",
                          "f16:1x4x5x5 f16:4! f16:4! f32:4! f32:4@0.1..2!"}));
WHIMBREL_REGISTER(Schema(15, INT_MAX,
                         {"f32:1x32x28x28 f32:32! f32:32! f32:32! f32:32@0.1..2!",
                          "f32:1x1x1x1 f32:1! f32:1! f32:1! f32:1@0.1..2!",
                          "f32:3x5x7 f32:5! f32:5! f32:5! f32:5@0.1..2!",
                          "f32:4x6 f32:6! f32:6! f32:6! f32:6@0.1..2!",
                          "f32:2x3x2x3x4 f32:3 f32:3 f32:3 f32:3@0.1..2",
                          "f32:0x4x3x3 f32:4! f32:4! f32:4! f32:4@0.1..2!",
                          "f32:1x64x56x56 f32:64! f32:64! f32:64! f32:64@0.1..2! epsilon=0.001",
                          "f32:1x2x3 f32:2! f32:2! f32:2! f32:2={0,0}",
                          "f64:1x3x4x4 f64:3! f64:3! f64:3! f64:3@0.1..2!",
                          "f16:1x4x5x5 f32:4! f32:4! f32:4! f32:4@0.1..2!",
                          "bf16:1x4x5x5 bf16:4! bf16:4! f32:4! f32:4@0.1..2!",
                          "f32:2x3x4x5 f32:3 f32:3 f32:3 f32:3@0.1..2 training_mode=1 outputs=3",
                          "f32:2x3x4x5 f32:3 f32:3 f32:3 f32:3@0.1..2 training_mode=1 momentum=0.5"}));
WHIMBREL_REGISTER(Kernel{
    .op = "BatchNormalization",
    .name = "reference",
    .in_place = 1,
    .workspace = StatisticsBytes,
    .run = Run});

}  // namespace
}  // namespace whimbrel
