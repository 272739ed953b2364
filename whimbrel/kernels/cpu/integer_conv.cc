// Rows of taps and channels, widened to 16 bits less their zero point, times packed weights;
// depthwise convolutions tap by tap.

#include "whimbrel/kernels/cpu/integer_conv.h"

#include <algorithm>
#include <array>

#include "whimbrel/base/threads.h"

namespace whimbrel {
namespace {

constexpr int64_t kBlock = 32;         // output positions that one thread handles at once
constexpr int64_t kScratch = 4 << 20;  // bytes of widened rows at a time
constexpr double kTaskMacs = 1 << 20;  // make waking a second thread worth it

// As Conv has its inputs.
ConvGeometry GeometryOf(const OpCall& call, const ConvInputs& inputs) {
  const std::array<const Tensor*, 2> in{&call.x(inputs.x), &call.x(inputs.w)};
  OpCall conv = call;
  conv.in = in;
  return ConvGeometryOf(conv);
}

}  // namespace

IntegerConv::IntegerConv(const OpCall& call, const ConvInputs& inputs)
    : inputs_(inputs),
      g_(GeometryOf(call, inputs)),
      taps_(g_.kernel_size()),
      row_(EvenDepth(taps_ * g_.group_in())),
      blocks_((g_.out_size() + kBlock - 1) / kBlock) {
  const int64_t block_bytes = kBlock * row_ * static_cast<int64_t>(sizeof(int16_t));
  slots_ = std::min(g_.batch * g_.groups * blocks_, std::max<int64_t>(8, kScratch / block_bytes));
  const size_t zero = inputs.w_zero;
  const bool per_channel = call.has(zero) && call.x(zero).elements() != 1;
  const auto pack = [&]<typename T>(T) {
    Pack<T>(call.x(inputs.w), call.has(zero) ? call.x(zero).data<T>() : nullptr, per_channel);
  };
  if (call.x(inputs.w).dtype() == DType::kInt8) {
    pack(int8_t{});
  } else {
    pack(uint8_t{});
  }
  if (!depthwise_.empty()) slots_ = 0;
}

template <typename T>
void IntegerConv::Pack(const Tensor& weights, const T* zero, bool zero_per_channel) {
  const T* const w = weights.data<T>();
  const bool channels_last = weights.layout() == Layout::kChannelsLast;
  const auto value = [&](int64_t channel, int64_t in, int64_t tap) {
    const int point = zero == nullptr ? 0 : zero[zero_per_channel ? channel : 0];
    const int64_t at = channels_last ? (channel * taps_ + tap) * g_.group_in() + in
                                     : (channel * g_.group_in() + in) * taps_ + tap;
    return w[at] - point;
  };
  if (g_.group_in() == 1 && g_.group_out() == 1) {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      for (int64_t c = 0; c < g_.out_channels; ++c) {
        depthwise_.push_back(static_cast<int16_t>(value(c, 0, tap)));
      }
    }
    return;
  }
  for (int64_t group = 0; group < g_.groups; ++group) {
    groups_.emplace_back(taps_ * g_.group_in(), g_.group_out(), [&](int64_t k, int64_t col) {
      return value(group * g_.group_out() + col, k % g_.group_in(), k / g_.group_in());
    });
  }
}

size_t IntegerConv::bytes() const {
  size_t bytes = depthwise_.size() * sizeof(int16_t);
  for (const PackedColumns& group : groups_) bytes += group.bytes();
  return bytes;
}

template <typename F>
void IntegerConv::EachTap(int64_t position, F fn) const {
  SpatialArray start{};
  for (int d = g_.spatial; d-- > 0;) {
    const auto i = static_cast<size_t>(d);
    start[i] = g_.Start(d, position % g_.out[i]);
    position /= g_.out[i];
  }
  for (int64_t tap = 0; tap < taps_; ++tap) {
    int64_t rest = tap, from = 0, stride = 1;
    bool inside = true;
    for (int d = g_.spatial; d-- > 0;) {
      const auto i = static_cast<size_t>(d);
      const int64_t at = start[i] + rest % g_.kernel[i] * g_.dilation[i];
      rest /= g_.kernel[i];
      inside = inside && at >= 0 && at < g_.in[i];
      from += at * stride;
      stride *= g_.in[i];
    }
    fn(tap, inside ? from : -1);
  }
}

