// RotaryEmbedding: pairs (a, b) of the first elements of each head become (cos a - sin b, sin a +
// cos b), by the angles of their position.
//
// in   X             [batch, heads, seq, head size] or [batch, seq, heads * head size]
//                    f32 | f16 | bf16
//      cos_cache, sin_cache  [positions, dim / 2] with position_ids, else [batch, seq, dim / 2]
//      position_ids  [batch, seq] i64, optional
// attr interleaved   1: pairs are neighbours; 0 (default): halves of the rotated part
//      num_heads     int, needed for X of rank 3
//      rotary_embedding_dim  elements of a head that are rotated; 0 (default): all
// out  Y             like X
// Source: ONNX operator RotaryEmbedding (23); Su et al. 2021.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

enum Input : size_t { kX, kCos, kSin, kPositions };
constexpr TypeMask kTypes = TypeBit(DType::kFloat) | TypeBit(DType::kFloat16) | kBFloat16Type;
constexpr int64_t kMost = int64_t{1} << 31;

int64_t ReadHeads(std::string_view op, const Attributes& attributes) {
  const int64_t heads = attributes.Int("num_heads", 0);
  if (heads < 1 || heads > kMost) {
    throw Error(Code::kInvalidData, fmt::format("{}: num_heads is {}", op, heads),
                "X of rank 3 needs it to find the heads");
  }
  return heads;
}

// Elements of a head that are rotated.
int64_t ReadRotated(std::string_view op, const Attributes& attributes, int64_t head_size) {
  const int64_t wanted = attributes.Int("rotary_embedding_dim", 0);
  const int64_t rotated = wanted == 0 ? head_size : wanted;
  if (rotated < 0 || rotated > head_size || rotated % 2 != 0) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: {} of {} elements of a head cannot be rotated in pairs", op,
                            rotated, head_size));
  }
  return rotated;
}

void Infer(InferContext& c) {
  InferLikeFirst(c);
  if (!c.in(kX).dims) return;
  const Dims& x = *c.in(kX).dims;
  if (x.size() != 3 && x.size() != 4) c.Fail("X must have rank 3 or 4, is " + ToString(x));
  const bool packed = x.size() == 3;
  const Dim& seq = x[packed ? 1 : 2];
  Dim head = x.back();
  if (packed) {
    const int64_t heads = ReadHeads(c.schema().name, c.attrs());
    if (head.known() && head.value() % heads != 0)
      c.Fail(fmt::format("{} elements do not divide into {} heads", head.value(), heads));
    head = FloorDiv(head, Dim(heads));
  }
  Dim half;
  if (head.known()) {
    half = ReadRotated(c.schema().name, c.attrs(), head.value()) / 2;
  }
  const Dims table = c.has(kPositions) ? Dims{Dim(), half} : Dims{x[0], seq, half};
  CheckDims(c, kCos, table);
  CheckDims(c, kSin, table);
  CheckDims(c, kPositions, {x[0], seq});
}

void CheckPositions(const OpCall& call) {
  if (!call.has(kPositions)) return;
  const int64_t rows = std::min(call.x(kCos).shape()[0], call.x(kSin).shape()[0]);
  for (int64_t position : call.x(kPositions).values<int64_t>()) {
    if (position >= 0 && position < rows) continue;
    throw Error(Code::kInvalidData, fmt::format("{}: position {} of a table with {} rows",
                                                call.schema->name, position, rows));
  }
}

template <typename T>
void RunTyped(const OpCall& call) {
  const Shape& shape = call.x(kX).shape();
  const bool packed = shape.rank() == 3, interleaved = call.attrs().Int("interleaved", 0) != 0;
  const int64_t heads = packed ? ReadHeads(call.schema->name, call.attrs()) : shape[1];
  const int64_t seq = shape[packed ? 1 : 2], size = packed ? shape[2] / heads : shape[3];
  const int64_t rotated = ReadRotated(call.schema->name, call.attrs(), size), half = rotated / 2;
  const T* x = call.x(kX).template data<T>();
  const T* cosines = call.x(kCos).template data<T>();
  const T* sines = call.x(kSin).template data<T>();
  const int64_t* positions =
      call.has(kPositions) ? call.x(kPositions).template data<int64_t>() : nullptr;
  T* y = call.y(0).template data<T>();
  const int64_t rows = size == 0 ? 0 : call.x(kX).elements() / size;
  ParallelFor(rows, 4096 / std::max<int64_t>(size, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // rows go batch, head, step in rank 4 and batch, step, head in rank 3
      const int64_t batch = row / (heads * seq);
      const int64_t step = packed ? row / heads % seq : row % seq;
      const int64_t place = batch * seq + step;
      const int64_t angle = (positions == nullptr ? place : positions[place]) * half;
      const T* from = x + row * size;
      T* to = y + row * size;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
        const double cosine = Widen(cosines[angle + i]), sine = Widen(sines[angle + i]);
        const double a = Widen(from[first]), b = Widen(from[second]);
        to[first] = Narrow<T>(cosine * a - sine * b);
        to[second] = Narrow<T>(sine * a + cosine * b);
      }
      for (int64_t i = rotated; i < size; ++i) to[i] = from[i];
    }
  });
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  CheckPositions(call);
  DispatchReference<kTypes>(call, call.x(kX).dtype(), [&]<typename T>() { RunTyped<T>(call); });
}

Cost RotationCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops *= 3;
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "RotaryEmbedding",
    .since = 23,
    .inputs = {{.name = "X", .types = kTypes, .group = 1},
               {.name = "cos_cache", .types = kTypes, .group = 1},
               {.name = "sin_cache", .types = kTypes, .group = 1},
               {.name = "position_ids", .types = TypeBit(DType::kInt64), .optional = true}},
    .outputs = {{.name = "Y", .types = kTypes, .group = 1}},
    .attributes = {{.name = "interleaved",
                    .type = AttributeType::kInt,
                    .note = "1: pairs are neighbours; 0 (default): halves"},
                   {.name = "num_heads",
                    .type = AttributeType::kInt,
                    .note = "needed for X of rank 3"},
                   {.name = "rotary_embedding_dim",
                    .type = AttributeType::kInt,
                    .note = "rotated elements of a head; 0 (default): all"}},
    .infer = Infer,
    .cost = RotationCost,
    .samples = {"f32:2x4x8x16 f32:2x8x8@-1..1 f32:2x8x8@-1..1",
                "f32:2x4x3x8 f32:50x4@-1..1 f32:50x4@-1..1 i64:2x3@0..49",
                "f32:2x3x24 f32:50x4@-1..1 f32:50x4@-1..1 i64:2x3@0..49 num_heads=3",
                "f32:1x1x1x2 f32:1x1x1 f32:1x1x1", "f32:2x4x3x8 f32:2x3x4 f32:2x3x4 interleaved=1",
                "f32:2x4x3x8 f32:2x3x2 f32:2x3x2 rotary_embedding_dim=4",
                "f32:0x4x3x8 f32:0x3x4 f32:0x3x4", "f32:1x8x128x64 f32:1x128x32 f32:1x128x32",
                "f32:1x2x3x4 f32:1x3x2 f32:1x3x2 nan=1", "f16:2x4x3x8 f16:2x3x4 f16:2x3x4",
                "bf16:2x3x24 bf16:2x3x4 bf16:2x3x4 num_heads=3 interleaved=1"},
    .doc = "rotation of pairs by position"});
WHIMBREL_REGISTER(Kernel{.op = "RotaryEmbedding", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
