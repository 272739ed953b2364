// Conv, FusedConv by oneDNN: channels-last data, weights packed once, bias, residual and activation
// fused.
//
// Implementations picked by oneDNN 2.6.3 on AVX-512 and what they reach on one core (f32 peak 275
// GFLOP/s): brgconv 3x3 260, brgconv_1x1 210-263, jit_dw 110-200, first layer of 3 channels (jit)
// 220. Blocked layouts (nChw16c) were no faster except for depthwise 5x5 and 9x9 (190-210), which
// does not pay for reorders; a loop of our own (8 positions by 16 channels in registers) reached
// 60-136. Far off remains a 3x3 with one output channel: 15 of 16 lanes are padding (13 GFLOP/s).
// On AVX2: jit and jit_1x1 130, jit_dw 85-105.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/ops/conv_common.h"

namespace whimbrel {
namespace {

using dnnl::memory;
using onednn::Primitive;
using onednn::ScratchPlan;
using ConvDesc = dnnl::convolution_forward::primitive_desc;

constexpr size_t kBias = 2, kResidual = 3, kSlope = 4;

memory::dims Spatial(const ConvGeometry& g, const SpatialArray& values, int64_t shift = 0) {
  memory::dims dims(values.begin(), values.begin() + g.spatial);
  for (int64_t& d : dims) d += shift;
  return dims;
}

memory::dims WeightDims(const ConvGeometry& g) {
  memory::dims dims;
  if (g.groups > 1) dims.push_back(g.groups);
  dims.push_back(g.groups > 1 ? g.group_out() : g.out_channels);
  dims.push_back(g.group_in());
  const memory::dims kernel = Spatial(g, g.kernel);
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

// Axes of extent 1 under a kernel of extent 1 leave the bytes as they are and spoil the blocking: [512, 1]
// under 5x1 ran at 20 GFLOP/s as two axes (one output a row) and at 230 as one.
ConvGeometry Compact(const ConvGeometry& full) {
  ConvGeometry g = full;
  g.spatial = 0;
  for (int d = 0; d < full.spatial; ++d) {
    const auto from = static_cast<size_t>(d);
    const bool idle = full.in[from] == 1 && full.kernel[from] == 1 && full.pad_begin[from] == 0 &&
                      full.pad_end[from] == 0;
    const bool last_chance = g.spatial == 0 && d + 1 == full.spatial;
    if (idle && !last_chance) continue;
    const auto to = static_cast<size_t>(g.spatial++);
    for (SpatialArray ConvGeometry::*member :
         {&ConvGeometry::in, &ConvGeometry::out, &ConvGeometry::kernel, &ConvGeometry::stride,
          &ConvGeometry::dilation, &ConvGeometry::pad_begin, &ConvGeometry::pad_end}) {
      (g.*member)[to] = (full.*member)[from];
    }
  }
  return g;
}

memory::desc ChannelsLastDesc(int64_t batch, int64_t channels, const memory::dims& spatial) {
  memory::dims dims{batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  const auto tag = spatial.size() == 1   ? memory::format_tag::nwc
                   : spatial.size() == 2 ? memory::format_tag::nhwc
                                         : memory::format_tag::ndhwc;
  return {dims, memory::data_type::f32, tag};
}

bool StartsWith(const char* text, std::string_view prefix) {
  return std::string_view(text).substr(0, prefix.size()) == prefix;
}

// oneDNN's first choice is not its fastest here (one core, channels-last, AVX-512):
//   depthwise: brdgmm_dw 110 GFLOP/s, jit_dw 135 (20 or 24 channels: 56-72 against 112-142);
//   up to 4 channels a group: brgconv 196, jit 223 (3 -> 16, 3x3 stride 2).
std::string_view Slower(const ConvGeometry& g) {
  if (g.depthwise()) return "brdgmm_dw";
  if (g.group_in() <= 4) return "brgconv:";
  return "";
}

ConvDesc MakeDesc(const OpCall& call, const ConvGeometry& g) {
  dnnl::post_ops post_ops;
  if (call.has(kResidual)) post_ops.append_sum(1);
  onednn::AppendActivation(post_ops, ReadActivation(call.schema->name, call.attrs()));
  const auto attr = onednn::UserScratch(post_ops);
  const memory::desc src = ChannelsLastDesc(g.batch, g.in_channels, Spatial(g, g.in));
  const memory::desc dst = ChannelsLastDesc(g.batch, g.out_channels, Spatial(g, g.out));
  const memory::desc weights(WeightDims(g), memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias({g.out_channels}, memory::data_type::f32, memory::format_tag::x);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto strides = Spatial(g, g.stride), dilations = Spatial(g, g.dilation, -1);
  const auto begin = Spatial(g, g.pad_begin), end = Spatial(g, g.pad_end);
  const dnnl::convolution_forward::desc desc =
      call.has(kBias) ? dnnl::convolution_forward::desc(kind, algorithm, src, weights, bias, dst,
                                                        strides, dilations, begin, end)
                      : dnnl::convolution_forward::desc(kind, algorithm, src, weights, dst, strides,
                                                        dilations, begin, end);
  ConvDesc first(desc, attr, onednn::Engine());
  const std::string_view slower = Slower(g);
  if (!slower.empty() && StartsWith(first.impl_info_str(), slower)) {
    ConvDesc next(desc, attr, onednn::Engine());
    if (next.next_impl() && StartsWith(next.impl_info_str(), "jit") &&
        std::string_view(next.impl_info_str()).find("avx512") != std::string_view::npos) {
      return next;
    }
  }
  return first;
}

class ConvState final : public onednn::TeamState {
 public:
  explicit ConvState(const OpCall& call);
  size_t bytes() const override { return resident_bytes_; }
  size_t workspace_bytes() const { return scratch_.bytes(); }
  void Run(const OpCall& call, std::span<std::byte> workspace);

 private:
  ConvGeometry geometry_;
  Primitive conv_;
  Primitive pack_;           // weights that are not constant
  std::vector<float> bias_;  // f32 copy of constant half-width bias
  size_t resident_bytes_ = 0;
  bool half_ = false, alone_ = false, pack_in_run_ = false;
  ScratchPlan scratch_;
  size_t src_slot_ = 0, dst_slot_ = 0, bias_slot_ = 0, scratchpad_slot_ = 0, weights_slot_ = 0;
  size_t pack_from_slot_ = 0, pack_to_slot_ = 0;
  size_t scratchpad_at_ = 0, weights_at_ = 0, src_at_ = 0, dst_at_ = 0;
};

ConvState::ConvState(const OpCall& call)
    : geometry_(Compact(ConvGeometryOf(call))),
      half_(onednn::IsHalfWidth(call.x(0).dtype())),
      alone_(2 * geometry_.macs() < onednn::kTeamFlops),
      pack_in_run_(!call.constant(1)) {
  const onednn::TeamScope team(alone_);
  const ConvDesc desc = MakeDesc(call, geometry_);
  conv_.Create(dnnl::convolution_forward(desc));
  src_slot_ = conv_.AddArgument(DNNL_ARG_SRC, desc.src_desc());
  dst_slot_ = conv_.AddArgument(DNNL_ARG_DST, desc.dst_desc());
  scratchpad_slot_ = conv_.AddArgument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  scratchpad_at_ = scratch_.Add(desc.scratchpad_desc().get_size());
  const memory::desc plain = onednn::DenseDesc(WeightDims(geometry_));
  if (pack_in_run_) {
    pack_.Create(dnnl::reorder(
        {onednn::Engine(), plain, onednn::Engine(), desc.weights_desc(), onednn::UserScratch({})}));
    pack_from_slot_ = pack_.AddArgument(DNNL_ARG_FROM, plain);
    pack_to_slot_ = pack_.AddArgument(DNNL_ARG_TO, desc.weights_desc());
    weights_slot_ = conv_.AddArgument(DNNL_ARG_WEIGHTS, desc.weights_desc());
    weights_at_ = scratch_.Add(desc.weights_desc().get_size());
  } else {
    const std::vector<float> wide = half_ ? onednn::FloatValues(call.x(1)) : std::vector<float>();
    const void* values = half_ ? static_cast<const void*>(wide.data()) : call.x(1).raw();
    conv_.AddFixed(DNNL_ARG_WEIGHTS, onednn::Reordered(plain, values, desc.weights_desc()));
    resident_bytes_ += desc.weights_desc().get_size();
  }
  if (call.has(kBias)) {
    bias_slot_ = conv_.AddArgument(DNNL_ARG_BIAS, desc.bias_desc());
    if (half_) bias_ = onednn::FloatValues(call.x(kBias));
    resident_bytes_ += bias_.size() * sizeof(float);
  }
  if (half_) {
    src_at_ = scratch_.Add(desc.src_desc().get_size());
    dst_at_ = scratch_.Add(desc.dst_desc().get_size());
  }
}

void ConvState::Run(const OpCall& call, std::span<std::byte> workspace) {
  const onednn::TeamScope team(alone_);
  const DType type = call.x(0).dtype();
  const void* src = call.x(0).raw();
  void* dst = call.y(0).raw();
  if (half_) {
    auto* const wide = static_cast<float*>(onednn::At(workspace, src_at_));
    ToFloat(type, src, wide, call.x(0).elements());
    src = wide;
    dst = onednn::At(workspace, dst_at_);
  }
  // The primitive adds its sum to what stands in dst.
  if (call.has(kResidual) && call.x(kResidual).raw() != dst) {
    ToFloat(type, call.x(kResidual).raw(), static_cast<float*>(dst), call.y(0).elements());
  }
  if (pack_in_run_) {
    void* const packed = onednn::At(workspace, weights_at_);
    pack_.Bind(pack_from_slot_, call.x(1).raw());
    pack_.Bind(pack_to_slot_, packed);
    pack_.Run();
    conv_.Bind(weights_slot_, packed);
  }
  conv_.Bind(src_slot_, src);
  conv_.Bind(dst_slot_, dst);
  conv_.Bind(scratchpad_slot_, onednn::At(workspace, scratchpad_at_));
  if (call.has(kBias)) {
    conv_.Bind(bias_slot_, half_ ? static_cast<const void*>(bias_.data()) : call.x(kBias).raw());
  }
  conv_.Run();
  if (call.has(kSlope)) {
    onednn::ApplySlope(call.x(kSlope), static_cast<float*>(dst),
                       geometry_.batch * geometry_.out_size(), geometry_.out_channels);
  }
  if (half_) FromFloat(type, static_cast<const float*>(dst), call.y(0).raw(), call.y(0).elements());
}

std::string Obstacle(const OpCall& call) {
  const DType type = call.x(0).dtype();
  if ((TypeBit(type) & onednn::kTypes) == 0) {
    return fmt::format("type {} is not f32, f16 or bf16", DTypeName(type));
  }
  const int rank = call.x(0).shape().rank();
  if (rank < 3 || rank > 5) return fmt::format("{} spatial axes; 1 to 3 are taken", rank - 2);
  for (const Tensor* t : {call.in[0], call.in[1], static_cast<const Tensor*>(call.out[0])}) {
    if (t->elements() == 0) return "a tensor has no elements";
    if (t->elements() > INT32_MAX / 4) return "a tensor is larger than 2 GiB";
  }
  for (const Tensor* t : {call.in[0], static_cast<const Tensor*>(call.out[0]),
                          call.has(kResidual) ? call.in[kResidual] : call.in[0]}) {
    if (t->layout() != Layout::kChannelsLast) return "data and residual are not channels-last";
  }
  if (onednn::IsHalfWidth(type) && !call.constant(1)) return "16-bit weights are not constant";
  if (onednn::IsHalfWidth(type) && call.has(kBias) && !call.constant(kBias)) {
    return "the 16-bit bias is not constant";
  }
  if (onednn::IsHalfWidth(type) && call.has(kSlope)) return "the slope is 16 bits wide";
  std::string why = onednn::ActivationObstacle(ReadActivation(call.schema->name, call.attrs()));
  if (!why.empty()) return why;
  const ConvDesc desc = MakeDesc(call, Compact(ConvGeometryOf(call)));
  // it is slower than ours by far
  if (StartsWith(desc.impl_info_str(), "ref")) return "oneDNN has only its reference for this case";
  return "";
}

bool Accepts(const OpCall& call, std::string* why) {
  try {
    *why = Obstacle(call);
  } catch (const dnnl::error& e) {
    *why = std::string("oneDNN refuses the case: ") + e.what();
  }
  return why->empty();
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return onednn::Guarded(call.schema->name, [&] { return std::make_unique<ConvState>(call); });
}

size_t Workspace(const OpCall& call) {
  return static_cast<const ConvState*>(call.state)->workspace_bytes();
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  onednn::RunState<ConvState>(call, workspace);
}

WHIMBREL_REGISTER(Kernel{.op = "Conv",
                         .name = "onednn",
                         .rank = 100,
                         .isa = Isa::kAvx2,
                         .layout = LayoutRule::kChannelsLast,
                         .accepts = Accepts,
                         .workspace = Workspace,
                         .prepare = Prepare,
                         .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "FusedConv",
                         .domain = "whimbrel",
                         .name = "onednn",
                         .rank = 100,
                         .isa = Isa::kAvx2,
                         .layout = LayoutRule::kChannelsLast,
                         .in_place = uint64_t{1} << kResidual,
                         .accepts = Accepts,
                         .workspace = Workspace,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace
}  // namespace whimbrel

#endif
