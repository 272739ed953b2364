// op_bench: times every kernel of an op over case strings: the registry's samples, a given one, or
// the list of larger layers.
//
//   op_bench --op Conv                     the op's own samples
//   op_bench --op Conv --large             layers of common models (list below)
//   op_bench --op Conv --sample "f32:1x64x80x80 f32:128x64x1x1!"
//   more: --kernel NAME  --threads N (1)  --seconds S per kernel (0.2)

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/base/threads.h"
#include "whimbrel/kernels/kernels.h"
#include "whimbrel/kernels/sample.h"

namespace whimbrel {
namespace {

struct LargeCase {
  std::string_view op;
  std::string_view sample;
};

// Shapes of PP-OCRv4 detection, ResNet-50, MTCNN, silero and transformer layers.
constexpr LargeCase kLarge[] = {
    {"Conv", "f32:1x3x640x640 f32:16x3x3x3! f32:16! strides=2,2 pads=1,1,1,1"},
    {"Conv", "f32:1x3x224x224 f32:64x3x7x7! f32:64! strides=2,2 pads=3,3,3,3"},
    {"Conv", "f32:1x16x320x320 f32:16x1x3x3! f32:16! group=16 pads=1,1,1,1"},
    {"Conv", "f32:1x16x320x320 f32:32x16x1x1! f32:32!"},
    {"Conv", "f32:1x32x320x320 f32:32x1x3x3! f32:32! group=32 strides=2,2 pads=1,1,1,1"},
    {"Conv", "f32:1x32x160x160 f32:48x32x1x1! f32:48!"},
    {"Conv", "f32:1x48x160x160 f32:48x1x3x3! f32:48! group=48 pads=1,1,1,1"},
    {"Conv", "f32:1x96x80x80 f32:96x1x3x3! f32:96! group=96 pads=1,1,1,1"},
    {"Conv", "f32:1x64x80x80 f32:128x64x1x1! f32:128!"},
    {"Conv", "f32:1x192x40x40 f32:192x192x1x1! f32:192!"},
    {"Conv", "f32:1x192x40x40 f32:192x1x5x5! f32:192! group=192 pads=2,2,2,2"},
    {"Conv", "f32:1x480x20x20 f32:480x1x5x5! f32:480! group=480 pads=2,2,2,2"},
    {"Conv", "f32:1x480x20x20 f32:480x480x1x1! f32:480!"},
    {"Conv", "f32:1x96x1x1 f32:24x96x1x1! f32:24!"},
    {"Conv", "f32:1x96x160x160 f32:24x96x3x3! f32:24! pads=1,1,1,1"},
    {"Conv", "f32:1x64x56x56 f32:64x64x3x3! f32:64! pads=1,1,1,1"},
    {"Conv", "f32:1x128x56x56 f32:128x128x3x3! f32:128! strides=2,2 pads=1,1,1,1"},
    {"Conv", "f32:1x512x7x7 f32:512x512x3x3! f32:512! pads=1,1,1,1"},
    {"Conv", "f32:1x24x80x80 f32:1x24x3x3! f32:1! pads=1,1,1,1"},
    {"Conv", "f32:1x129x576 f32:128x129x3! f32:128! pads=1,1"},
    {"Conv", "f16:1x64x40x40 f16:64x64x3x3! f16:64! pads=1,1,1,1"},
    {"FusedConv", "f32:1x64x56x56 f32:256x64x1x1! f32:256! f32:1x256x56x56 activation=Relu"},
    {"FusedConv",
     "f32:1x96x80x80 f32:96x1x3x3! f32:96! group=96 pads=1,1,1,1 activation=HardSwish"},
    {"FusedConv", "f32:1x10x49x49 f32:16x10x3x3! f32:16! - f32:16! activation=PRelu"},
    {"ConvTranspose", "f32:1x24x160x160 f32:24x24x2x2! f32:24! strides=2,2"},
    {"ConvTranspose", "f32:1x24x320x320 f32:24x1x2x2! f32:1! strides=2,2"},
    {"ConvTranspose", "f32:1x64x40x40 f32:64x64x4x4! f32:64! strides=2,2 pads=1,1,1,1"},
    {"ConvTranspose", "f32:1x32x40x40 f32:32x32x3x3! strides=2,2 pads=1,1,1,1 output_padding=1,1"},
    {"MatMul", "f32:256x1024 f32:1024x1024!"},
    {"MatMul", "f32:1x196x192 f32:192x576!"},
    {"MatMul", "f32:8x256 f32:256x512!"},
    {"MatMul", "f32:1x1024 f32:1024x1024!"},
    {"MatMul", "f32:1x128 f32:128x512!"},
    {"MatMul", "f32:1024x1024 f32:1024x1!"},
    {"MatMul", "f32:1x8x196x24 f32:1x8x24x196"},
    {"MatMul", "f32:1x8x196x196 f32:1x8x196x24"},
    {"MatMul", "f32:8x1x64 f32:8x64x512"},
    {"Gemm", "f32:1x576 f32:576x1000! f32:1000!"},
    {"Gemm", "f32:128x256 f32:512x256! f32:512! transB=1"},
    {"FusedMatMul", "f32:1x196x192 f32:192x576! f32:576! activation=Relu"},
    {"LSTM",
     "f32:1x1x128 f32:1x512x128! f32:1x512x128! f32:1x1024! - f32:1x1x128 f32:1x1x128 "
     "hidden_size=128 outputs=3"},
    {"LSTM",
     "f32:40x1x288 f32:2x768x288! f32:2x768x192! f32:2x1536! hidden_size=192 "
     "direction=bidirectional outputs=1"},
};

struct Options {
  std::string op, sample, kernel;
  int threads = 1;
  double seconds = 0.2;
  bool large = false;
};

// One sample planned for one kernel as the graph floor plans it, ready to run again and again.
class PlannedCall {
 public:
  // False with the reason when the kernel declines.
  bool Plan(const OpSchema& schema, const Kernel& kernel, const Sample& sample, bool channels_last,
            std::string* why) {
    kernel_ = &kernel;
    const auto inferred =
        InferOutputs(schema, sample.attributes, sample.opset, SampleInputs(sample), sample.outputs);
    inputs_.resize(sample.inputs.size());
    in_.assign(inputs_.size(), nullptr);
    call_ = OpCall{.schema = &schema, .attributes = &sample.attributes, .opset = sample.opset};
    const int rank =
        inputs_.empty() || !sample.inputs[0].defined() ? 0 : sample.inputs[0].shape().rank();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& given = sample.inputs[i];
      if (!given.defined()) continue;
      const bool weights = kernel.layout == LayoutRule::kChannelsLast && i == 1;
      const bool last = channels_last && !weights && given.shape().rank() == rank;
      const Layout layout = last ? Layout::kChannelsLast : Layout::kPlain;
      inputs_[i] = Tensor::Host(given.dtype(), given.shape()).WithLayout(given.shape(), layout);
      ConvertLayout(given, inputs_[i]);
      in_[i] = &inputs_[i];
      if (sample.constant[i]) call_.constant_inputs |= uint64_t{1} << i;
    }
    outputs_.resize(sample.outputs);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!inferred[i].static_shape()) {
        *why = "its output shape depends on data";
        return false;
      }
      const Shape shape = ToShape(*inferred[i].dims);
      const bool last = channels_last && shape.rank() >= 3;
      outputs_[i] = Tensor::Host(inferred[i].dtype, shape)
                        .WithLayout(shape, last ? Layout::kChannelsLast : Layout::kPlain);
      out_.push_back(&outputs_[i]);
    }
    call_.in = in_;
    call_.out = out_;
    if (kernel.accepts != nullptr && !kernel.accepts(call_, why)) return false;
    if (kernel.prepare != nullptr) state_ = kernel.prepare(call_);
    call_.state = state_.get();
    workspace_bytes_ = kernel.workspace != nullptr ? kernel.workspace(call_) : 0;
    workspace_ = Buffer::AllocateHost(workspace_bytes_);
    return true;
  }

  void Run(Stream& stream) { kernel_->run(call_, {workspace_->data(), workspace_bytes_}, stream); }
  Cost cost() const { return CostOf(call_); }

 private:
  const Kernel* kernel_ = nullptr;
  OpCall call_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const Tensor*> in_;
  std::vector<Tensor*> out_;
  std::unique_ptr<KernelState> state_;
  size_t workspace_bytes_ = 0;
  std::shared_ptr<Buffer> workspace_;
};

