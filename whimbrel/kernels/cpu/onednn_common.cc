// The oneDNN engine and the wrappers that keep argument lists between runs.

#include "whimbrel/kernels/cpu/onednn_common.h"

#if defined(WHIMBREL_WITH_ONEDNN) && WHIMBREL_WITH_ONEDNN

#include <oneapi/dnnl/dnnl_debug.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/float_convert.h"
#include "whimbrel/kernels/cpu/hwy_steps.h"

namespace whimbrel::onednn {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

Tag TagOf(int rank, Layout layout) {
  const bool last = layout == Layout::kChannelsLast;
  switch (rank) {
    case 3:
      return last ? Tag::nwc : Tag::ncw;
    case 4:
      return last ? Tag::nhwc : Tag::nchw;
    default:
      return last ? Tag::ndhwc : Tag::ncdhw;
  }
}

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    // Must come before any primitive; it fails only when somebody else in the process was first.
    if (ActiveIsa() == Isa::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

void Primitive::Create(const dnnl::primitive& primitive) {
  primitive_ = primitive;
  stream_ = dnnl::stream(Engine());
  memories_.clear();
  arguments_.clear();
}

size_t Primitive::AddArgument(int argument, const dnnl::memory::desc& desc) {
  AddFixed(argument, dnnl::memory(desc, Engine(), DNNL_MEMORY_NONE));
  return memories_.size() - 1;
}

void Primitive::AddFixed(int argument, const dnnl::memory& memory) {
  memories_.push_back(memory);
  arguments_.push_back({argument, memory.get()});
}

void Primitive::Bind(size_t slot, const void* data) {
  // oneDNN takes inputs as void* too
  memories_[slot].set_data_handle(const_cast<void*>(data));
}

void Primitive::Run() const {
  compute_threads();  // settles this thread's team before oneDNN asks for it
  // The C call: the C++ one builds a new argument list on the heap each time.
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw Error(Code::kInternal, std::string("oneDNN: ") + dnnl_status2str(status), "");
  }
}

TeamScope::TeamScope(bool alone) : before_(compute_threads()), alone_(alone && before_ > 1) {
  if (alone_) SetComputeThreads(1);
}

TeamScope::~TeamScope() {
  if (alone_) SetComputeThreads(before_);
}

size_t ScratchPlan::Add(size_t bytes) {
  const size_t offset = bytes_;
  bytes_ += (bytes + 63) / 64 * 64;
  return offset;
}

dnnl::primitive_attr UserScratch(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attr;
  // oneDNN's own scratch memory breaks when one thread plans and another runs.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post_ops);
  return attr;
}

dnnl::memory::dims DimsOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

dnnl::memory::desc ActivationDesc(const Tensor& tensor) {
  return {DimsOf(tensor.shape()), Type::f32, TagOf(tensor.shape().rank(), tensor.layout())};
}

dnnl::memory::desc DenseDesc(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, Type::f32, strides};
}

dnnl::memory Reordered(const dnnl::memory::desc& from, const void* data,
                       const dnnl::memory::desc& to) {
  compute_threads();
  dnnl::memory source(from, Engine(), const_cast<void*>(data));
  dnnl::memory target(to, Engine());
  dnnl::stream stream(Engine());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
  return target;
}

bool AppendActivation(dnnl::post_ops& post_ops, const Activation& a) {
  using Algorithm = dnnl::algorithm;
  const auto alpha = static_cast<float>(a.alpha);
  const auto beta = static_cast<float>(a.beta);
  switch (a.kind) {
    case ActivationKind::kNone:
      return true;
    case ActivationKind::kRelu:
      post_ops.append_eltwise(1, Algorithm::eltwise_relu, 0, 0);
      return true;
    case ActivationKind::kClip:
      post_ops.append_eltwise(1, Algorithm::eltwise_clip_v2, alpha, beta);
      return true;
    case ActivationKind::kHardSigmoid:
      post_ops.append_eltwise(1, Algorithm::eltwise_linear, alpha, beta);
      post_ops.append_eltwise(1, Algorithm::eltwise_clip_v2, 0, 1);
      return true;
    case ActivationKind::kHardSwish:
      post_ops.append_eltwise(1, Algorithm::eltwise_hardswish, 0, 0);  // x relu6(x + 3) / 6
      return true;
    case ActivationKind::kSigmoid:
      post_ops.append_eltwise(1, Algorithm::eltwise_logistic, 0, 0);
      return true;
    case ActivationKind::kTanh:
      post_ops.append_eltwise(1, Algorithm::eltwise_tanh, 0, 0);
      return true;
    case ActivationKind::kLeakyRelu:
      post_ops.append_eltwise(1, Algorithm::eltwise_relu, alpha, 0);
      return true;
    case ActivationKind::kSwish:
      post_ops.append_eltwise(1, Algorithm::eltwise_swish, alpha, 0);
      return true;
    case ActivationKind::kPRelu:
      return false;
  }
  return false;
}

void ApplySlope(const Tensor& slope, float* y, int64_t rows, int64_t cols) {
  static const StepFunction prelu = FindStepFunction(StepOp::kPrelu);
  const ChainStep step{.op = StepOp::kPrelu, .operand = 1};
  StepOperand operand;
  if (slope.elements() == 1) {
    operand.scalar = *slope.data<float>();
  } else {
    operand.data = slope.data<float>();
  }
  ParallelFor(rows, 16384 / cols + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      prelu(step, y + r * cols, operand, y + r * cols, static_cast<size_t>(cols));
    }
  });
}

std::string ActivationObstacle(const Activation& a) {
  if (a.kind == ActivationKind::kClip && !(a.alpha <= a.beta)) {
    return "Clip's min is above its max";
  }
  return "";
}

std::vector<float> FloatValues(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  ToFloat(tensor.dtype(), tensor.raw(), values.data(), tensor.elements());
  return values;
}

}  // namespace whimbrel::onednn

#endif
