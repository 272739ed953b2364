// Resize and Upsample of f32 images: taps and weights of both axes are tables made with the plan.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/cpu/hwy_blend.h"
#include "whimbrel/kernels/ops/resize_geometry.h"

namespace whimbrel {
namespace {

constexpr int64_t kMaxWidth = 4096;  // plain rows are blended on the stack
constexpr size_t kMaxTaps = 64;      // of a pixel: cubic has 16

// The taps of output position i are [begin[i], begin[i + 1]) of source and weight.
struct AxisTable {
  std::vector<size_t> begin = {0};
  std::vector<int64_t> source;
  std::vector<float> weight;
  size_t most_taps = 1;
  bool outside = false;

  int64_t size() const { return static_cast<int64_t>(begin.size()) - 1; }
  void Add(int64_t at, double w) {
    // taps clamped to one edge become one
    if (source.size() > begin.back() && source.back() == at) {
      weight.back() += static_cast<float>(w);
    } else {
      source.push_back(at);
      weight.push_back(static_cast<float>(w));
    }
  }
  void EndPosition() {
    most_taps = std::max(most_taps, source.size() - begin.back());
    begin.push_back(source.size());
  }
};

AxisTable TableOf(const ResizePlan& plan, const ResizeAxis& axis) {
  AxisTable table;
  for (int64_t i = 0; i < axis.out; ++i) {
    if (axis.identity) {
      table.Add(i, 1);
    } else if (plan.mode == ResizeMode::kNearest) {
      const int64_t at = NearestSource(plan, axis, i);
      table.outside = table.outside || at < 0;
      table.Add(std::max<int64_t>(at, 0), 1);
    } else {
      const ResizeTaps taps = TapsOf(plan, axis, i);
      table.outside = table.outside || taps.outside;
      for (int64_t p = taps.first; p < taps.first + taps.count; ++p) {
        const double w = TapWeight(plan, axis, taps, p);
        if (w != 0) table.Add(std::clamp<int64_t>(p, 0, axis.in - 1), w);
      }
      if (table.source.size() == table.begin.back()) table.Add(0, 0);
    }
    table.EndPosition();
  }
  return table;
}

struct ResizeTables final : KernelState {
  explicit ResizeTables(const OpCall& call) : in(call.x(0).shape()) {
    const ResizePlan plan = PlanResize(call);
    columns = TableOf(plan, plan.axes[static_cast<size_t>(plan.rank) - 1]);
    in_width = in[-1];
    if (plan.rank == 4) {
      rows = TableOf(plan, plan.axes[2]);
      in_height = in[2];
    } else {
      rows.Add(0, 1);
      rows.EndPosition();
    }
  }
  size_t bytes() const override {
    return (rows.source.size() + columns.source.size()) * (sizeof(int64_t) + sizeof(float));
  }

  Shape in;
  int64_t in_height = 1;
  int64_t in_width = 1;
  AxisTable rows;
  AxisTable columns;
};

// Rows of the output that repeat the one before: nearest upscaling.
bool SameRow(const AxisTable& rows, int64_t y) {
  const auto i = static_cast<size_t>(y);
  return rows.begin[i + 1] - rows.begin[i] == 1 && rows.begin[i] - rows.begin[i - 1] == 1 &&
         rows.source[rows.begin[i]] == rows.source[rows.begin[i - 1]] &&
         rows.weight[rows.begin[i]] == rows.weight[rows.begin[i - 1]];
}

void RunChannelsLast(const ResizeTables& t, const float* x, float* y) {
  static const WeightedSumFunction weighted_sum = FindWeightedSum();
  const int64_t channels = t.in[1];
  const int64_t height = t.rows.size();
  const int64_t out_row = t.columns.size() * channels;
  const int64_t in_row = t.in_width * channels;
  const auto row_bytes = static_cast<size_t>(out_row) * sizeof(float);
  ParallelFor(t.in[0] * height, 1 + 32768 / out_row, [&](int64_t begin, int64_t end) {
    std::array<const float*, kMaxTaps> runs;
    std::array<float, kMaxTaps> weights;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t row = k % height;
      float* out = y + k * out_row;
      if (k > begin && row > 0 && SameRow(t.rows, row)) {
        std::memcpy(out, out - out_row, row_bytes);
        continue;
      }
      const float* image = x + k / height * t.in_height * in_row;
      const auto r = static_cast<size_t>(row);
      for (size_t c = 0; c + 1 < t.columns.begin.size(); ++c, out += channels) {
        size_t taps = 0;
        for (size_t i = t.rows.begin[r]; i < t.rows.begin[r + 1]; ++i) {
          const float* line = image + t.rows.source[i] * in_row;
          for (size_t j = t.columns.begin[c]; j < t.columns.begin[c + 1]; ++j, ++taps) {
            runs[taps] = line + t.columns.source[j] * channels;
            weights[taps] = t.rows.weight[i] * t.columns.weight[j];
          }
        }
        if (taps == 1 && weights[0] == 1.0f) {
          std::memcpy(out, runs[0], static_cast<size_t>(channels) * sizeof(float));
        } else {
          weighted_sum(runs.data(), weights.data(), taps, static_cast<size_t>(channels), out);
        }
      }
    }
  });
}

// One row of a plane: across, after the rows have been blended down.
void ResizeRow(const AxisTable& columns, const float* line, float* out) {
  const int64_t width = columns.size();
  const int64_t* source = columns.source.data();
  const float* weight = columns.weight.data();
  if (columns.source.size() == static_cast<size_t>(width)) {  // one tap each
    for (int64_t i = 0; i < width; ++i) out[i] = line[source[i]] * weight[i];
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    const auto k = static_cast<size_t>(i);
    float sum = 0;
    for (size_t j = columns.begin[k]; j < columns.begin[k + 1]; ++j) {
      sum += line[source[j]] * weight[j];
    }
    out[i] = sum;
  }
}

void RunPlain(const ResizeTables& t, const float* x, float* y) {
  static const WeightedSumFunction weighted_sum = FindWeightedSum();
  const int64_t height = t.rows.size();
  const int64_t width = t.columns.size();
  ParallelFor(t.in[0] * t.in[1] * height, 1 + 16384 / width, [&](int64_t begin, int64_t end) {
    alignas(64) float blended[kMaxWidth];
    std::array<const float*, kMaxTaps> runs;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t row = k % height;
      float* out = y + k * width;
      if (k > begin && row > 0 && SameRow(t.rows, row)) {
        std::memcpy(out, out - width, static_cast<size_t>(width) * sizeof(float));
        continue;
      }
      const float* plane = x + k / height * t.in_height * t.in_width;
      const size_t first = t.rows.begin[static_cast<size_t>(row)];
      const size_t taps = t.rows.begin[static_cast<size_t>(row) + 1] - first;
      for (size_t i = 0; i < taps; ++i) runs[i] = plane + t.rows.source[first + i] * t.in_width;
      const float* line = runs[0];
      if (taps != 1 || t.rows.weight[first] != 1.0f) {
        weighted_sum(runs.data(), t.rows.weight.data() + first, taps,
                     static_cast<size_t>(t.in_width), blended);
        line = blended;
      }
      ResizeRow(t.columns, line, out);
    }
  });
}

