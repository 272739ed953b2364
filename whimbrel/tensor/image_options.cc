// image_options: how a picture becomes a model's input: text form, resize, normalisation.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/tensor/image.h"

namespace whimbrel {
namespace {

constexpr int64_t kMaxSide = 65'535;

Error BadOption(std::string_view part, std::string_view why) {
  return Error(Code::kInvalidArgument, fmt::format("image option \"{}\": {}", part, why),
               "known: size=WxH, mean=M[/M/M], std=S[/S/S], order=rgb|bgr, layout=nchw|nhwc");
}

// Calls fn(piece) for every piece between separators; the empty text has one empty piece.
template <typename F>
void ForEachPiece(std::string_view text, char separator, F&& fn) {
  for (;;) {
    const size_t end = text.find(separator);
    fn(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool ParseWhole(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

std::array<double, 3> ParseTriple(std::string_view part, std::string_view text) {
  std::array<double, 3> values{};
  size_t count = 0;
  ForEachPiece(text, '/', [&](std::string_view piece) {
    if (count == 3) throw BadOption(part, "one or three numbers are expected");
    if (!ParseWhole(piece, values[count]) || !std::isfinite(values[count])) {
      throw BadOption(part, fmt::format("\"{}\" is no number", piece));
    }
    ++count;
  });
  if (count == 2) throw BadOption(part, "one or three numbers are expected");
  if (count == 1) values.fill(values[0]);
  return values;
}

void ParseSize(std::string_view part, std::string_view text, ImageOptions& options) {
  if (text == "auto") return;
  const size_t cross = text.find('x');
  if (cross == std::string_view::npos || !ParseWhole(text.substr(0, cross), options.width) ||
      !ParseWhole(text.substr(cross + 1), options.height) || options.width < 1 ||
      options.height < 1 || options.width > kMaxSide || options.height > kMaxSide) {
    throw BadOption(part, fmt::format("expected WxH, each 1 to {}", kMaxSide));
  }
}

bool ParseWord(std::string_view part, std::string_view text, std::string_view off,
               std::string_view on) {
  if (text != off && text != on) throw BadOption(part, fmt::format("expected {} or {}", off, on));
  return text == on;
}

std::string TripleText(const std::array<double, 3>& values) {
  if (values[0] == values[1] && values[1] == values[2]) return fmt::format("{}", values[0]);
  return fmt::format("{}/{}/{}", values[0], values[1], values[2]);
}

// Two neighbours of one output position and their weights in 1/2048.
struct Tap {
  int64_t first;
  int64_t second;
  int32_t first_weight;
  int32_t second_weight;
};

std::vector<Tap> MakeTaps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Tap> taps(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    auto position = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    auto first = static_cast<int64_t>(std::floor(position));
    float fraction = position - static_cast<float>(first);
    if (first < 0) {
      first = 0;
      fraction = 0;
    }
    if (first >= from - 1) {
      first = from - 1;
      fraction = 0;
    }
    taps[static_cast<size_t>(i)] = {first, std::min(first + 1, from - 1),
                                    static_cast<int32_t>(std::lrint((1 - fraction) * 2048)),
                                    static_cast<int32_t>(std::lrint(fraction * 2048))};
  }
  return taps;
}

// The fixed-point steps of cv2.resize(INTER_LINEAR) on 8-bit pictures, which is what models were
// trained behind: weights of 11 bits, rows kept with 4 bits dropped, one rounding at the end.
Image Resize(const Image& image, int64_t width, int64_t height) {
  Image out{.width = width, .height = height, .rgb = {}};
  out.rgb.resize(static_cast<size_t>(width * height) * 3);
  const std::vector<Tap> columns = MakeTaps(image.width, width);
  const std::vector<Tap> rows = MakeTaps(image.height, height);
  ParallelFor(height, 16, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const Tap& row = rows[static_cast<size_t>(y)];
      const uint8_t* upper = image.rgb.data() + row.first * image.width * 3;
      const uint8_t* lower = image.rgb.data() + row.second * image.width * 3;
      uint8_t* to = out.rgb.data() + y * width * 3;
      for (const Tap& column : columns) {
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t left = column.first * 3 + c;
          const int64_t right = column.second * 3 + c;
          const int32_t above =
              upper[left] * column.first_weight + upper[right] * column.second_weight;
          const int32_t below =
              lower[left] * column.first_weight + lower[right] * column.second_weight;
          const int32_t value = (((row.first_weight * (above >> 4)) >> 16) +
                                 ((row.second_weight * (below >> 4)) >> 16) + 2) >>
                                2;
          *to++ = static_cast<uint8_t>(std::clamp(value, 0, 255));
        }
      }
    }
  });
  return out;
}

// A pixel has 256 values, so that the arithmetic is done 768 times, in double, rounded once.
template <typename T>
void Fill(const Image& image, const ImageOptions& options, Tensor& tensor) {
  std::array<std::array<T, 256>, 3> table{};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t value = 0; value < 256; ++value) {
      if constexpr (std::is_same_v<T, uint8_t>) {
        table[c][value] = static_cast<uint8_t>(value);
      } else {
        table[c][value] = T((static_cast<double>(value) - options.mean[c]) / options.std[c]);
      }
    }
  }
  const int64_t plane = image.width * image.height;
  T* out = tensor.data<T>();
  const int64_t channel_stride = options.channels_last ? 1 : plane;
  const int64_t pixel_stride = options.channels_last ? 3 : 1;
  // 16 Ki pixels: some 20 us, several times the cost of waking the team.
  ParallelFor(plane, 16'384, [&](int64_t begin, int64_t end) {
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t* from = image.rgb.data() + (options.bgr ? 2 - c : c);
      const auto& values = table[static_cast<size_t>(c)];
      T* to = out + c * channel_stride;
      for (int64_t i = begin; i < end; ++i) to[i * pixel_stride] = values[from[i * 3]];
    }
  });
}

}  // namespace

