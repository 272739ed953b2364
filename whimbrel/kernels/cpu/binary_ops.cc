// Comparisons and logic, and Add, Sub, Mul of integers, row by row over merged dims, in either
// layout.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_elementwise.h"
#include "whimbrel/kernels/cpu/hwy_rows_binary.h"
#include "whimbrel/kernels/cpu/simd_loop.h"

namespace whimbrel {
namespace {

constexpr int64_t kGrain = 65536;

struct NamedOp {
  std::string_view name;
  RowOp op;
  uint64_t in_place = 0;
};

constexpr NamedOp kOps[] = {
    {"Equal", RowOp::kEqual},
    {"Less", RowOp::kLess},
    {"LessOrEqual", RowOp::kLessOrEqual},
    {"Greater", RowOp::kGreater},
    {"GreaterOrEqual", RowOp::kGreaterOrEqual},
    {"And", RowOp::kAnd, 3},
    {"Or", RowOp::kOr, 3},
    {"Xor", RowOp::kXor, 3},
    {"Add", RowOp::kAdd, 3},
    {"Sub", RowOp::kSub, 3},
    {"Mul", RowOp::kMul, 3},
};

RowFunction FunctionOf(const OpCall& call) {
  const auto named = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const NamedOp& o) { return o.name == call.schema->name; });
  return FindRowFunction(named->op, call.x(0).dtype());
}

bool Accepts(const OpCall& call, std::string* why) {
  if (FunctionOf(call) != nullptr) return true;
  *why = fmt::format("there are no loops for {}", DTypeName(call.x(0).dtype()));
  return false;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  Tensor& y = call.y(0);
  if (y.elements() == 0) return;
  const RowFunction function = FunctionOf(call);
  const ElementwisePlan plan = PlanElementwise(y, call.in);
  const auto last = static_cast<size_t>(plan.rank) - 1;
  const int64_t columns = plan.dims[last];
  const std::array<int64_t, 2> step = {plan.strides[0][last], plan.strides[1][last]};
  const std::array<const std::byte*, 2> from = {static_cast<const std::byte*>(call.x(0).raw()),
                                                static_cast<const std::byte*>(call.x(1).raw())};
  auto* const to = static_cast<std::byte*>(y.raw());
  const auto in_bytes = static_cast<int64_t>(ItemSize(call.x(0).dtype()));
  const auto out_bytes = static_cast<int64_t>(ItemSize(y.dtype()));
  ParallelFor(plan.elements, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t column = i % columns;
      std::array<int64_t, 2> at = {column * step[0], column * step[1]};
      int64_t rest = i / columns;
      for (size_t d = last; d-- > 0;) {
        const int64_t index = rest % plan.dims[d];
        rest /= plan.dims[d];
        for (size_t k = 0; k < 2; ++k) at[k] += index * plan.strides[k][d];
      }
      const int64_t count = std::min(columns - column, end - i);
      function(from[0] + at[0] * in_bytes, step[0], from[1] + at[1] * in_bytes, step[1],
               to + i * out_bytes, count);
      i += count;
    }
  });
}

// Bools are 0 or 1.
void RunNot(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const bool* x = call.x(0).data<bool>();
  bool* y = call.y(0).data<bool>();
  ParallelFor(call.y(0).elements(), kGrain, [&](int64_t begin, int64_t end) {
    WHIMBREL_SIMD_LOOP
    for (int64_t i = begin; i < end; ++i) y[i] = !x[i];
  });
}

[[maybe_unused]] const bool registered = [] {
  for (const NamedOp& named : kOps) {
    Registry::Get().Add(Kernel{.op = named.name,
                               .name = "rows",
                               .rank = 50,
                               .layout = LayoutRule::kFollow,
                               .in_place = named.in_place,
                               .accepts = Accepts,
                               .run = Run});
  }
  return true;
}();
WHIMBREL_REGISTER(Kernel{.op = "Not",
                         .name = "rows",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .in_place = 1,
                         .run = RunNot});

}  // namespace
}  // namespace whimbrel
