// image: JPEG by libjpeg-turbo and PNG by libpng, both stopped at the first sign of damage.
//
// libjpeg's own interface instead of turbojpeg: it takes every subsampling, and CMYK and EXIF need
// it anyway. libpng's row interface instead of the simplified one: that one applies gAMA and reads
// 16 bits as linear light, which no training pipeline does.

#include "whimbrel/tensor/image.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>
#include <png.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"

namespace whimbrel {
namespace {

// 134 million pixels, 400 MB of RGB: above any camera, below what a forged header may ask for.
constexpr int64_t kMaxPixels = int64_t{1} << 27;
// Progressive files have about ten scans; thousands are an attack on the decoder's time.
constexpr int kMaxScans = 500;
constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegSignature = "\xff\xd8\xff";

using Bytes = std::span<const std::byte>;

std::string TooLarge(int64_t width, int64_t height) {
  return fmt::format("{} x {} pixels; the limit is {} in all", width, height, kMaxPixels);
}

// ---- EXIF orientation: a TIFF header, one directory, tag 0x0112.

int ExifOrientation(std::span<const uint8_t> tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I' && tiff[1] == 'I';
  if (!little && (tiff[0] != 'M' || tiff[1] != 'M')) return 1;
  const auto read = [&](size_t at, size_t count) -> uint32_t {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value |= static_cast<uint32_t>(tiff[at + i]) << (8 * (little ? i : count - 1 - i));
    }
    return value;
  };
  const size_t directory = read(4, 4);
  if (directory > tiff.size() - 2) return 1;
  const size_t entries = read(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 1;
    if (read(at, 2) != 0x0112) continue;
    const uint32_t value = read(at + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// 2 mirrors, 3 turns by 180, 4 flips, 5 transposes, 6 turns right, 7 transverses, 8 turns left.
void ApplyOrientation(int orientation, Image& image) {
  if (orientation <= 1) return;
  const int64_t width = image.width;
  const int64_t height = image.height;
  const bool swapped = orientation >= 5;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out{.width = swapped ? height : width, .height = swapped ? width : height, .rgb = {}};
  out.rgb.resize(image.rgb.size());
  uint8_t* to = out.rgb.data();
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x, to += 3) {
      const int64_t along_x = swapped ? y : x;
      const int64_t along_y = swapped ? x : y;
      const int64_t from_x = mirror_x ? width - 1 - along_x : along_x;
      const int64_t from_y = mirror_y ? height - 1 - along_y : along_y;
      std::memcpy(to, image.rgb.data() + (from_y * width + from_x) * 3, 3);
    }
  }
  image = std::move(out);
}

// ---- JPEG. libjpeg leaves by longjmp, so that nothing with a destructor lives in the calls
// between.

struct JpegState {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
};

void LeaveJpeg(j_common_ptr common) {
  auto* state = static_cast<JpegState*>(common->client_data);
  common->err->format_message(common, state->message);
  std::longjmp(state->leave, 1);
}

// Level -1 is a warning: the data is damaged and the rest would be made up.
void OnJpegMessage(j_common_ptr common, int level) {
  if (level < 0) LeaveJpeg(common);
}

void OnJpegProgress(j_common_ptr common) {
  auto* state = static_cast<JpegState*>(common->client_data);
  if (state->info.input_scan_number <= kMaxScans) return;
  std::snprintf(state->message, sizeof(state->message), "more than %d scans", kMaxScans);
  std::longjmp(state->leave, 1);
}

bool OpenJpeg(JpegState* state, const unsigned char* data, size_t size) {
  if (setjmp(state->leave) != 0) return false;
  state->info.client_data = state;
  state->info.err = jpeg_std_error(&state->errors);
  state->errors.error_exit = LeaveJpeg;
  state->errors.emit_message = OnJpegMessage;
  jpeg_create_decompress(&state->info);
  state->progress.progress_monitor = OnJpegProgress;
  state->info.progress = &state->progress;
  jpeg_mem_src(&state->info, data, size);
  jpeg_save_markers(&state->info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&state->info, TRUE);
  return true;
}

// Rows of width * channels bytes. ISLOW and fancy upsampling are the defaults, named here because
// the expected pixels hang on them.
bool DecodeJpeg(JpegState* state, unsigned char* pixels, size_t row_bytes) {
  if (setjmp(state->leave) != 0) return false;
  state->info.dct_method = JDCT_ISLOW;
  state->info.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&state->info);
  while (state->info.output_scanline < state->info.output_height) {
    JSAMPROW row = pixels + state->info.output_scanline * row_bytes;
    jpeg_read_scanlines(&state->info, &row, 1);
  }
  jpeg_finish_decompress(&state->info);
  return true;
}

class JpegDecoder {
 public:
  JpegDecoder() = default;
  ~JpegDecoder() { jpeg_destroy_decompress(&state_.info); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Image Decode(Bytes bytes) {
    if (!OpenJpeg(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()))
      Fail();
    jpeg_decompress_struct& info = state_.info;
    Image image{.width = info.image_width, .height = info.image_height, .rgb = {}};
    if (image.width * image.height > kMaxPixels) {
      throw Error(Code::kInvalidData, TooLarge(image.width, image.height));
    }
    // Before decoding: the end of it frees the markers.
    const int orientation = Orientation();
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    const size_t pixels = static_cast<size_t>(image.width * image.height);
    const size_t channels = cmyk ? 4 : 3;
    image.rgb.resize(pixels * channels);
    if (!DecodeJpeg(&state_, image.rgb.data(), static_cast<size_t>(image.width) * channels)) Fail();
    if (cmyk) CmykToRgb(image.rgb);
    ApplyOrientation(orientation, image);
    return image;
  }

 private:
  [[noreturn]] void Fail() const {
    throw Error(Code::kInvalidData, fmt::format("damaged JPEG: {}", state_.message),
                "save the picture again");
  }

  // As Pillow: the values are inverted (Adobe's habit), then each colour is scaled by the lack of
  // black.
  static void CmykToRgb(std::vector<uint8_t>& data) {
    const size_t pixels = data.size() / 4;
    for (size_t i = 0; i < pixels; ++i) {
      const uint8_t* in = data.data() + 4 * i;
      const int white = in[3];
      uint8_t rgb[3];
      for (int c = 0; c < 3; ++c) {
        const int product = (255 - in[c]) * white + 128;
        rgb[c] =
            static_cast<uint8_t>(std::clamp(white - ((product + (product >> 8)) >> 8), 0, 255));
      }
      std::memcpy(data.data() + 3 * i, rgb, 3);
    }
    data.resize(pixels * 3);
  }

  int Orientation() const {
    for (const jpeg_marker_struct* m = state_.info.marker_list; m != nullptr; m = m->next) {
      if (m->marker != JPEG_APP0 + 1 || m->data_length < 6) continue;
      if (std::memcmp(m->data, "Exif\0\0", 6) != 0) continue;
      return ExifOrientation({m->data + 6, m->data_length - 6});
    }
    return 1;
  }

  JpegState state_{};
};

// ---- PNG, by the same pattern.

struct PngState {
  png_structp png;
  png_infop info;
  const unsigned char* data;
  size_t size;
  size_t at;
  char message[256];
};

void LeavePng(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::snprintf(state->message, sizeof(state->message), "%s", message);
  png_longjmp(png, 1);
}

// Warnings concern colour profiles and other chunks that we do not use.
void OnPngWarning(png_structp /*png*/, png_const_charp /*message*/) {}

void ReadPngBytes(png_structp png, png_bytep out, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->size - state->at) png_error(png, "the file is cut short");
  std::memcpy(out, state->data + state->at, count);
  state->at += count;
}

bool OpenPng(PngState* state) {
  if (setjmp(png_jmpbuf(state->png)) != 0) return false;
  png_set_read_fn(state->png, state, ReadPngBytes);
  png_set_user_limits(state->png, 1'000'000, 1'000'000);
  png_read_info(state->png, state->info);
  return true;
}

bool DecodePng(PngState* state, unsigned char* pixels, png_bytepp rows, size_t height,
               size_t row_bytes) {
  if (setjmp(png_jmpbuf(state->png)) != 0) return false;
  png_set_strip_16(state->png);
  png_set_palette_to_rgb(state->png);
  png_set_expand_gray_1_2_4_to_8(state->png);
  png_set_gray_to_rgb(state->png);
  png_set_strip_alpha(state->png);
  png_set_interlace_handling(state->png);
  png_read_update_info(state->png, state->info);
  if (png_get_rowbytes(state->png, state->info) != row_bytes) {
    png_error(state->png, "a row is not 3 bytes a pixel");
  }
  for (size_t y = 0; y < height; ++y) rows[y] = pixels + y * row_bytes;
  png_read_image(state->png, rows);
  png_read_end(state->png, state->info);
  return true;
}

class PngDecoder {
 public:
  explicit PngDecoder(Bytes bytes) {
    state_.data = reinterpret_cast<const unsigned char*>(bytes.data());
    state_.size = bytes.size();
    state_.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, LeavePng, OnPngWarning);
    if (state_.png != nullptr) state_.info = png_create_info_struct(state_.png);
    if (state_.info == nullptr) {
      png_destroy_read_struct(&state_.png, nullptr, nullptr);
      throw Error(Code::kOutOfMemory, "no memory for the PNG decoder");
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&state_.png, &state_.info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Image Decode() {
    if (!OpenPng(&state_)) Fail();
    Image image{.width = png_get_image_width(state_.png, state_.info),
                .height = png_get_image_height(state_.png, state_.info),
                .rgb = {}};
    if (image.width * image.height > kMaxPixels) {
      throw Error(Code::kInvalidData, TooLarge(image.width, image.height));
    }
    // Deflate shrinks 1032 to 1 at most: what the file cannot hold needs no memory.
    const auto packed =
        png_get_rowbytes(state_.png, state_.info) * static_cast<size_t>(image.height);
    if (packed / 1032 > state_.size) {
      throw Error(Code::kInvalidData,
                  fmt::format("damaged PNG: {} x {} pixels cannot be in {} bytes", image.width,
                              image.height, state_.size));
    }
    image.rgb.resize(static_cast<size_t>(image.width * image.height) * 3);
    std::vector<png_bytep> rows(static_cast<size_t>(image.height));
    if (!DecodePng(&state_, image.rgb.data(), rows.data(), rows.size(),
                   static_cast<size_t>(image.width) * 3)) {
      Fail();
    }
    png_uint_32 exif_bytes = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(state_.png, state_.info, &exif_bytes, &exif) != 0 && exif != nullptr) {
      ApplyOrientation(ExifOrientation({exif, exif_bytes}), image);
    }
    return image;
  }

 private:
  [[noreturn]] void Fail() const {
    throw Error(Code::kInvalidData, fmt::format("damaged PNG: {}", state_.message),
                "save the picture again");
  }

  PngState state_{};
};

}  // namespace

Image ReadImage(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  const Bytes bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    if (text.starts_with(kJpegSignature)) return JpegDecoder().Decode(bytes);
    if (text.starts_with(kPngSignature)) return PngDecoder(bytes).Decode();
    throw Error(Code::kInvalidData, "neither JPEG nor PNG by its first bytes",
                "convert the picture to one of them");
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

bool LooksLikeImage(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char head[8] = {};
  const std::string_view text(head, std::fread(head, 1, sizeof(head), file));
  std::fclose(file);
  return text.starts_with(kJpegSignature) || text == kPngSignature;
}

}  // namespace whimbrel
