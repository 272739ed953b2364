// Col2Im: y[n, c, p..] = the sum of x[n, (c, k..), (l..)] over the blocks l and places k in them
// with l stride - pad + k dilation = p
//
// in   input        any type, [N, C * places of a block, blocks]
//      image_shape  i64 [spatial]
//      block_shape  i64 [spatial]
// attr strides, dilations  ints, default 1
//      pads         ints, default 0: begins, then ends
// out  output       [N, C, image_shape..]
// bool is summed as or. Source: ONNX operator Col2Im (18).

#include <optional>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/axes.h"
#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {
namespace {

constexpr int kMaxSpatialDims = kMaxRank - 2;
constexpr int64_t kLimit = int64_t{1} << 31;  // of every figure, so that sums and products fit

struct Blocks {
  int spatial = 0;
  std::array<int64_t, kMaxSpatialDims> image{}, block{}, stride{}, dilation{}, pad{}, count{};
  int64_t places = 1;  // of a block
  int64_t blocks = 1;
};

[[noreturn]] void Fail(const std::string& what) {
  throw Error(Code::kInvalidData, "Col2Im: " + what);
}

int64_t Checked(std::string_view name, int64_t value, int64_t least) {
  if (value < least || value > kLimit) {
    Fail(fmt::format("{} has {}, it lies in [{}, 2^31]", name, value, least));
  }
  return value;
}

int64_t AttributeAt(const Attributes& attributes, std::string_view name, size_t count, size_t i,
                    int64_t otherwise) {
  const auto values = attributes.Ints(name);
  if (!attributes.Has(name)) return otherwise;
  if (values.size() != count) {
    Fail(fmt::format("{} has {} values, {} are wanted", name, values.size(), count));
  }
  return Checked(name, values[i], otherwise);
}

Blocks MakeBlocks(const Attributes& attributes, std::span<const int64_t> image,
                  std::span<const int64_t> block) {
  if (image.size() != block.size() || image.empty() ||
      image.size() > static_cast<size_t>(kMaxSpatialDims)) {
    Fail(fmt::format("image_shape has {} values and block_shape {}: as many, 1 to {}", image.size(),
                     block.size(), kMaxSpatialDims));
  }
  const size_t n = image.size();
  Blocks b;
  b.spatial = static_cast<int>(n);
  for (size_t d = 0; d < n; ++d) {
    b.image[d] = Checked("image_shape", image[d], 0);
    b.block[d] = Checked("block_shape", block[d], 1);
    b.stride[d] = AttributeAt(attributes, "strides", n, d, 1);
    b.dilation[d] = AttributeAt(attributes, "dilations", n, d, 1);
    b.pad[d] = AttributeAt(attributes, "pads", 2 * n, d, 0);
    const int64_t pad_end = AttributeAt(attributes, "pads", 2 * n, n + d, 0);
    const int64_t room = b.image[d] + b.pad[d] + pad_end - (b.dilation[d] * (b.block[d] - 1) + 1);
    if (room < 0) {
      Fail(fmt::format("a block of {} with dilation {} does not fit the padded image {} + {} + {}",
                       b.block[d], b.dilation[d], b.image[d], b.pad[d], pad_end));
    }
    b.count[d] = room / b.stride[d] + 1;
    if (__builtin_mul_overflow(b.places, b.block[d], &b.places) ||
        __builtin_mul_overflow(b.blocks, b.count[d], &b.blocks)) {
      Fail("the blocks are too many");
    }
  }
  return b;
}

void CheckInput(const Blocks& b, int64_t rows, int64_t columns) {
  if (rows % b.places != 0 || columns != b.blocks) {
    Fail(fmt::format("input is [N, {}, {}]: dim 1 must be a multiple of {}, dim 2 must be {}", rows,
                     columns, b.places, b.blocks));
  }
}

void Infer(InferContext& c) {
  const auto& in = c.in(0).dims;
  if (in && in->size() != 3) c.Fail("input must be [N, C * places, blocks], is " + ToString(*in));
  const IntegerList image = InferIntegers(c, "image_shape", 1);
  const IntegerList block = InferIntegers(c, "block_shape", 2);
  const auto spatial = image.count ? image.count : block.count;
  if (image.count && block.count && *image.count != *block.count) {
    c.Fail(fmt::format("image_shape has {} values and block_shape {}", *image.count, *block.count));
  }
  if (!spatial) return c.SetOut(0, c.in(0).dtype, std::nullopt);
  if (*spatial < 1 || *spatial > kMaxSpatialDims) {
    c.Fail(fmt::format("{} spatial dims, 1 to {} are possible", *spatial, kMaxSpatialDims));
  }
  Dims out(static_cast<size_t>(*spatial) + 2);
  if (in) out[0] = in->front();
  if (const auto known = SmallElements(c, 1)) {
    for (size_t d = 0; d < known->size() && d + 2 < out.size(); ++d) {
      const Dim& dim = (*known)[d];
      if (dim.known()) Checked("image_shape", dim.value(), 0);
      out[d + 2] = dim;
    }
  }
  if (block.values) {
    int64_t places = 1;
    for (int64_t v : *block.values) {
      if (__builtin_mul_overflow(places, Checked("block_shape", v, 1), &places)) {
        c.Fail("the blocks are too large");
      }
    }
    if (in) out[1] = FloorDiv((*in)[1], Dim(places));
    if (image.values) {
      const Blocks b = MakeBlocks(c.attrs(), *image.values, *block.values);
      if (in && (*in)[1].known() && (*in)[2].known()) {
        CheckInput(b, (*in)[1].value(), (*in)[2].value());
      }
    }
  }
  c.SetOut(0, c.in(0).dtype, std::move(out));
}

// The block l of axis d with l stride + k dilation = target; nullopt when there is none.
std::optional<int64_t> BlockAt(const Blocks& b, size_t d, int64_t target, int64_t k) {
  const int64_t rest = target - k * b.dilation[d];
  if (rest < 0 || rest % b.stride[d] != 0) return std::nullopt;
  const int64_t l = rest / b.stride[d];
  return l < b.count[d] ? std::optional(l) : std::nullopt;
}

// Calls fn(place, block) for all that meet at `position` of the image.
template <typename F>
void ForEachMeeting(const Blocks& b, int64_t position, F&& fn) {
  std::array<int64_t, kMaxSpatialDims> target{};
  const auto spatial = static_cast<size_t>(b.spatial);
  for (size_t d = spatial; d-- > 0;) {
    target[d] = position % b.image[d] + b.pad[d];
    position /= b.image[d];
  }
  for (int64_t place = 0; place < b.places; ++place) {
    int64_t rest = place;
    int64_t block = 0;
    int64_t scale = 1;
    bool meets = true;
    for (size_t d = spatial; meets && d-- > 0;) {
      const auto l = BlockAt(b, d, target[d], rest % b.block[d]);
      meets = l.has_value();
      block += l.value_or(0) * scale;
      rest /= b.block[d];
      scale *= b.count[d];
    }
    if (meets) fn(place, block);
  }
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const Shape& in = call.x(0).shape();
  const Blocks b =
      MakeBlocks(call.attrs(), call.x(1).values<int64_t>(), call.x(2).values<int64_t>());
  CheckInput(b, in[1], in[2]);
  std::array<int64_t, kMaxRank> dims{in[0], in[1] / b.places};
  for (int d = 0; d < b.spatial; ++d) {
    dims[static_cast<size_t>(d) + 2] = b.image[static_cast<size_t>(d)];
  }
  const Shape out(std::span<const int64_t>(dims.data(), static_cast<size_t>(b.spatial) + 2));
  call.ResizeOutput(0, call.x(0).dtype(), out);
  const int64_t pixels = out.Product(2, out.rank());
  DispatchReference<kAllTypes>(call, call.x(0).dtype(), [&]<typename T>() {
    const T* x = call.x(0).data<T>();
    T* y = call.y(0).data<T>();
    ParallelFor(out.elements(), 1 + 4096 / b.places, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* rows = x + i / pixels * b.places * b.blocks;  // of this batch and channel
        auto sum = static_cast<WideOf<T>>(0);
        ForEachMeeting(b, i % pixels, [&](int64_t place, int64_t block) {
          const auto value = Widen(rows[place * b.blocks + block]);
          if constexpr (std::is_same_v<T, bool>) {
            sum = sum || value;
          } else if constexpr (std::is_integral_v<T>) {
            sum = WrapAdd(sum, value);
          } else {
            sum += value;
          }
        });
        y[i] = Narrow<T>(sum);
      }
    });
  });
}

