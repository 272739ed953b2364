// A oneDNN matmul with packed weights.

#include "whimbrel/kernels/cpu/onednn_projection.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

namespace whimbrel::onednn {

using dnnl::memory;

Projection::Projection(int64_t rows, int64_t depth, int64_t cols, const float* w, const float* bias,
                       ScratchPlan& scratch) {
  const memory::desc a = DenseDesc({rows, depth});
  const memory::desc packed({depth, cols}, memory::data_type::f32, memory::format_tag::any);
  const memory::desc y = DenseDesc({rows, cols});
  const memory::desc b = DenseDesc({1, cols});
  const dnnl::matmul::desc operation =
      bias != nullptr ? dnnl::matmul::desc(a, packed, b, y) : dnnl::matmul::desc(a, packed, y);
  const dnnl::matmul::primitive_desc desc(operation, UserScratch({}), Engine());
  primitive_.Create(dnnl::matmul(desc));
  a_ = primitive_.AddArgument(DNNL_ARG_SRC, desc.src_desc());
  y_ = primitive_.AddArgument(DNNL_ARG_DST, desc.dst_desc());
  scratchpad_ = primitive_.AddArgument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  scratchpad_at_ = scratch.Add(desc.scratchpad_desc().get_size());
  const memory::desc transposed({depth, cols}, memory::data_type::f32, memory::dims{1, depth});
  primitive_.AddFixed(DNNL_ARG_WEIGHTS, Reordered(transposed, w, desc.weights_desc()));
  bytes_ = desc.weights_desc().get_size();
  if (bias != nullptr) {
    primitive_.AddFixed(DNNL_ARG_BIAS, Reordered(b, bias, desc.bias_desc()));
    bytes_ += desc.bias_desc().get_size();
  }
}

void Projection::Run(const float* a, float* y, std::span<std::byte> workspace) {
  primitive_.Bind(a_, a);
  primitive_.Bind(y_, y);
  primitive_.Bind(scratchpad_, At(workspace, scratchpad_at_));
  primitive_.Run();
}

}  // namespace whimbrel::onednn

#endif
