// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear between f32 and 8-bit integers, run by
// run, in either layout.

#include <algorithm>

#include <fmt/format.h>

#include "whimbrel/kernels/cpu/hwy_quantize.h"
#include "whimbrel/kernels/cpu/strided_copy.h"
#include "whimbrel/kernels/ops/quantized.h"

namespace whimbrel {
namespace {

// Elements that make waking a second thread worth it.
constexpr int64_t kGrain = 65536;

bool Accepts(const OpCall& call, std::string* why, const Tensor& floats, const Tensor& integers) {
  if (floats.dtype() != DType::kFloat || call.x(1).dtype() != DType::kFloat) {
    *why = "data or scale is not f32";
  } else if ((TypeBit(integers.dtype()) & kQuantized8) == 0) {
    *why = fmt::format("type {} is no 8-bit integer", DTypeName(integers.dtype()));
  } else if (call.attrs().Int("block_size", 0) != 0) {
    *why = "blocks of elements share a scale";
  } else if (const int64_t precision = call.attrs().Int("precision", 0);
             precision != 0 && static_cast<DType>(precision) != DType::kFloat) {
    *why = "the quotient is rounded to another type than f32";
  } else {
    return true;
  }
  return false;
}

bool AcceptsQuantize(const OpCall& call, std::string* why) {
  return Accepts(call, why, call.x(0), call.y(0));
}

bool AcceptsDequantize(const OpCall& call, std::string* why) {
  return Accepts(call, why, call.y(0), call.x(0));
}

// Calls run(offset, count, scales) for pieces of x, in the order of memory, that have one scale or
// neighbouring ones.
template <typename Q, typename Run>
void EachRun(const OpCall& call, Run run) {
  const Tensor& x = call.x(0);
  const float* scale = call.x(1).data<float>();
  const Q* zero = call.has(2) ? call.x(2).data<Q>() : nullptr;
  if (x.elements() == 0) return;
  if (!ScaleLayoutOf(call).per_axis) {
    ParallelFor(x.elements(), kGrain, [&](int64_t begin, int64_t end) {
      run(begin, end - begin, RunScales<Q>{scale, zero, false});
    });
    return;
  }
  const Shape shape = MemoryShape(x);
  const int rank = shape.rank();
  const int logical =
      rank == 1 ? 0 : NormalizeAxis(call.attrs().Int("axis", 1), rank, call.schema->name);
  const int axis = MemoryAxis(x, logical);
  const int64_t length = shape[axis], inner = shape.Product(axis + 1, rank);
  const auto from = [&](int64_t at, bool each) {
    return RunScales<Q>{scale + at, zero == nullptr ? nullptr : zero + at, each};
  };
  const int64_t run_length = inner == 1 ? length : inner;
  ParallelFor(x.elements() / run_length, kGrain / run_length + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run(i * run_length, run_length, inner == 1 ? from(0, true) : from(i % length, false));
    }
  });
}

template <typename Q>
void QuantizeAs(const OpCall& call) {
  const float* x = call.x(0).data<float>();
  Q* y = call.y(0).data<Q>();
  EachRun<Q>(call, [&](int64_t at, int64_t count, const RunScales<Q>& scales) {
    QuantizeRun(x + at, scales, y + at, count);
  });
}

template <typename Q>
void DequantizeAs(const OpCall& call) {
  const Q* x = call.x(0).data<Q>();
  float* y = call.y(0).data<float>();
  EachRun<Q>(call, [&](int64_t at, int64_t count, const RunScales<Q>& scales) {
    DequantizeRun(x + at, scales, y + at, count);
  });
}

void RunQuantize(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  (call.y(0).dtype() == DType::kInt8 ? QuantizeAs<int8_t> : QuantizeAs<uint8_t>)(call);
}

void RunDequantize(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  (call.x(0).dtype() == DType::kInt8 ? DequantizeAs<int8_t> : DequantizeAs<uint8_t>)(call);
}

// One range for each kGrain elements, so that the parts of a team do not meet.
int64_t Parts(const OpCall& call) {
  return (call.x(0).elements() + kGrain - 1) / kGrain;
}

size_t DynamicWorkspace(const OpCall& call) {
  return static_cast<size_t>(Parts(call)) * sizeof(DynamicRange);
}

void RunDynamic(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const float* x = call.x(0).data<float>();
  const int64_t elements = call.x(0).elements(), parts = Parts(call);
  auto* const ranges = static_cast<DynamicRange*>(static_cast<void*>(workspace.data()));
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      DynamicRange part;
      ExtendRange(x + i * kGrain, std::min(kGrain, elements - i * kGrain), part.low, part.high);
      ranges[i] = part;
    }
  });
  DynamicRange all;
  for (int64_t i = 0; i < parts; ++i) {
    all.Add(ranges[i].low);
    all.Add(ranges[i].high);
  }
  const float scale = all.scale();
  const uint8_t zero = all.zero_point();
  uint8_t* y = call.y(0).data<uint8_t>();
  ParallelFor(elements, kGrain, [&](int64_t begin, int64_t end) {
    QuantizeRun(x + begin, RunScales<uint8_t>{&scale, &zero, false}, y + begin, end - begin);
  });
  if (call.has_out(1)) call.y(1).data<float>()[0] = scale;
  if (call.has_out(2)) call.y(2).data<uint8_t>()[0] = zero;
}

WHIMBREL_REGISTER(Kernel{.op = "QuantizeLinear",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = AcceptsQuantize,
                         .run = RunQuantize});
WHIMBREL_REGISTER(Kernel{.op = "DequantizeLinear",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = AcceptsDequantize,
                         .run = RunDequantize});
WHIMBREL_REGISTER(Kernel{.op = "DynamicQuantizeLinear",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .workspace = DynamicWorkspace,
                         .run = RunDynamic});

}  // namespace
}  // namespace whimbrel
