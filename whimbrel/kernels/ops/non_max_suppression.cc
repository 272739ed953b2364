// NonMaxSuppression: the best boxes of each class, without those that overlap a better one too much
//
// in   boxes   f32 [batch, n, 4]: two corners y1, x1, y2, x2 in any order, or centre and size x, y,
//              width, height
//      scores  f32 [batch, classes, n]
//      max_output_boxes_per_class  i64, optional, default 0 = no box at all
//      iou_threshold    f32 in [0, 1], optional, default 0; only an overlap above it suppresses
//      score_threshold  f32, optional; only scores above it count; absent = all
// attr center_point_box  int, default 0; 1 = centre form
// out  selected_indices  i64 [m, 3]: batch, class, box; by batch, class, falling score; of equal
//              scores the lower index first. A NaN score is never selected.
// Source: ONNX operator NonMaxSuppression (10, 11). Overlaps are computed in f32 in the order of
// ONNX Runtime, so that a box at the threshold falls the same way.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {
namespace {

void Infer(InferContext& c) {
  const auto& boxes = c.in(0).dims;
  const auto& scores = c.in(1).dims;
  const int64_t form = c.attrs().Int("center_point_box", 0);
  if (form != 0 && form != 1)
    c.Fail(fmt::format("center_point_box is {}, 0 or 1 is possible", form));
  if (boxes && (boxes->size() != 3 || ((*boxes)[2].known() && !(*boxes)[2].Is(4)))) {
    c.Fail("boxes must be [batch, n, 4], is " + ToString(*boxes));
  }
  if (scores && scores->size() != 3) {
    c.Fail("scores must be [batch, classes, n], is " + ToString(*scores));
  }
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.known() && b.known() && !a.Same(b);
  };
  if (boxes && scores && (differ((*boxes)[0], (*scores)[0]) || differ((*boxes)[1], (*scores)[2]))) {
    c.Fail(fmt::format("boxes {} and scores {} differ in batch or number of boxes",
                       ToString(*boxes), ToString(*scores)));
  }
  for (size_t i = 2; i < 5; ++i) {
    const auto& dims = c.in(i).dims;
    if (dims &&
        (dims->size() > 1 || (dims->size() == 1 && (*dims)[0].known() && !(*dims)[0].Is(1)))) {
      c.Fail(fmt::format("input {} must be a scalar or [1], is {}", i, ToString(*dims)));
    }
  }
  c.SetOut(0, DType::kInt64, Dims{Dim(), Dim(3)});
}

struct Box {
  float x_min, y_min, x_max, y_max;
};

Box BoxAt(const float* b, bool center) {
  if (center) {
    const float half_width = b[2] / 2;
    const float half_height = b[3] / 2;
    return {b[0] - half_width, b[1] - half_height, b[0] + half_width, b[1] + half_height};
  }
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}

bool Overlap(const Box& a, const Box& b, float threshold) {
  const float x_min = std::max(a.x_min, b.x_min);
  const float y_min = std::max(a.y_min, b.y_min);
  const float x_max = std::min(a.x_max, b.x_max);
  const float y_max = std::min(a.y_max, b.y_max);
  if (x_max <= x_min || y_max <= y_min) return false;
  const float both = (x_max - x_min) * (y_max - y_min);
  const float area_a = (a.x_max - a.x_min) * (a.y_max - a.y_min);
  const float area_b = (b.x_max - b.x_min) * (b.y_max - b.y_min);
  const float either = area_a + area_b - both;
  if (area_a <= 0 || area_b <= 0 || either <= 0) return false;
  return both / either > threshold;
}

struct Limits {
  int64_t most = 0;
  float iou = 0;
  float score = 0;
  bool any_score = true;
  bool center = false;
};

Limits ReadLimits(const OpCall& call) {
  Limits limits;
  const auto given = [&](size_t i) { return call.has(i) && call.x(i).elements() > 0; };
  if (given(2)) limits.most = std::max<int64_t>(call.x(2).data<int64_t>()[0], 0);
  if (given(3)) limits.iou = call.x(3).data<float>()[0];
  limits.any_score = !given(4);
  if (given(4)) limits.score = call.x(4).data<float>()[0];
  limits.center = call.attrs().Int("center_point_box", 0) == 1;
  if (!(limits.iou >= 0 && limits.iou <= 1)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("NonMaxSuppression: iou_threshold {} is outside [0, 1]", limits.iou));
  }
  return limits;
}

