// ConvBnAct: Conv, BatchNormalization or per-channel scale and shift, residual Add and activation
// become one FusedConv.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/graph/passes/editor.h"

namespace whimbrel {
namespace {

// y = conv * scale + shift, per output channel.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
  bool used = false;
};

// One value a channel from a constant that broadcasts over the batch and the spatial axes.
std::optional<std::vector<double>> PerChannel(GraphEditor& e, ValueId id, int64_t channels,
                                              int rank) {
  if (!e.graph().is_constant(id)) return std::nullopt;
  const Tensor& t = *e.info(id).constant;
  if (!IsFloating(t.dtype())) return std::nullopt;
  std::vector<double> values;
  if (t.elements() == 1 && t.shape().rank() <= rank) {
    values.assign(static_cast<size_t>(channels), ElementAsDouble(t, 0));
    return values;
  }
  const int axis = 1 + t.shape().rank() - rank;
  if (axis < 0 || t.shape().rank() > rank || t.shape()[axis] != channels ||
      t.elements() != channels)
    return std::nullopt;
  for (int64_t c = 0; c < channels; ++c) values.push_back(ElementAsDouble(t, c));
  return values;
}

class ConvFuser {
 public:
  ConvFuser(Graph& graph, std::vector<PassNote>& notes) : e_(graph, "ConvBnAct", notes) {}

  void Run() {
    for (int n = 0; n < e_.size(); ++n) {
      if (e_.Is(n, "Conv") || e_.Is(n, "ConvTranspose")) Fuse(n);
    }
  }

 private:
  void Fuse(int n) {
    const Node conv = e_.node(n);
    const ValueId weight = conv.inputs[1];
    const auto out_shape = e_.ShapeOf(conv.outputs[0]);
    if (!out_shape || out_shape->rank() < 3) return;
    channels_ = (*out_shape)[1];
    rank_ = out_shape->rank();
    const bool transposed = conv.op == "ConvTranspose";
    const bool foldable =
        e_.graph().is_constant(weight) && (conv.inputs.size() < 3 || conv.inputs[2] == kNoValue ||
                                           e_.graph().is_constant(conv.inputs[2]));

    std::vector<int> taken{n};
    ValueId value = conv.outputs[0];
    Affine affine;
    affine.scale.assign(static_cast<size_t>(channels_), 1.0);
    affine.shift.assign(static_cast<size_t>(channels_), 0.0);
    while (foldable && TakeAffine(affine, value, taken)) {
    }
    ValueId residual = kNoValue;
    std::optional<FoundActivation> activation;
    if (!transposed && e_.info(conv.outputs[0]).dtype == DType::kFloat) {
      residual = TakeResidual(value, taken, *out_shape);
      activation = MatchActivation(e_, value, channels_, false);
      if (activation) {
        taken.insert(taken.end(), activation->nodes.begin(), activation->nodes.end());
        value = activation->output;
      }
    }
    if (taken.size() == 1) return;

    std::vector<ValueId> inputs{conv.inputs[0], weight,
                                conv.inputs.size() > 2 ? conv.inputs[2] : kNoValue};
    if (affine.used) {
      inputs[1] = ScaledWeight(weight, affine, transposed, conv);
      inputs[2] = ShiftedBias(inputs[2], weight, affine);
    }
    Node fused;
    if (residual == kNoValue && !activation) {
      fused = e_.MakeNode(conv.op, "", inputs, {value}, conv.opset);
    } else {
      inputs.push_back(residual);
      inputs.push_back(activation ? activation->slope : kNoValue);
      fused = e_.MakeNode("FusedConv", "whimbrel", inputs, {value}, 1);
    }
    while (!fused.inputs.empty() && fused.inputs.back() == kNoValue) fused.inputs.pop_back();
    fused.attributes = conv.attributes;
    if (activation) {
      fused.attributes.Set("activation", activation->name);
      fused.attributes.Set("activation_alpha", activation->alpha);
      fused.attributes.Set("activation_beta", activation->beta);
    }
    fused.name = conv.name;
    e_.Replace(taken, std::move(fused));
  }

