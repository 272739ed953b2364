// MaxPool and AveragePool of f32 images: by vectors of channels, or planes down and then across.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_pool.h"
#include "whimbrel/kernels/cpu/hwy_steps.h"
#include "whimbrel/kernels/ops/pool_common.h"

namespace whimbrel {
namespace {

// Plain rows are collected on the stack.
constexpr int64_t kMaxWidth = 4096;

// The taps of one window position on one axis that lie on data.
struct Taps {
  int64_t first = 0;   // input position of the first
  int64_t count = 0;   // 0: on padding alone
  int64_t padded = 0;  // taps on data or declared padding
};

std::vector<Taps> TapsOfAxis(const PoolGeometry& g, int axis) {
  const auto i = static_cast<size_t>(axis);
  const int64_t step = g.dilation[i];
  const auto up = [step](int64_t n) { return n <= 0 ? 0 : (n + step - 1) / step; };
  std::vector<Taps> taps;
  for (int64_t position = 0; position < g.out[i]; ++position) {
    const int64_t start = g.Start(axis, position);
    const int64_t skipped = up(-start);
    const int64_t end = std::min(g.kernel[i], up(g.in[i] - start));
    taps.push_back(
        {.first = start + skipped * step,
         .count = std::max<int64_t>(0, end - skipped),
         .padded = std::clamp<int64_t>(up(g.in[i] + g.pad_end[i] - start), 0, g.kernel[i])});
  }
  return taps;
}

// One spatial axis counts as the width of a single row.
struct PoolTables final : KernelState {
  explicit PoolTables(const OpCall& call) : in_shape(call.x(0).shape()) {
    const PoolGeometry g = PoolGeometryOf(call);
    const int width_axis = g.spatial - 1;
    const auto w = static_cast<size_t>(width_axis);
    in_width = g.in[w];
    column_step = g.dilation[w];
    columns = TapsOfAxis(g, width_axis);
    if (g.spatial == 2) {
      in_height = g.in[0];
      row_step = g.dilation[0];
      rows = TapsOfAxis(g, 0);
    } else {
      rows = {{.first = 0, .count = 1, .padded = 1}};
    }
    include_pad = call.attrs().Int("count_include_pad", 0) != 0;
    window_columns = g.kernel[w];
    window_taps = std::max<int64_t>(1, g.kernel_size());
  }
  size_t bytes() const override { return (rows.size() + columns.size()) * sizeof(Taps); }

  float Scale(const Taps& row, const Taps& column) const {
    const int64_t count = include_pad ? row.padded * column.padded : row.count * column.count;
    return static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(count, 1)));
  }

  Shape in_shape;
  int64_t in_height = 1;
  int64_t in_width = 1;
  int64_t row_step = 1;
  int64_t column_step = 1;
  int64_t window_columns = 1;
  int64_t window_taps = 1;
  bool include_pad = false;
  std::vector<Taps> rows;
  std::vector<Taps> columns;
};

template <bool kMax>
constexpr float kEmpty = kMax ? -std::numeric_limits<float>::infinity() : 0.0f;

// NaN of either side wins.
float LargerOf(float a, float b) {
  return std::isnan(a) || a > b ? a : b;
}

template <bool kMax>
void RunChannelsLast(const PoolTables& t, const float* x, float* y) {
  static const PoolFunction pool = kMax ? FindMaxPool() : FindAveragePool();
  const int64_t channels = t.in_shape[1];
  const auto height = static_cast<int64_t>(t.rows.size());
  const auto width = static_cast<int64_t>(t.columns.size());
  const int64_t in_row = t.in_width * channels;
  ParallelFor(t.in_shape[0] * height, 1 + 65536 / (width * channels * t.window_taps + 1),
              [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                  const Taps& row = t.rows[static_cast<size_t>(k % height)];
                  const float* image = x + (k / height) * t.in_height * in_row + row.first * in_row;
                  float* out = y + k * width * channels;
                  for (const Taps& column : t.columns) {
                    if (row.count == 0 || column.count == 0) {
                      std::fill_n(out, channels, kEmpty<kMax>);
                    } else {
                      pool(image + column.first * channels, {row.count, column.count},
                           t.row_step * in_row, t.column_step * channels, channels,
                           kMax ? 1 : t.Scale(row, column), out);
                    }
                    out += channels;
                  }
                }
              });
}

