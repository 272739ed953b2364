// ConvTranspose by oneDNN's matrix products: columns = x w for every tap, then each output sums the
// columns that meet it.
//
// oneDNN 2.6.3's own deconvolution takes 4.9 ms for 24 -> 24 channels, 2x2 stride 2 at 160x160
// and 3.1 ms for 24 -> 1 at 320x320 (one AVX-512 core); the forms here 0.67 and 0.5 ms. It is kept
// for groups.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/cpu/hwy_steps.h"
#include "whimbrel/kernels/ops/conv_common.h"

namespace whimbrel {
namespace {

using dnnl::memory;
using onednn::Primitive;
using onednn::ScratchPlan;

constexpr size_t kBias = 2;

enum class Form : uint8_t {
  kTiles,  // kernel = stride, nothing cut: each input gives a tile of its own, written in place
  kColumnTiles,  // the same through columns: runs too short for a product of their own
  kColumns,      // columns in scratch memory, then sums
  kPrimitive,    // dnnl::deconvolution, for groups
};

Form FormOf(const ConvGeometry& g) {
  if (g.groups > 1) return Form::kPrimitive;
  bool tiles = g.spatial <= 2;
  for (size_t i = 0; i < static_cast<size_t>(g.spatial); ++i) {
    tiles = tiles && g.kernel[i] == g.stride[i] && g.dilation[i] == 1 && g.pad_begin[i] == 0 &&
            g.out[i] == g.in[i] * g.stride[i];
  }
  if (!tiles) return Form::kColumns;
  // Below 16 values oneDNN's product is mostly padding: 24 -> 1 at 320x320 1.0 ms, through columns
  // 0.5.
  return g.kernel[static_cast<size_t>(g.spatial - 1)] * g.out_channels < 16 ? Form::kColumnTiles
                                                                            : Form::kTiles;
}

// [in channels][taps][out channels] from ONNX's [in channels][out channels][taps].
std::vector<float> TapsBeforeChannels(const ConvGeometry& g, const std::vector<float>& w) {
  const auto taps = static_cast<size_t>(g.kernel_size());
  const auto outs = static_cast<size_t>(g.out_channels);
  std::vector<float> moved(w.size());
  for (size_t c = 0; c < static_cast<size_t>(g.in_channels); ++c) {
    for (size_t o = 0; o < outs; ++o) {
      for (size_t t = 0; t < taps; ++t)
        moved[(c * taps + t) * outs + o] = w[(c * outs + o) * taps + t];
    }
  }
  return moved;
}

dnnl::deconvolution_forward::primitive_desc GroupedDesc(const OpCall& call, const ConvGeometry& g) {
  const auto spatial = static_cast<size_t>(g.spatial);
  memory::dims weights{g.groups, g.group_out(), g.group_in()};
  memory::dims strides, dilations, begin, end;
  for (size_t i = 0; i < spatial; ++i) {
    weights.push_back(g.kernel[i]);
    strides.push_back(g.stride[i]);
    dilations.push_back(g.dilation[i] - 1);
    begin.push_back(g.pad_begin[i]);
    const int64_t extent = (g.kernel[i] - 1) * g.dilation[i] + 1;
    // negative where the output is padded
    end.push_back((g.in[i] - 1) * g.stride[i] + extent - g.pad_begin[i] - g.out[i]);
  }
  const memory::desc src = onednn::ActivationDesc(call.x(0));
  const memory::desc dst = onednn::ActivationDesc(call.y(0));
  const memory::desc any(weights, memory::data_type::f32, memory::format_tag::any);
  const memory::desc bias({g.out_channels}, memory::data_type::f32, memory::format_tag::x);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::deconvolution_direct;
  const dnnl::deconvolution_forward::desc desc =
      call.has(kBias) ? dnnl::deconvolution_forward::desc(kind, algorithm, src, any, bias, dst,
                                                          strides, dilations, begin, end)
                      : dnnl::deconvolution_forward::desc(kind, algorithm, src, any, dst, strides,
                                                          dilations, begin, end);
  return {desc, onednn::UserScratch({}), onednn::Engine()};
}

class ConvTransposeState final : public onednn::TeamState {
 public:
  explicit ConvTransposeState(const OpCall& call);
  size_t bytes() const override { return resident_bytes_; }
  size_t workspace_bytes() const { return scratch_.bytes(); }
  void Run(const OpCall& call, std::span<std::byte> workspace);