double Seconds(const auto& fn) {
  const auto begin = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Median and best of repeated runs; short calls are timed in groups of at least 20 us.
struct Timing {
  double median_us, best_us;
};
Timing Measure(PlannedCall& call, Stream& stream, double seconds) {
  Timing timing{};
  stream.Run([&] {
    const double first = Seconds([&] { call.Run(stream); });
    const int group = std::clamp(static_cast<int>(20e-6 / std::max(first, 1e-8)), 1, 1000);
    std::vector<double> times;
    for (double spent = 0; spent < seconds || times.size() < 3;) {
      const double t = Seconds([&] {
        for (int i = 0; i < group; ++i) call.Run(stream);
      });
      times.push_back(t / group * 1e6);
      spent += t;
    }
    std::sort(times.begin(), times.end());
    timing = {times[times.size() / 2], times.front()};
  });
  return timing;
}

void BenchSample(const OpSchema& schema, std::string_view text, const Options& options) {
  const Sample sample = ParseSample(schema, text);
  std::printf("%.*s \"%.*s\"\n", static_cast<int>(schema.name.size()), schema.name.data(),
              static_cast<int>(text.size()), text.data());
  const auto stream = OpenDevice("cpu:0")->CreateStream({.threads = options.threads});
  for (const Kernel* kernel :
       Registry::Get().Kernels(schema.domain, schema.name, DeviceKind::kCpu)) {
    if (!options.kernel.empty() && kernel->name != options.kernel) continue;
    if (kernel->isa > ActiveIsa()) continue;
    for (const bool channels_last : {false, true}) {
      const bool rank3 = !sample.inputs.empty() && sample.inputs[0].defined() &&
                         sample.inputs[0].shape().rank() >= 3;
      if (channels_last && (kernel->layout == LayoutRule::kPlain || !rank3)) continue;
      if (!channels_last && kernel->layout == LayoutRule::kChannelsLast && rank3) continue;
      const std::string name = std::string(kernel->name) + (channels_last ? " channels-last" : "");
      PlannedCall call;
      std::string why;
      bool planned = false;
      // on the stream: oneDNN shapes its primitives by the team of the thread that makes them
      stream->Run([&] { planned = call.Plan(schema, *kernel, sample, channels_last, &why); });
      if (!planned) {
        std::printf("  %-24s declines: %s\n", name.c_str(), why.c_str());
        continue;
      }
      const Timing t = Measure(call, *stream, options.seconds);
      const Cost cost = call.cost();
      std::printf("  %-24s %11.2f us (best %11.2f) %8.1f GFLOP/s %7.1f GB/s\n", name.c_str(),
                  t.median_us, t.best_us, cost.flops / t.median_us / 1e3,
                  cost.bytes / t.median_us / 1e3);
      std::fflush(stdout);
    }
  }
}

void Bench(const Options& options) {
  for (const OpSchema* schema : Registry::Get().Schemas()) {
    if (!options.op.empty() && schema->name != options.op) continue;
    std::vector<std::string_view> samples;
    const bool newest = Registry::Get().Find(schema->domain, schema->name, INT_MAX - 1) == schema;
    if (!options.sample.empty()) {
      if (newest) samples = {options.sample};
    } else if (options.large) {
      for (const LargeCase& c : kLarge) {
        if (newest && c.op == schema->name) samples.push_back(c.sample);
      }
    } else {
      samples = schema->samples;
    }
    for (std::string_view text : samples) {
      try {
        BenchSample(*schema, text, options);
      } catch (const Error& e) {
        std::printf("  %s\n", e.what());
      }
    }
  }
}

int Main(int argc, char** argv) {
  EnsureOpenMpWaitPolicy(argv);
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--large") {
      options.large = true;
      continue;
    }
    if (i + 1 >= argc) {
      std::fprintf(stderr, "%s: a value is missing or the flag is not known\n", argv[i]);
      return 2;
    }
    const char* value = argv[++i];
    if (flag == "--op")
      options.op = value;
    else if (flag == "--sample")
      options.sample = value;
    else if (flag == "--kernel")
      options.kernel = value;
    else if (flag == "--threads")
      options.threads = std::atoi(value);
    else if (flag == "--seconds")
      options.seconds = std::atof(value);
    else {
      std::fprintf(stderr, "%s is not known; the head of op_bench.cc lists the flags\n",
                   argv[i - 1]);
      return 2;
    }
  }
  Bench(options);
  return 0;
}

}  // namespace
}  // namespace whimbrel

int main(int argc, char** argv) {
  return whimbrel::Main(argc, argv);
}