ImageOptions ParseImageOptions(std::string_view text) {
  ImageOptions options;
  if (text.empty()) return options;
  std::set<std::string_view> seen;
  ForEachPiece(text, ',', [&](std::string_view part) {
    const size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (equals == std::string_view::npos) throw BadOption(part, "expected KEY=VALUE");
    const std::string_view value = part.substr(equals + 1);
    if (!seen.insert(key).second) throw BadOption(part, fmt::format("\"{}\" stands twice", key));
    if (key == "size") {
      ParseSize(part, value, options);
    } else if (key == "mean") {
      options.mean = ParseTriple(part, value);
    } else if (key == "std") {
      options.std = ParseTriple(part, value);
      for (double std : options.std) {
        if (std == 0) throw BadOption(part, "0 cannot be divided by");
      }
    } else if (key == "order") {
      options.bgr = ParseWord(part, value, "rgb", "bgr");
    } else if (key == "layout") {
      options.channels_last = ParseWord(part, value, "nchw", "nhwc");
    } else {
      throw BadOption(part, fmt::format("unknown key \"{}\"", key));
    }
  });
  return options;
}

std::string ToString(const ImageOptions& options) {
  const bool sized = options.width > 0 && options.height > 0;
  return fmt::format("size={},mean={},std={},order={},layout={}",
                     sized ? fmt::format("{}x{}", options.width, options.height) : "auto",
                     TripleText(options.mean), TripleText(options.std), options.bgr ? "bgr" : "rgb",
                     options.channels_last ? "nhwc" : "nchw");
}

Tensor ImageToTensor(const Image& image, const ImageOptions& options, DType dtype) {
  if (image.width < 1 || image.height < 1 ||
      image.rgb.size() != static_cast<size_t>(image.width * image.height) * 3) {
    throw Error(Code::kInvalidArgument, fmt::format("picture of {} x {} with {} bytes", image.width,
                                                    image.height, image.rgb.size()));
  }
  const int64_t width = options.width > 0 ? options.width : image.width;
  const int64_t height = options.height > 0 ? options.height : image.height;
  if (width > kMaxSide || height > kMaxSide) {
    throw Error(Code::kInvalidArgument,
                fmt::format("picture size {} x {}: a side is above {}", width, height, kMaxSide));
  }
  if (width != image.width || height != image.height) {
    ImageOptions same_size = options;
    same_size.width = width;
    same_size.height = height;
    return ImageToTensor(Resize(image, width, height), same_size, dtype);
  }
  Tensor tensor = Tensor::Host(
      dtype, options.channels_last ? Shape{1, height, width, 3} : Shape{1, 3, height, width});
  switch (dtype) {
    case DType::kFloat:
      Fill<float>(image, options, tensor);
      break;
    case DType::kFloat16:
      Fill<Half>(image, options, tensor);
      break;
    case DType::kUint8:
      Fill<uint8_t>(image, options, tensor);
      break;
    default:
      throw Error(
          Code::kUnsupported,
          fmt::format("pictures become float32, float16 or uint8, not {}", DTypeName(dtype)));
  }
  return tensor;
}

}  // namespace whimbrel
