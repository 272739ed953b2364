// One-off evaluation of an op.

#include "whimbrel/kernels/evaluate.h"

#include <fmt/format.h>

namespace whimbrel {
namespace {

// Values up to this size are handed to inference: shapes, axes, sizes, paddings.
constexpr int64_t kMaxInferElements = 1024;

class HostAllocator final : public OutputAllocator {
 public:
  void Allocate(Tensor& out, DType dtype, const Shape& shape) override {
    out = Tensor::Host(dtype, shape);
  }
};

class InlineStreamImpl final : public Stream {
 public:
  void Run(FunctionRef<void()> fn) override { fn(); }
  void Record(Event& /*event*/) override {}
  void Wait(Event& event) override { event.Synchronize(); }
  void CopyAsync(void* to, const void* from, size_t bytes, CopyKind /*kind*/) override {
    std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
  }
  void Synchronize() override {}

 protected:
  void LaunchRaw(void (*call)(void*), const void* object, size_t /*bytes*/) override {
    call(const_cast<void*>(object));
  }
};

}  // namespace

Stream& InlineStream() {
  static InlineStreamImpl stream;
  return stream;
}

ValueInfo InfoOf(const Tensor& tensor) {
  ValueInfo info;
  if (!tensor.defined()) return info;
  info.dtype = tensor.dtype();
  info.dims = ToDims(tensor.shape());
  if (tensor.has_data() && tensor.elements() <= kMaxInferElements)
    info.constant = std::make_shared<const Tensor>(tensor);
  return info;
}

std::vector<Tensor> Evaluate(const Evaluation& e, const Kernel& kernel, Stream& stream) {
  std::vector<ValueInfo> inferred;
  if (e.inferred == nullptr) {
    std::vector<ValueInfo> infos;
    infos.reserve(e.inputs.size());
    for (const Tensor& t : e.inputs) infos.push_back(InfoOf(t));
    inferred = InferOutputs(*e.schema, *e.attributes, e.opset, infos, e.outputs);
  } else {
    inferred = *e.inferred;
  }
  std::vector<const Tensor*> in;
  for (const Tensor& t : e.inputs) in.push_back(t.defined() ? &t : nullptr);
  std::vector<Tensor> outputs(e.outputs);
  std::vector<Tensor*> out;
  for (size_t i = 0; i < e.outputs; ++i) {
    const ValueInfo& info = inferred[i];
    if (info.static_shape() && info.dtype != DType::kUndefined)
      outputs[i] = Tensor::Host(info.dtype, ToShape(*info.dims));
    out.push_back(&outputs[i]);
  }
  HostAllocator allocator;
  OpCall call{.schema = e.schema,
              .attributes = e.attributes,
              .opset = e.opset,
              .in = in,
              .out = out,
              .constant_inputs = e.constant_inputs,
              .subgraphs = e.subgraphs,
              .allocator = &allocator};
  std::string why;
  if (kernel.accepts != nullptr && !kernel.accepts(call, &why)) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: kernel {} declines: {}", e.schema->name, kernel.name, why));
  }
  std::unique_ptr<KernelState> state;
  if (kernel.prepare != nullptr) state = kernel.prepare(call);
  call.state = state.get();
  const size_t scratch = kernel.workspace == nullptr ? 0 : kernel.workspace(call);
  const auto workspace = Buffer::AllocateHost(scratch);
  kernel.run(call, {workspace->data(), scratch}, stream);
  stream.Synchronize();
  return outputs;
}

std::vector<Tensor> EvaluateReference(const Evaluation& evaluation, Stream& stream) {
  const Kernel* kernel =
      Registry::Get().Reference(evaluation.schema->domain, evaluation.schema->name);
  if (kernel == nullptr)
    throw Error(Code::kUnsupported,
                fmt::format("{} has no reference kernel", evaluation.schema->name));
  return Evaluate(evaluation, *kernel, stream);
}

}  // namespace whimbrel
