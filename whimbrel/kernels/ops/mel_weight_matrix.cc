// MelWeightMatrix: y[bin, m] = the triangle of mel band m at a bin of a spectrum; corners lie
// evenly on the scale mel(f) = 2595 log10(1 + f / 700), rounded down to bins.
//
// in   num_mel_bins, dft_length, sample_rate         i32 | i64 scalars
//      lower_edge_hertz, upper_edge_hertz            f32 | f64 | f16 | bf16 scalars
// attr output_datatype  numeric type of y, default f32
// out  output  [dft_length / 2 + 1, num_mel_bins]
// Source: ONNX operator MelWeightMatrix (17), with the corners of its own code: num_mel_bins + 2 of
// them, the distance of mel divided by as many.

#include <fmt/format.h>

#include "whimbrel/kernels/ops/check_dims.h"
#include "whimbrel/kernels/ops/elementwise.h"
#include "whimbrel/kernels/ops/float_to_int.h"

namespace whimbrel {
namespace {

enum Input : size_t { kBands, kLength, kRate, kLower, kUpper };
constexpr int64_t kMost = int64_t{1} << 31;

DType OutputType(std::string_view op, const Attributes& attributes) {
  const int64_t type = attributes.Int("output_datatype", 1);
  if (type < 0 || type > 16 || (TypeBit(static_cast<DType>(type)) & kNumericTypes) == 0)
    throw Error(Code::kUnsupported, fmt::format("{}: output_datatype is {}", op, type));
  return static_cast<DType>(type);
}

void Infer(InferContext& c) {
  const auto bands = InferPositive(c, kBands, kMost), length = InferPositive(c, kLength, kMost);
  Dims out(2);
  if (length) out[0] = *length / 2 + 1;
  if (bands) out[1] = *bands;
  c.SetOut(0, OutputType(c.schema().name, c.attrs()), std::move(out));
}

struct Scale {
  int64_t length, rate, bands;
  double low, step;

  // The bin of corner `i`.
  int64_t Corner(int64_t i) const {
    const double mel = low + static_cast<double>(i) * step;
    const double hertz = 700 * std::expm1(mel / 2595 * std::log(10.0));
    return static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  }
};

double Mel(double hertz) {
  return 2595 * std::log1p(hertz / 700) / std::log(10.0);
}

double Weight(int64_t bin, int64_t left, int64_t centre, int64_t right) {
  if (bin >= centre && bin < right)
    return static_cast<double>(right - bin) / static_cast<double>(right - centre);
  if (left == centre) return bin == centre ? 1 : 0;
  if (bin >= left && bin <= centre)
    return static_cast<double>(bin - left) / static_cast<double>(centre - left);
  return 0;
}

void Run(const OpCall& call, std::span<std::byte> /*workspace*/, Stream& /*stream*/) {
  Scale s{ElementAsInt64(call.x(kLength), 0), ElementAsInt64(call.x(kRate), 0),
          ElementAsInt64(call.x(kBands), 0), Mel(ElementAsDouble(call.x(kLower), 0)), 0};
  s.step = (Mel(ElementAsDouble(call.x(kUpper), 0)) - s.low) / static_cast<double>(s.bands + 2);
  const double last = static_cast<double>(s.length + 1) * ElementAsDouble(call.x(kUpper), 0);
  if (s.length < 1 || s.rate < 1 || s.bands < 1 || s.length > kMost || s.bands > kMost ||
      !std::isfinite(s.low) || !(s.step >= 0) || !(last < 1e15)) {
    throw Error(Code::kInvalidData,
                fmt::format("MelWeightMatrix: {} bands of a transform of {} at rate {} do not work",
                            s.bands, s.length, s.rate));
  }
  const int64_t bins = s.length / 2 + 1;
  call.ResizeOutput(0, OutputType(call.schema->name, call.attrs()), Shape{bins, s.bands});
  DispatchReference<kNumericTypes>(call, call.y(0).dtype(), [&]<typename T>() {
    T* y = call.y(0).data<T>();
    for (int64_t band = 0; band < s.bands; ++band) {
      const int64_t left = s.Corner(band), centre = s.Corner(band + 1), right = s.Corner(band + 2);
      for (int64_t bin = 0; bin < bins; ++bin) {
        const double weight = Weight(bin, left, centre, right);
        if constexpr (std::is_integral_v<T>) {
          y[bin * s.bands + band] = FloatToInt<T>(weight);
        } else {
          y[bin * s.bands + band] = static_cast<T>(weight);
        }
      }
    }
  });
}

WHIMBREL_REGISTER(OpSchema{
    .name = "MelWeightMatrix",
    .since = 17,
    .inputs = {{.name = "num_mel_bins", .types = kIndexTypes, .group = 1},
               {.name = "dft_length", .types = kIndexTypes, .group = 1},
               {.name = "sample_rate", .types = kIndexTypes, .group = 1},
               {.name = "lower_edge_hertz", .types = kFloatTypes, .group = 2},
               {.name = "upper_edge_hertz", .types = kFloatTypes, .group = 2}},
    .outputs = {{.name = "output", .types = kNumericTypes}},
    .attributes = {{.name = "output_datatype",
                    .type = AttributeType::kInt,
                    .note = "type of the output, default f32"}},
    .infer = Infer,
    .samples = {"i64:={8} i64:={16} i64:={8192} f32:={0} f32:={4096}",
                "i32:={40} i32:={512} i32:={16000} f32:={20} f32:={8000}",
                "i64:={1} i64:={1} i64:={1} f32:={0} f32:={1}",
                "i64:={8} i64:={16} i64:={8192} f64:={0} f64:={4096} output_datatype=11",
                "i64:={8} i64:={16} i64:={8192} f16:={0} f16:={4096} output_datatype=10",
                "i64:={8} i64:={16} i64:={8192} f32:={0} f32:={4096} output_datatype=7",
                "i64:={3} i64:={2} i64:={8192} f32:={0} f32:={0}"},
    .doc = "weights that turn a spectrum into mel bands"});
WHIMBREL_REGISTER(Kernel{.op = "MelWeightMatrix", .name = "reference", .run = Run});

}  // namespace
}  // namespace whimbrel