bool AcceptsPlan(const ResizePlan& plan, const Tensor& x, std::string* why) {
  if (!plan.axes[0].identity || !plan.axes[1].identity) {
    *why = "batch or channels are resized";
    return false;
  }
  const AxisTable columns = TableOf(plan, plan.axes[static_cast<size_t>(plan.rank) - 1]);
  const AxisTable rows = plan.rank == 4 ? TableOf(plan, plan.axes[2]) : AxisTable();
  if (columns.outside || rows.outside) {
    *why = "parts of the output lie outside the input (tf_crop_and_resize)";
    return false;
  }
  if (rows.most_taps * columns.most_taps > kMaxTaps) {
    *why = fmt::format("a pixel has {} x {} taps, more than {}", rows.most_taps, columns.most_taps,
                       kMaxTaps);
    return false;
  }
  if (x.layout() == Layout::kPlain && x.shape()[-1] > kMaxWidth) {
    *why = fmt::format("a plain row of {} is longer than {}", x.shape()[-1], kMaxWidth);
    return false;
  }
  return true;
}

bool Accepts(const OpCall& call, std::string* why) {
  const Tensor& x = call.x(0);
  if (x.dtype() != DType::kFloat) {
    *why = fmt::format("type {} is not float32", DTypeName(x.dtype()));
    return false;
  }
  if (x.shape().rank() != 3 && x.shape().rank() != 4) {
    *why = fmt::format("rank {} is neither 3 nor 4", x.shape().rank());
    return false;
  }
  if (x.elements() == 0 || call.y(0).elements() == 0) {
    *why = "there are no elements";
    return false;
  }
  for (size_t i = 1; i < call.in.size(); ++i) {
    if (call.has(i) && !call.constant(i)) {
      *why = "the scales or sizes are not constant";
      return false;
    }
  }
  return AcceptsPlan(PlanResize(call), x, why);
}

std::unique_ptr<KernelState> Prepare(const OpCall& call) {
  return std::make_unique<ResizeTables>(call);
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  const auto run = [&](const ResizeTables& tables) {
    (call.x(0).layout() == Layout::kPlain ? RunPlain : RunChannelsLast)(
        tables, call.x(0).data<float>(), call.y(0).data<float>());
  };
  const auto& planned = *static_cast<const ResizeTables*>(call.state);
  if (planned.in == call.x(0).shape()) {
    run(planned);
  } else {
    run(ResizeTables(call));  // another shape than planned
  }
}

WHIMBREL_REGISTER(Kernel{.op = "Resize",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .prepare = Prepare,
                         .run = Run});
WHIMBREL_REGISTER(Kernel{.op = "Upsample",
                         .name = "highway",
                         .rank = 50,
                         .layout = LayoutRule::kFollow,
                         .accepts = Accepts,
                         .prepare = Prepare,
                         .run = Run});

}  // namespace
}  // namespace whimbrel
