// The rules of data/README.md.

#include "whimbrel/migrate/scan_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "whimbrel/migrate/ascend_ops.h"

namespace whimbrel {
namespace {

const ValueInfo* InputInfo(const Graph& graph, const Node& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return nullptr;
  return &graph.value(node.inputs[i]).info;
}

// A left-out input counts as known.
bool ValueKnown(const Graph& graph, const Node& node, size_t i) {
  const ValueInfo* info = InputInfo(graph, node, i);
  if (info == nullptr) return true;
  return info->constant != nullptr || (info->elements && AllKnown(*info->elements));
}

int RankOf(const Graph& graph, const Node& node, size_t i) {
  const ValueInfo* info = InputInfo(graph, node, i);
  return info == nullptr ? -1 : info->rank();
}

bool HasNegative(const Tensor& tensor) {
  if (!IsInteger(tensor.dtype())) return false;
  const auto values = IntegerValues(tensor);
  return std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
}

// Notes that speak of every node of the op.
std::string AlwaysHit(const Graph&, const Node&) {
  return "every node";
}

std::string ConvHits(const Graph& graph, const Node& node) {
  return RankOf(graph, node, 1) >= 5 || RankOf(graph, node, 0) >= 5 ? "3D convolution" : "";
}

std::string ConvTransposeHits(const Graph& graph, const Node& node) {
  if (!ConvHits(graph, node).empty()) return "3D";
  const auto padding = node.attributes.Ints("output_padding");
  const auto strides = node.attributes.Ints("strides");
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t stride = i < strides.size() ? strides[i] : 1;
    if (padding[i] >= stride && padding[i] > 0) {
      return fmt::format("output_padding {} with stride {}", padding[i], stride);
    }
  }
  return "";
}

std::string GatherHits(const Graph& graph, const Node& node) {
  const ValueInfo* indices = InputInfo(graph, node, 1);
  if (indices == nullptr || indices->constant == nullptr) return "";
  return HasNegative(*indices->constant) ? "negative indices" : "";
}

std::string PadHits(const Graph& graph, const Node& node) {
  const std::string_view mode = node.attributes.String("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge")
    return fmt::format("mode {}", mode);
  return ValueKnown(graph, node, 1) ? "" : "pads are computed at run time";
}

std::string ReshapeHits(const Graph& graph, const Node& node) {
  return ValueKnown(graph, node, 1) ? "" : "the shape is computed from data at run time";
}

constexpr std::array<std::string_view, 4> kResizeTransforms{"half_pixel", "align_corners",
                                                            "asymmetric", "pytorch_half_pixel"};

std::string ResizeHits(const Graph& graph, const Node& node) {
  const std::string_view mode = node.attributes.String("mode", "nearest");
  if (mode == "cubic") return "mode cubic";
  // Opset 10 has no such attribute and means asymmetric.
  const std::string_view transform =
      node.attributes.String("coordinate_transformation_mode", "half_pixel");
  if (std::find(kResizeTransforms.begin(), kResizeTransforms.end(), transform) ==
      kResizeTransforms.end()) {
    return fmt::format("coordinate_transformation_mode {}", transform);
  }
  if (mode == "linear" && RankOf(graph, node, 0) >= 5) return "3D linear";
  const bool opset_10 = node.opset < 11;
  const bool known = opset_10 ? ValueKnown(graph, node, 1)
                              : ValueKnown(graph, node, 2) && ValueKnown(graph, node, 3);
  return known ? "" : "scales or sizes are computed at run time";
}

std::string ScatterNdHits(const Graph&, const Node& node) {
  const std::string_view reduction = node.attributes.String("reduction", "none");
  return reduction == "none" ? "" : fmt::format("reduction {}", reduction);
}

std::string TopKHits(const Graph& graph, const Node& node) {
  return ValueKnown(graph, node, 1) ? "" : "k is computed at run time";
}

// Notes of the table that change a verdict. The others (Cast, Dropout, Gemm, MatMul, Softmax) tell
// of things that ATC does by itself; Einsum, If and LSTM are no AI Core ops anyway.
struct LimitRule {
  std::string_view op;
  std::string (*hits)(const Graph&, const Node&);  // what of the node, empty when it does not
};
constexpr LimitRule kLimitRules[] = {
    {"Conv", ConvHits},
    {"ConvTranspose", ConvTransposeHits},
    {"Gather", GatherHits},
    {"Loop", AlwaysHit},
    {"NonMaxSuppression", AlwaysHit},
    {"NonZero", AlwaysHit},
    {"Pad", PadHits},
    {"Reshape", ReshapeHits},
    {"Resize", ResizeHits},
    {"ScatterND", ScatterNdHits},
    {"TopK", TopKHits},
};

NodeVerdict JudgeNotTaken(const AscendOp& known) {
  if (!known.standard) {
    return {Verdict::kCustom, "ATC has no parser for it", "weeks"};
  }
  const auto& body = FunctionBody(known.op);
  if (body.empty()) {
    return {Verdict::kCustom, "ATC has no parser for it, and ONNX gives it no function body",
            "weeks"};
  }
  const std::string ops = fmt::format("{}", fmt::join(body, ", "));
  if (BodyIsDirect(known.op)) {
    return {Verdict::kAdapt,
            "ATC has no parser for it; its ONNX function body needs only direct ops: " + ops,
            "hours"};
  }
  return {Verdict::kCustom,
          "ATC has no parser for it, and its function body needs ops that are not direct: " + ops,
          "weeks"};
}

std::string TypeMisfit(const Graph& graph, const Node& node) {
  const auto& formals = node.schema->inputs;
  for (size_t i = 0; i < node.inputs.size() && !formals.empty(); ++i) {
    const Formal& formal = formals[std::min(i, formals.size() - 1)];
    const ValueInfo* info = InputInfo(graph, node, i);
    if (info == nullptr || info->dtype == DType::kUndefined) continue;
    const bool fits =
        static_cast<unsigned>(info->dtype) < 32 && (TypeBit(info->dtype) & formal.types) != 0;
    if (!fits)
      return fmt::format("no kernel takes {} for input {}", DTypeName(info->dtype), formal.name);
  }
  return "";
}

}  // namespace