 private:
  struct Product {
    Primitive primitive;
    size_t src = 0, dst = 0, bias = 0, scratchpad = 0;
    size_t scratchpad_at = 0;
  };
  void PrepareTiles(const OpCall& call);
  void PrepareColumns(const OpCall& call);
  void PrepareGrouped(const OpCall& call);
  // Adds a product with its scratch memory; weights are packed into `packed`, which is booked.
  template <typename Desc, typename PrimitiveType>
  Product& AddProduct(const Desc& desc, const memory::desc& plain, const float* weights, bool bias);
  void RunTiles(const float* x, const float* bias, float* y, std::span<std::byte> workspace);
  void RunColumns(const float* x, const float* bias, float* y, std::span<std::byte> workspace);
  void SumRow(const float* columns, int64_t row, const float* bias, float* y) const;
  void CopyRow(const float* columns, int64_t row, const float* bias, float* y) const;

  ConvGeometry g_;
  Form form_;
  std::vector<Product> products_;
  std::vector<float> bias_;        // f32 copy of constant 16-bit bias
  std::vector<float> tiled_bias_;  // kTiles: the bias for each tap of a row, filled per run
  size_t resident_bytes_ = 0;
  bool alone_ = false, half_ = false;
  ScratchPlan scratch_;
  size_t columns_at_ = 0, src_at_ = 0, dst_at_ = 0;
  StepFunction add_ = FindStepFunction(StepOp::kAdd);
};

template <typename Desc, typename PrimitiveType>
ConvTransposeState::Product& ConvTransposeState::AddProduct(const Desc& desc,
                                                            const memory::desc& plain,
                                                            const float* weights, bool bias) {
  Product& p = products_.emplace_back();
  p.primitive.Create(PrimitiveType(desc));
  p.src = p.primitive.AddArgument(DNNL_ARG_SRC, desc.src_desc());
  p.dst = p.primitive.AddArgument(DNNL_ARG_DST, desc.dst_desc());
  p.primitive.AddFixed(DNNL_ARG_WEIGHTS, onednn::Reordered(plain, weights, desc.weights_desc()));
  resident_bytes_ += desc.weights_desc().get_size();
  if (bias) p.bias = p.primitive.AddArgument(DNNL_ARG_BIAS, desc.bias_desc());
  p.scratchpad = p.primitive.AddArgument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  p.scratchpad_at = scratch_.Add(desc.scratchpad_desc().get_size());
  return p;
}

ConvTransposeState::ConvTransposeState(const OpCall& call)
    : g_(ConvTransposeGeometryOf(call)),
      form_(FormOf(g_)),
      alone_(2 * static_cast<double>(call.x(0).elements()) * static_cast<double>(g_.group_out()) *
                 static_cast<double>(g_.kernel_size()) <
             onednn::kTeamFlops),
      half_(onednn::IsHalfWidth(call.x(0).dtype())) {
  const onednn::TeamScope team(alone_);
  switch (form_) {
    case Form::kTiles:
      PrepareTiles(call);
      break;
    case Form::kColumnTiles:
    case Form::kColumns:
      PrepareColumns(call);
      break;
    case Form::kPrimitive:
      PrepareGrouped(call);
      break;
  }
  if (!half_) return;
  if (call.has(kBias)) bias_ = onednn::FloatValues(call.x(kBias));
  src_at_ = scratch_.Add(static_cast<size_t>(call.x(0).elements()) * sizeof(float));
  dst_at_ = scratch_.Add(static_cast<size_t>(call.y(0).elements()) * sizeof(float));
}

// One product per kernel row: x [rows, width, in] by w [in, kernel width x out] into every
// kernel-height-th row of y.
void ConvTransposeState::PrepareTiles(const OpCall& call) {
  const std::vector<float> w = TapsBeforeChannels(g_, onednn::FloatValues(call.x(1)));
  const bool flat = g_.spatial == 1;
  const int64_t rows = g_.batch * (flat ? 1 : g_.in[0]);
  const int64_t width = g_.in[flat ? 0 : 1], kernel_rows = flat ? 1 : g_.kernel[0];
  const int64_t run = g_.kernel[flat ? 0 : 1] * g_.out_channels;
  const memory::desc a = onednn::DenseDesc({rows, width, g_.in_channels});
  const memory::desc b = onednn::DenseDesc({1, g_.in_channels, run});
  const memory::desc c({rows, width, run}, memory::data_type::f32,
                       memory::dims{kernel_rows * width * run, run, 1});
  const auto attr = onednn::UserScratch({});
  const bool bias = call.has(kBias);
  const dnnl::matmul::desc operation =
      bias ? dnnl::matmul::desc(a, b, onednn::DenseDesc({1, 1, run}), c)
           : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc desc(operation, attr, onednn::Engine());
  for (int64_t row = 0; row < kernel_rows; ++row) {
    std::vector<float> part;
    for (int64_t c_in = 0; c_in < g_.in_channels; ++c_in) {
      const auto from = w.begin() + (c_in * kernel_rows + row) * run;
      part.insert(part.end(), from, from + run);
    }
    AddProduct<dnnl::matmul::primitive_desc, dnnl::matmul>(desc, b, part.data(), bias);
  }
  if (bias) tiled_bias_.resize(static_cast<size_t>(run));
}

void ConvTransposeState::PrepareColumns(const OpCall& call) {
  const std::vector<float> w = TapsBeforeChannels(g_, onednn::FloatValues(call.x(1)));
  const int64_t columns = g_.kernel_size() * g_.out_channels;
  const memory::dims weight_dims{g_.in_channels, columns};
  const memory::desc a = onednn::DenseDesc({g_.in_size(), g_.in_channels});
  const memory::desc b(weight_dims, memory::data_type::f32, memory::format_tag::any);
  const memory::desc c = onednn::DenseDesc({g_.in_size(), columns});
  const dnnl::matmul::primitive_desc desc({a, b, c}, onednn::UserScratch({}), onednn::Engine());
  AddProduct<dnnl::matmul::primitive_desc, dnnl::matmul>(desc, onednn::DenseDesc(weight_dims),
                                                         w.data(), false);
  columns_at_ = scratch_.Add(desc.dst_desc().get_size());
}

void ConvTransposeState::PrepareGrouped(const OpCall& call) {
  const auto desc = GroupedDesc(call, g_);
  // ONNX: [groups][in of group][out of group][taps]
  const std::vector<float> w = onednn::FloatValues(call.x(1));
  const memory::dims dims = desc.weights_desc().dims();
  memory::dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 3;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[1] = stride;
  strides[2] = stride * g_.group_out();
  strides[0] = strides[2] * g_.group_in();
  AddProduct<dnnl::deconvolution_forward::primitive_desc, dnnl::deconvolution_forward>(
      desc, {dims, memory::data_type::f32, strides}, w.data(), call.has(kBias));
}

void ConvTransposeState::RunTiles(const float* x, const float* bias, float* y,
                                  std::span<std::byte> workspace) {
  for (size_t at = 0; at < tiled_bias_.size(); at += static_cast<size_t>(g_.out_channels)) {
    std::copy_n(bias, g_.out_channels, tiled_bias_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const int64_t row = g_.out[static_cast<size_t>(g_.spatial - 1)] * g_.out_channels;
  for (size_t i = 0; i < products_.size(); ++i) {
    Product& p = products_[i];
    p.primitive.Bind(p.src, x);
    p.primitive.Bind(p.dst, y + static_cast<int64_t>(i) * row);
    if (bias != nullptr) p.primitive.Bind(p.bias, tiled_bias_.data());
    p.primitive.Bind(p.scratchpad, onednn::At(workspace, p.scratchpad_at));
    p.primitive.Run();
  }
}

void ConvTransposeState::RunColumns(const float* x, const float* bias, float* y,
                                    std::span<std::byte> workspace) {
  Product& p = products_[0];
  auto* const columns = static_cast<float*>(onednn::At(workspace, columns_at_));
  const int64_t rows = g_.ProductOfSpatial(g_.out, g_.spatial - 1);
  const int64_t row_elements = g_.out[static_cast<size_t>(g_.spatial - 1)] * g_.out_channels;
  for (int64_t n = 0; n < g_.batch; ++n) {
    p.primitive.Bind(p.src, x + n * g_.in_size() * g_.in_channels);
    p.primitive.Bind(p.dst, columns);
    p.primitive.Bind(p.scratchpad, onednn::At(workspace, p.scratchpad_at));
    p.primitive.Run();
    float* const image = y + n * rows * row_elements;
    ParallelFor(rows, 4096 / row_elements + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        float* const to = image + row * row_elements;
        form_ == Form::kColumnTiles ? CopyRow(columns, row, bias, to)
                                    : SumRow(columns, row, bias, to);
      }
    });
  }
}

// Output row `row` of tiles: each input's run of this kernel row.
void ConvTransposeState::CopyRow(const float* columns, int64_t row, const float* bias,
                                 float* y) const {
  const auto li = static_cast<size_t>(g_.spatial - 1);
  const int64_t height = li == 0 ? 1 : g_.kernel[0];
  const int64_t run = g_.kernel[li] * g_.out_channels, step = height * run;
  const float* from = columns + row / height * g_.in[li] * step + row % height * run;
  std::array<float, 16> added{};
  for (int64_t i = 0; bias != nullptr && i < run; ++i) {
    added[static_cast<size_t>(i)] = bias[i % g_.out_channels];
  }
  for (int64_t p = 0; p < g_.in[li]; ++p) {
    for (int64_t i = 0; i < run; ++i)
      y[p * run + i] = from[p * step + i] + added[static_cast<size_t>(i)];
  }
}

// y [width, out channels] of output row `row` (all axes but the last): bias, then every tap that
// meets it.
void ConvTransposeState::SumRow(const float* columns, int64_t row, const float* bias,
                                float* y) const {
  const int last = g_.spatial - 1;
  const auto li = static_cast<size_t>(last);
  const int64_t channels = g_.out_channels, taps = g_.kernel_size();
  const auto count = static_cast<size_t>(channels);
  for (int64_t q = 0; q < g_.out[li]; ++q) {
    if (bias != nullptr) {
      std::memcpy(y + q * channels, bias, count * sizeof(float));
    } else {
      std::memset(y + q * channels, 0, count * sizeof(float));
    }
  }
  const ChainStep step{.op = StepOp::kAdd, .operand = 1};
  const SpatialArray outer = Unflatten(row, g_.out, last);
  const int64_t outer_taps = g_.ProductOfSpatial(g_.kernel, last);
  for (int64_t outer_tap = 0; outer_tap < outer_taps; ++outer_tap) {
    const SpatialArray tap = Unflatten(outer_tap, g_.kernel, last);
    int64_t from = 0;  // input row
    bool meets = true;
    for (size_t i = 0; meets && i < li; ++i) {
      const int64_t scaled = outer[i] + g_.pad_begin[i] - tap[i] * g_.dilation[i];
      meets = scaled >= 0 && scaled % g_.stride[i] == 0 && scaled / g_.stride[i] < g_.in[i];
      from = from * g_.in[i] + scaled / g_.stride[i];
    }
    if (!meets) continue;
    for (int64_t k = 0; k < g_.kernel[li]; ++k) {
      const int64_t shift = k * g_.dilation[li] - g_.pad_begin[li];
      for (int64_t p = 0; p < g_.in[li]; ++p) {
        const int64_t q = p * g_.stride[li] + shift;
        if (q < 0) continue;
        if (q >= g_.out[li]) break;
        StepOperand column;
        column.data =
            columns + ((from * g_.in[li] + p) * taps + outer_tap * g_.kernel[li] + k) * channels;
        add_(step, y + q * channels, column, y + q * channels, count);
      }
    }
  }
}

void ConvTransposeState::Run(const OpCall& call, std::span<std::byte> workspace) {
  const onednn::TeamScope team(alone_);
  const DType type = call.x(0).dtype();
  const auto* x = call.x(0).data<float>();
  auto* y = call.y(0).data<float>();
  const float* bias = nullptr;
  if (call.has(kBias)) bias = half_ ? bias_.data() : call.x(kBias).data<float>();
  if (half_) {
    auto* const wide = static_cast<float*>(onednn::At(workspace, src_at_));
    ToFloat(type, x, wide, call.x(0).elements());
    x = wide;
    y = static_cast<float*>(onednn::At(workspace, dst_at_));
  }
  switch (form_) {
    case Form::kTiles:
      RunTiles(x, bias, y, workspace);
      break;
    case Form::kColumnTiles:
    case Form::kColumns:
      RunColumns(x, bias, y, workspace);
      break;
    case Form::kPrimitive: {
      Product& p = products_[0];
      p.primitive.Bind(p.src, x);
      p.primitive.Bind(p.dst, y);
      if (bias != nullptr) p.primitive.Bind(p.bias, bias);
      p.primitive.Bind(p.scratchpad, onednn::At(workspace, p.scratchpad_at));
      p.primitive.Run();
      break;
    }
  }
  if (half_) FromFloat(type, y, call.y(0).raw(), call.y(0).elements());
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
  for (const Tensor* t : {call.in[0], static_cast<const Tensor*>(call.out[0])}) {
    if (t->layout() != Layout::kChannelsLast) return "data are not channels-last";
  }
  if (!call.constant(1)) return "weights are not constant";
  if (onednn::IsHalfWidth(type) && call.has(kBias) && !call.constant(kBias)) {
    return "the 16-bit bias is not constant";
  }
  const ConvGeometry g = ConvTransposeGeometryOf(call);
  if (g.groups > 1) {
    const auto desc = GroupedDesc(call, g);
    if (std::string_view(desc.impl_info_str()).substr(0, 3) == "ref") {
      return "oneDNN has only its reference for this grouped case";
    }
  }
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
  return onednn::Guarded(call.schema->name,
                         [&] { return std::make_unique<ConvTransposeState>(call); });
}

size_t Workspace(const OpCall& call) {
  return static_cast<const ConvTransposeState*>(call.state)->workspace_bytes();
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  onednn::RunState<ConvTransposeState>(call, workspace);
}

WHIMBREL_REGISTER(Kernel{.op = "ConvTranspose",
                         .name = "onednn",
                         .rank = 100,
                         .isa = Isa::kAvx2,
                         .layout = LayoutRule::kChannelsLast,
                         .accepts = Accepts,
                         .workspace = Workspace,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace
}  // namespace whimbrel

#endif