  bool TakeAffine(Affine& affine, ValueId& value, std::vector<int>& taken) {
    const int next = e_.SoleConsumer(value);
    if (next < 0) return false;
    const Node& node = e_.node(next);
    Affine next_affine = affine;
    if (e_.Is(next, "BatchNormalization")) {
      if (node.inputs[0] != value || node.outputs.size() != 1 ||
          node.attributes.Int("training_mode", 0) != 0)
        return false;
      std::array<std::vector<double>, 4> p;
      for (size_t i = 0; i < 4; ++i) {
        if (!e_.graph().is_constant(node.inputs[i + 1])) return false;
        const Tensor& t = *e_.info(node.inputs[i + 1]).constant;
        if (t.elements() != channels_) return false;
        for (int64_t c = 0; c < channels_; ++c) p[i].push_back(ElementAsDouble(t, c));
      }
      const double epsilon = node.attributes.Float("epsilon", 1e-5);
      for (size_t c = 0; c < affine.scale.size(); ++c) {
        const double scale = p[0][c] / std::sqrt(p[3][c] + epsilon);
        next_affine.scale[c] = affine.scale[c] * scale;
        next_affine.shift[c] = affine.shift[c] * scale + p[1][c] - p[2][c] * scale;
      }
    } else if (e_.Is(next, "Mul") || e_.Is(next, "Add") || e_.Is(next, "Sub") ||
               e_.Is(next, "Div")) {
      if ((node.op == "Sub" || node.op == "Div") && node.inputs[0] != value) return false;
      const auto c = PerChannel(e_, e_.OtherInput(next, value), channels_, rank_);
      if (!c || ElseIsActivation(value, next)) return false;
      for (size_t i = 0; i < c->size(); ++i) {
        const double v = (*c)[i];
        if (node.op == "Mul" || node.op == "Div") {
          next_affine.scale[i] = node.op == "Mul" ? affine.scale[i] * v : affine.scale[i] / v;
          next_affine.shift[i] = node.op == "Mul" ? affine.shift[i] * v : affine.shift[i] / v;
        } else {
          next_affine.shift[i] = node.op == "Add" ? affine.shift[i] + v : affine.shift[i] - v;
        }
      }
    } else {
      return false;
    }
    const auto finite = [](const std::vector<double>& values) {
      return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    };
    // 1 / 0 belongs to the model; in a weight of 0 it would become NaN.
    if (!finite(next_affine.scale) || !finite(next_affine.shift)) return false;
    affine = std::move(next_affine);
    affine.used = true;
    value = node.outputs[0];
    taken.push_back(next);
    return true;
  }

  // x + 3 -> Clip: the start of a HardSigmoid that the activation match takes whole.
  bool ElseIsActivation(ValueId value, int next) {
    return e_.Is(next, "Add") && MatchActivation(e_, value, channels_, false).has_value();
  }

  ValueId TakeResidual(ValueId& value, std::vector<int>& taken, const Shape& shape) {
    const int next = e_.SoleConsumer(value);
    if (!e_.Is(next, "Add")) return kNoValue;
    const ValueId other = e_.OtherInput(next, value);
    if (other == value || other == kNoValue || e_.graph().is_constant(other)) return kNoValue;
    const auto other_shape = e_.ShapeOf(other);
    if (!other_shape || !(*other_shape == shape) || e_.info(other).dtype != e_.info(value).dtype)
      return kNoValue;
    value = e_.node(next).outputs[0];
    taken.push_back(next);
    return other;
  }

  ValueId ScaledWeight(ValueId weight, const Affine& affine, bool transposed, const Node& conv) {
    const Tensor& w = *e_.info(weight).constant;
    Tensor scaled = Tensor::Host(w.dtype(), w.shape());
    const int64_t groups = conv.attributes.Int("group", 1);
    const int64_t inner = w.shape().Product(2, w.shape().rank());
    const int64_t d0 = w.shape()[0];
    const int64_t d1 = w.shape()[1];
    for (int64_t i = 0; i < d0; ++i) {
      for (int64_t j = 0; j < d1; ++j) {
        // Conv: [out, in/g]; ConvTranspose: [in, out/g], group of input i is i / (in/g).
        const int64_t channel = transposed ? i / (d0 / groups) * d1 + j : i;
        const double scale = affine.scale[static_cast<size_t>(channel)];
        for (int64_t k = 0; k < inner; ++k) {
          const int64_t at = (i * d1 + j) * inner + k;
          SetElementFromDouble(scaled, at, ElementAsDouble(w, at) * scale);
        }
      }
    }
    return e_.graph().AddConstant(e_.graph().value(weight).name + "/scaled", std::move(scaled));
  }

  ValueId ShiftedBias(ValueId bias, ValueId weight, const Affine& affine) {
    Tensor shifted = Tensor::Host(e_.info(weight).dtype, Shape{channels_});
    for (int64_t c = 0; c < channels_; ++c) {
      const double b = bias == kNoValue ? 0.0 : ElementAsDouble(*e_.info(bias).constant, c);
      SetElementFromDouble(
          shifted, c,
          b * affine.scale[static_cast<size_t>(c)] + affine.shift[static_cast<size_t>(c)]);
    }
    return e_.graph().AddConstant(e_.graph().value(weight).name + "/bias", std::move(shifted));
  }

  GraphEditor e_;
  int64_t channels_ = 0;
  int rank_ = 0;
};

void Run(Graph& graph, std::vector<PassNote>& notes) {
  ConvFuser(graph, notes).Run();
}

const RegisterPass registered(
    {.name = "ConvBnAct",
     .summary = "Conv + BatchNormalization or per-channel scale/shift + residual Add + activation",
     .order = 20,
     .run = Run});

}  // namespace
}  // namespace whimbrel