// Each element of the input is added once.
Cost Col2ImCost(const OpCall& call) {
  Cost cost = DefaultCost(call);
  cost.flops = static_cast<double>(call.x(0).elements());
  return cost;
}

WHIMBREL_REGISTER(OpSchema{
    .name = "Col2Im",
    .since = 18,
    .inputs = {{.name = "input", .group = 1},
               {.name = "image_shape", .types = TypeBit(DType::kInt64)},
               {.name = "block_shape", .types = TypeBit(DType::kInt64)}},
    .outputs = {{.name = "output", .group = 1}},
    .attributes = {{"strides", AttributeType::kInts, false, "default 1"},
                   {"dilations", AttributeType::kInts, false, "default 1"},
                   {"pads", AttributeType::kInts, false, "default 0; begins, then ends"}},
    .infer = Infer,
    .cost = Col2ImCost,
    .samples = {"f32:1x5x5 i64:2={5,5} i64:2={1,5}",
                "f32:1x9x4 i64:2={5,5} i64:2={3,3} strides=2,2",
                "f32:1x5x15 i64:2={5,5} i64:2={1,5} pads=0,1,0,1",
                "f32:1x4x5 i64:2={6,6} i64:2={2,2} dilations=1,5",
                "f32:2x10x12 i64:3={3,4,5} i64:3={1,1,5}", "f32:1x1x1 i64:2={1,1} i64:2={1,1}",
                "f32:1x3x4 i64:1={6} i64:1={3}", "f32:0x4x4 i64:2={3,3} i64:2={2,2}",
                "f32:1x8x9 i64:2={4,4} i64:2={2,2}", "f32:1x4x4 i64:2@3..3 i64:2@2..2",
                "f16:2x12x9 i64:2={4,4} i64:2={2,2}", "bf16:1x4x9 i64:2={4,4} i64:2={2,2}",
                "f64:1x4x9 i64:2={4,4} i64:2={2,2}", "u8:1x4x9@0..255 i64:2={4,4} i64:2={2,2}",
                "bool:1x4x9 i64:2={4,4} i64:2={2,2}", "i64:1x4x9 i64:2={4,4} i64:2={2,2}",
                "f32:1x72x1600 i64:2={40,40} i64:2={3,3} pads=1,1,1,1"}});
WHIMBREL_REGISTER(Kernel{.op = "Col2Im", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