template <typename T>
void IntegerConv::RunTyped(const OpCall& call, std::span<std::byte> workspace, int32_t* y) const {
  const auto zero = static_cast<int32_t>(OneElement(call, inputs_.x_zero));
  const T* const x = call.x(inputs_.x).data<T>();
  const int64_t positions = g_.out_size(), channels = g_.group_in();
  if (!depthwise_.empty()) {
    const int64_t all = g_.out_channels;
    ParallelFor(g_.batch * positions, 65536 / (all * taps_) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int32_t* const sums = y + i * all;
        std::fill_n(sums, all, 0);
        const T* const image = x + i / positions * g_.in_size() * all;
        EachTap(i % positions, [&](int64_t tap, int64_t from) {
          if (from < 0) return;
          AddProducts(image + from * all, zero, depthwise_.data() + tap * all, sums, all);
        });
      }
    });
    return;
  }
  auto* const scratch = static_cast<int16_t*>(static_cast<void*>(workspace.data()));
  const auto block = [&](int64_t task, int16_t* rows) {
    const int64_t group = task % g_.groups, image = task / g_.groups / blocks_;
    const int64_t first = task / g_.groups % blocks_ * kBlock;
    const int64_t count = std::min(kBlock, positions - first);
    const T* const data = x + image * g_.in_size() * g_.in_channels + group * channels;
    for (int64_t i = 0; i < count; ++i) {
      int16_t* const row = rows + i * row_;
      row[row_ - 1] = 0;  // stays when the depth is odd
      EachTap(first + i, [&](int64_t tap, int64_t from) {
        int16_t* const to = row + tap * channels;
        if (from < 0) {
          std::fill_n(to, channels, int16_t{0});
        } else {
          WidenRun(data + from * g_.in_channels, zero, to, channels);
        }
      });
    }
    const PackedColumns& w = groups_[static_cast<size_t>(group)];
    w.Multiply(rows, count, 0, w.panels(),
               y + (image * positions + first) * g_.out_channels + group * g_.group_out(),
               g_.out_channels);
  };
  const int64_t tasks = g_.batch * g_.groups * blocks_;
  const double macs = static_cast<double>(kBlock * row_) * static_cast<double>(g_.group_out());
  for (int64_t start = 0; start < tasks; start += slots_) {
    ParallelFor(std::min(slots_, tasks - start), static_cast<int64_t>(kTaskMacs / macs) + 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    block(start + i, scratch + i * kBlock * row_);
                  }
                });
  }
}

void IntegerConv::Run(const OpCall& call, std::span<std::byte> workspace, int32_t* sums) const {
  if (call.x(inputs_.x).dtype() == DType::kInt8) {
    RunTyped<int8_t>(call, workspace, sums);
  } else {
    RunTyped<uint8_t>(call, workspace, sums);
  }
}

size_t IntegerConv::workspace_bytes() const {
  return static_cast<size_t>(slots_ * kBlock * row_) * sizeof(int16_t);
}

std::string IntegerConv::Obstacle(const OpCall& call, const ConvInputs& inputs) {
  if (!call.constant(inputs.w) || (call.has(inputs.w_zero) && !call.constant(inputs.w_zero))) {
    return "the weights or their zero point are not constant";
  }
  if (call.x(inputs.x).elements() == 0 || call.x(inputs.w).elements() == 0 ||
      call.y(0).elements() == 0) {
    return "a tensor has no elements";
  }
  if (call.x(inputs.x).layout() != Layout::kChannelsLast ||
      call.y(0).layout() != Layout::kChannelsLast) {
    return "data are not channels-last";
  }
  return "";
}

}  // namespace whimbrel