// Selects in one class; `picked` has room for all n boxes and starts with the selected ones after
// it.
int64_t Select(const float* boxes, const float* scores, int64_t n, const Limits& limits,
               int32_t* picked) {
  int64_t candidates = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool good = limits.any_score ? !std::isnan(scores[i]) : scores[i] > limits.score;
    if (good) picked[candidates++] = static_cast<int32_t>(i);
  }
  std::sort(picked, picked + candidates, [&](int32_t a, int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  int64_t count = 0;
  for (int64_t i = 0; i < candidates && count < limits.most; ++i) {
    const Box box = BoxAt(boxes + 4 * int64_t{picked[i]}, limits.center);
    bool keep = true;
    for (int64_t k = 0; keep && k < count; ++k) {
      keep = !Overlap(box, BoxAt(boxes + 4 * int64_t{picked[k]}, limits.center), limits.iou);
    }
    if (keep) picked[count++] = picked[i];
  }
  return count;
}

// The candidates of every class, and how many were selected.
size_t Workspace(const OpCall& call) {
  const Shape& scores = call.x(1).shape();
  return static_cast<size_t>(scores.elements()) * sizeof(int32_t) +
         static_cast<size_t>(scores.Product(0, 2)) * sizeof(int64_t);
}

void Run(const OpCall& call, std::span<std::byte> workspace, Stream& /*stream*/) {
  const Shape& scores = call.x(1).shape();
  const int64_t classes = scores[1];
  const int64_t n = scores[2];
  const Limits limits = ReadLimits(call);
  const int64_t groups = limits.most == 0 || n == 0 ? 0 : scores[0] * classes;
  if (groups > 0 && workspace.size() < Workspace(call)) {
    throw Error(Code::kInternal, "NonMaxSuppression: the workspace is too small");
  }
  if (n > INT32_MAX) throw Error(Code::kUnsupported, fmt::format("NonMaxSuppression: {} boxes", n));
  auto* counts = static_cast<int64_t*>(static_cast<void*>(workspace.data()));
  auto* picked = static_cast<int32_t*>(static_cast<void*>(counts + groups));
  ParallelFor(groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      counts[g] = Select(call.x(0).data<float>() + g / classes * n * 4,
                         call.x(1).data<float>() + g * n, n, limits, picked + g * n);
    }
  });
  int64_t total = 0;
  for (int64_t g = 0; g < groups; ++g) total += counts[g];
  call.ResizeOutput(0, DType::kInt64, Shape{total, 3});
  int64_t* out = call.y(0).data<int64_t>();
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < counts[g]; ++i) {
      *out++ = g / classes;
      *out++ = g % classes;
      *out++ = picked[g * n + i];
    }
  }
}

// Every pair of boxes of a class, at about 16 operations: an upper bound.
Cost NmsCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  const auto n = static_cast<double>(call.x(1).shape()[2]);
  cost.flops = 8 * static_cast<double>(call.x(1).elements()) * n;
  return cost;
}

constexpr TypeMask kFloat = TypeBit(DType::kFloat);

// Version 11 differs from 10 in its text only.
WHIMBREL_REGISTER(OpSchema{
    .name = "NonMaxSuppression",
    .since = 10,
    .inputs = {{.name = "boxes", .types = kFloat},
               {.name = "scores", .types = kFloat},
               {.name = "max_output_boxes_per_class",
                .types = TypeBit(DType::kInt64),
                .optional = true},
               {.name = "iou_threshold", .types = kFloat, .optional = true},
               {.name = "score_threshold", .types = kFloat, .optional = true}},
    .outputs = {{.name = "selected_indices", .types = TypeBit(DType::kInt64)}},
    .attributes = {{"center_point_box", AttributeType::kInt, false,
                    "default 0: corners; 1: centre, width, height"}},
    .infer = Infer,
    .cost = NmsCost,
    .samples =
        {"f32:1x6x4@0..1 f32:1x1x6@0..1 i64:1={3} f32:1={0.5} f32:1={0}",
         "f32:2x50x4@0..1 f32:2x3x50@0..1 i64:={10} f32:={0.4} f32:={0.25}",
         "f32:1x20x4@0..1 f32:1x2x20@0..1 i64:={20} f32:={0.3} f32:={0.1} center_point_box=1",
         "f32:1x1x4={0,0,1,1} f32:1x1x1={0.5} i64:1={1}", "f32:1x5x4 f32:1x1x5",
         "f32:1x0x4 f32:1x1x0 i64:1={5}", "f32:0x5x4 f32:0x2x5 i64:1={5} f32:1={0.5}",
         "f32:1x3x4={1,1,0,0,0,0,1,1,2,2,3,3} f32:1x1x3={0.5,0.5,0.5} i64:={1501274884} f32:={0.5}",
         "f32:1x3x4={0,0,1,1,0,0,0,0,0,0,2,2} f32:1x1x3={0.9,0.7,0.6} i64:={4} f32:={0} "
         "f32:={-inf}",
         "f32:1x8x4 f32:1x1x8 i64:1={8} f32:1={1} - nan=1",
         "f32:1x9x4@0..1 f32:1x1x9@0..1 i64:1={-1}",
         "f32:1x2000x4@0..640 f32:1x4x2000@0..1 i64:1={100} f32:1={0.45} f32:1={0.25}"},
});
WHIMBREL_REGISTER(Kernel{
    .op = "NonMaxSuppression", .name = "reference", .workspace = Workspace, .run = Run});

}  // namespace
}  // namespace whimbrel