std::string_view DomainName(const Node& node) {
  return node.domain.empty() ? std::string_view("ai.onnx") : std::string_view(node.domain);
}

NodeVerdict JudgeForCpu(const Graph& graph, const Node& node) {
  const Registry& registry = Registry::Get();
  if (node.schema == nullptr) {
    if (!registry.HasAnyVersion(node.domain, node.op)) {
      return {Verdict::kCustom, "not in the op registry ('whimbrel ops' lists it)", "weeks"};
    }
    return {Verdict::kCustom,
            fmt::format("the op registry has it at other versions than {}", node.opset), "days"};
  }
  if (registry.Kernels(node.domain, node.op, DeviceKind::kCpu).empty()) {
    return {Verdict::kCustom, "declared in the op registry, without a kernel", "days"};
  }
  if (const std::string misfit = TypeMisfit(graph, node); !misfit.empty()) {
    return {Verdict::kCustom, misfit, "days"};
  }
  return {Verdict::kDirect, "", "none"};
}

NodeVerdict JudgeForAscend910b(const Graph& graph, const Node& node) {
  const AscendOp* known = FindAscendOp(DomainName(node), node.op);
  if (known == nullptr) {
    return {Verdict::kCustom,
            KnownAscendDomain(DomainName(node))
                ? fmt::format("op {} of domain {} is not known", node.op, DomainName(node))
                : fmt::format("domain {} is not known", DomainName(node)),
            "weeks"};
  }
  if (!known->taken()) return JudgeNotTaken(*known);
  if (known->ai_core == "not-AICore") {
    return {Verdict::kAdapt, "runs on AI CPU or host, not on AI Core",
            node.branches.empty() ? "hours" : "days"};
  }
  if (node.domain.empty() && node.opset > kNewestAscendOpset) {
    return {Verdict::kAdapt,
            fmt::format("ATC knows opsets up to {}, the model uses {}: export it again",
                        kNewestAscendOpset, node.opset),
            "hours"};
  }
  for (const LimitRule& rule : kLimitRules) {
    if (rule.op != node.op || !node.domain.empty()) continue;
    if (const std::string hit = rule.hits(graph, node); !hit.empty()) {
      return {Verdict::kAdapt, fmt::format("{} ({})", known->limits, hit), "days"};
    }
  }
  std::string reason;
  if (known->ai_core == "composite") reason = "the parser expands it into AI Core ops";
  if (known->parsed == "Y(doc)") reason = "in the vendor's list of operators";
  return {Verdict::kDirect, reason, "none"};
}

}  // namespace whimbrel
