// Branches of If and rounds of Loop.

#include "whimbrel/graph/branch_runner.h"

#include <cstring>

#include <fmt/format.h>

namespace whimbrel {

void PoolAllocator::Allocate(Tensor& out, DType dtype, const Shape& shape) {
  const Tensor described = Tensor::Described(dtype, shape);
  out = Tensor(dtype, shape, Buffer::Allocate(device_, described.bytes()));
}

Tensor LoopScalar(const Graph& body, size_t input, const Tensor& scalar) {
  const ValueInfo& info = body.value(body.inputs.at(input)).info;
  return info.static_shape() ? scalar.Reshaped(ToShape(*info.dims)) : scalar;
}

void Executable::BranchRunner::Enter() {
  const Node& node = parent_.graph_->nodes[static_cast<size_t>(step_.node)];
  if (executable == nullptr) {
    throw Error(Code::kInvalidData,
                fmt::format("node {}: {} was taken, but it cannot work with these shapes: {}",
                            node.name, node.branches[index_].attribute, refused));
  }
  captures_.clear();
  for (int slot : step_.branch_inputs[index_]) captures_.push_back(&parent_.slot_tensor(slot));
  executable->BindCaptures(captures_);
}

void Executable::BranchRunner::HandOver(const Tensor& from, Tensor& output, size_t index) const {
  if (!output.has_data()) {
    PoolAllocator(parent_.device_).Allocate(output, from.dtype(), from.shape());
  } else if (output.dtype() != from.dtype() || !(output.shape() == from.shape())) {
    const Node& node = parent_.graph_->nodes[static_cast<size_t>(step_.node)];
    throw Error(
        Code::kInvalidData,
        fmt::format("node {}: output {} of {} is {}{}, the plan expects {}{}", node.name, index,
                    node.branches[index_].attribute, DTypeName(from.dtype()),
                    ToString(from.shape()), DTypeName(output.dtype()), ToString(output.shape())));
  }
  if (from.bytes() > 0) std::memcpy(output.raw(), from.raw(), from.bytes());
}

void Executable::BranchRunner::Run(Stream& stream, std::span<Tensor* const> outputs) {
  Enter();
  executable->RunAll(stream);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) HandOver(executable->output(i), *outputs[i], i);
  }
}

void Executable::LoopRunner::Run(Stream& stream, std::span<Tensor* const> outputs) {
  std::vector<Tensor> inputs;
  for (int slot : step_.inputs) inputs.push_back(slot < 0 ? Tensor() : parent_.slot_tensor(slot));
  RunOn(inputs, stream, outputs);
}

void Executable::LoopRunner::RunOn(std::span<const Tensor> inputs, Stream& stream,
                                   std::span<Tensor* const> outputs) {
  Enter();
  const auto given = [&](size_t i) { return i < inputs.size() && inputs[i].defined(); };
  const int64_t limit = given(0) ? ElementAsInt64(inputs[0], 0) : INT64_MAX;
  bool go_on = !given(1) || ElementAsDouble(inputs[1], 0) != 0;
  const size_t carried_count = inputs.size() > 2 ? inputs.size() - 2 : 0;
  const size_t scanned_count = executable->outputs() - 1 - carried_count;
  std::vector<Tensor> carried(
      inputs.begin() + static_cast<ptrdiff_t>(std::min<size_t>(2, inputs.size())), inputs.end());
  std::vector<std::vector<Tensor>> scanned(scanned_count);
  // What a round makes lies in the body's arena and is overwritten by the next one.
  const auto keep = [&](const Tensor& made) {
    Tensor copy;
    PoolAllocator(parent_.device_).Allocate(copy, made.dtype(), made.shape());
    if (made.bytes() > 0) std::memcpy(copy.raw(), made.raw(), made.bytes());
    return copy;
  };
  for (int64_t round = 0; go_on && round < limit; ++round) {
    std::vector<Tensor> body_inputs{LoopScalar(executable->graph(), 0, Tensor::Scalar(round)),
                                    LoopScalar(executable->graph(), 1, Tensor::Scalar(go_on))};
    body_inputs.insert(body_inputs.end(), carried.begin(), carried.end());
    executable->BindInputs(body_inputs);
    executable->RunAll(stream);
    go_on = ElementAsDouble(executable->output(0), 0) != 0;
    std::vector<Tensor> next;
    for (size_t i = 0; i < carried_count; ++i) next.push_back(keep(executable->output(1 + i)));
    for (size_t k = 0; k < scanned_count; ++k)
      scanned[k].push_back(keep(executable->output(1 + carried_count + k)));
    carried = std::move(next);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    if (i < carried_count) {
      HandOver(carried[i], *outputs[i], i);
      continue;
    }
    const std::vector<Tensor>& rounds = scanned[i - carried_count];
    std::vector<int64_t> dims{static_cast<int64_t>(rounds.size())};
    const ValueInfo& info = executable->graph().value(executable->graph().outputs[1 + i]).info;
    if (!rounds.empty()) {
      dims.insert(dims.end(), rounds[0].shape().dims().begin(), rounds[0].shape().dims().end());
    } else if (info.dims) {
      for (const Dim& d : *info.dims) dims.push_back(d.known() ? d.value() : 0);
    }
    Tensor stacked;
    PoolAllocator(parent_.device_)
        .Allocate(stacked, rounds.empty() ? info.dtype : rounds[0].dtype(),
                  Shape(std::span<const int64_t>(dims)));
    size_t at = 0;
    for (const Tensor& round : rounds) {
      if (!(round.shape() == rounds[0].shape())) {
        throw Error(
            Code::kInvalidData,
            fmt::format("scanned output {} is {} in one round and {} in another", i - carried_count,
                        ToString(rounds[0].shape()), ToString(round.shape())));
      }
      if (round.bytes() > 0)
        std::memcpy(static_cast<std::byte*>(stacked.raw()) + at, round.raw(), round.bytes());
      at += round.bytes();
    }
    HandOver(stacked, *outputs[i], i);
  }
}

}  // namespace whimbrel