template <bool kMax>
void RunPlain(const PoolTables& t, const float* x, float* y) {
  static const StepFunction join = FindStepFunction(kMax ? StepOp::kMax : StepOp::kAdd);
  const int64_t planes = t.in_shape[0] * t.in_shape[1];
  const auto height = static_cast<int64_t>(t.rows.size());
  const auto width = static_cast<int64_t>(t.columns.size());
  ParallelFor(planes * height, 1 + 16384 / (t.in_width + 1), [&](int64_t begin, int64_t end) {
    alignas(64) float down[kMaxWidth];    // the window's rows joined
    alignas(64) float across[kMaxWidth];  // and its columns, for windows that lie wholly on data
    for (int64_t k = begin; k < end; ++k) {
      const Taps& row = t.rows[static_cast<size_t>(k % height)];
      const float* from = x + ((k / height) * t.in_height + row.first) * t.in_width;
      float* out = y + k * width;
      if (row.count == 0) {
        std::fill_n(out, width, kEmpty<kMax>);
        continue;
      }
      const float* line = from;
      for (int64_t r = 1; r < row.count; ++r) {
        join({}, line, {.data = from + r * t.row_step * t.in_width}, down,
             static_cast<size_t>(t.in_width));
        line = down;
      }
      const float* whole = line;
      const int64_t starts = t.in_width - (t.window_columns - 1) * t.column_step;
      for (int64_t i = 1; i < t.window_columns && starts > 0; ++i) {
        join({}, whole, {.data = line + i * t.column_step}, across, static_cast<size_t>(starts));
        whole = across;
      }
      for (const Taps& column : t.columns) {
        float result = kEmpty<kMax>;
        if (column.count == t.window_columns) {
          result = whole[column.first];
        } else {
          const float* tap = line + column.first;
          for (int64_t i = 0; i < column.count; ++i, tap += t.column_step) {
            result = kMax ? LargerOf(result, *tap) : result + *tap;
          }
        }
        *out++ = kMax ? result : result * t.Scale(row, column);
      }
    }
  });
}

template <bool kMax>
void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const auto run = [&](const PoolTables& tables) {
    const float* x = call.x(0).data<float>();
    float* y = call.y(0).data<float>();
    if (call.y(0).elements() == 0) return;
    call.x(0).layout() == Layout::kPlain ? RunPlain<kMax>(tables, x, y)
                                         : RunChannelsLast<kMax>(tables, x, y);
  };
  const auto* planned = static_cast<const PoolTables*>(call.state);
  if (planned != nullptr && planned->in_shape == call.x(0).shape()) {
    run(*planned);
  } else {
    run(PoolTables(call));  // another shape than planned
  }
}

bool Accepts(const OpCall& call, std::string* why) {
  const Tensor& x = call.x(0);
  if (x.dtype() != DType::kFloat) {
    *why = fmt::format("type {} is not float32", DTypeName(x.dtype()));
    return false;
  }
  const int spatial = x.shape().rank() - 2;
  if (spatial != 1 && spatial != 2) {
    *why = fmt::format("{} spatial axes, 1 or 2 are taken", spatial);
    return false;
  }
  if (call.has_out(1)) {
    *why = "the indices are asked for";
    return false;
  }
  if (x.layout() == Layout::kPlain && x.shape()[-1] > kMaxWidth) {
    *why = fmt::format("a plain row of {} is longer than {}", x.shape()[-1], kMaxWidth);
    return false;
  }
  return true;
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return std::make_unique<PoolTables>(call);
}

WHIMBREL_REGISTER(Kernel{.op = "MaxPool",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .prepare = Prepare,
                         .run = Run<true>});
WHIMBREL_REGISTER(Kernel{.op = "AveragePool",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .prepare = Prepare,
                         .run = Run<false>});

}  // namespace
}  // namespace whimbrel
