// image: every picture of the test data against its expected pixels, options, resize, damaged
// files.

#include "whimbrel/tensor/image.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/tensor/test_files.h"

#include "whimbrel/base/hash.h"

namespace whimbrel {
namespace {

const std::string kImages = WHIMBREL_TEST_DATA "/images/";

struct Row {
  std::string file, status, note;
  int64_t width = 0, height = 0;
};

std::vector<Row> ReadIndex() {
  std::vector<Row> rows;
  std::istringstream text(ReadTextFile(kImages + "index.csv"));
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) {
    std::istringstream fields(line);
    Row row;
    std::string bytes, width, height, mode;
    std::getline(fields, row.file, ',');
    std::getline(fields, bytes, ',');
    std::getline(fields, row.status, ',');
    std::getline(fields, width, ',');
    std::getline(fields, height, ',');
    std::getline(fields, mode, ',');
    std::getline(fields, row.note);
    if (!width.empty()) row.width = std::stoll(width), row.height = std::stoll(height);
    rows.push_back(row);
  }
  return rows;
}

// The two flower pictures have no expected file: their note gives the start of the pixels' SHA-256.
TEST(Image, EveryPictureOfTheIndexHasItsExpectedPixels) {
  int good = 0, bad = 0;
  for (const Row& row : ReadIndex()) {
    SCOPED_TRACE(row.file);
    const std::string path = kImages + row.file;
    if (row.status != "ok") {
      const Error error = ErrorOf([&] { ReadImage(path); });
      EXPECT_EQ(error.code(), Code::kInvalidData);
      EXPECT_MENTIONS(error, path);
      ++bad;
      continue;
    }
    ++good;
    EXPECT_TRUE(LooksLikeImage(path));
    const Image image = ReadImage(path);
    EXPECT_EQ(image.width, row.width);
    EXPECT_EQ(image.height, row.height);
    if (FileExists(path + ".expected.png")) {
      EXPECT_TRUE(image.rgb == ReadImage(path + ".expected.png").rgb);
      continue;
    }
    const size_t at = row.note.find("sha256(raw RGB) ");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(Sha256Hex(std::as_bytes(std::span(image.rgb))).substr(0, 16),
              row.note.substr(at + 16, 16));
  }
  EXPECT_EQ(good, 21);
  EXPECT_EQ(bad, 3);
}

class ImageTest : public FolderTest {};

TEST_F(ImageTest, SignaturesAreToldApart) {
  EXPECT_FALSE(LooksLikeImage(Write("a.jpg", "hello")));
  EXPECT_FALSE(LooksLikeImage(Write("b.jpg", "")));
  EXPECT_FALSE(LooksLikeImage(Path("none")));
  EXPECT_EQ(ErrorOf([&] { ReadImage(Path("none")); }).code(), Code::kNotFound);
  EXPECT_MENTIONS(ErrorOf([&] { ReadImage(Write("c.jpg", "GIF89a")); }), "neither");
}

// One JPEG under all eight orientations, patched into its EXIF block.
TEST_F(ImageTest, AllEightOrientationsAreApplied) {
  std::string bytes = ReadTextFile(kImages + "exif_orient_6.jpg");
  const size_t exif = bytes.find(std::string("Exif\0\0", 6));
  ASSERT_NE(exif, std::string::npos);
  const bool little = bytes[exif + 6] == 'I';
  const std::string tag =
      little ? std::string("\x12\x01\x03\x00", 4) : std::string("\x01\x12\x00\x03", 4);
  const size_t at = bytes.find(tag, exif) + 8 + (little ? 0 : 1);
  bytes[at] = 1;
  const Image plain = ReadImage(Write("1.jpg", bytes));
  const int64_t w = plain.width, h = plain.height;
  const auto pixel = [](const Image& image, int64_t x, int64_t y) {
    const uint8_t* p = image.rgb.data() + (y * image.width + x) * 3;
    return std::array<uint8_t, 3>{p[0], p[1], p[2]};
  };
  for (int orientation = 2; orientation <= 9; ++orientation) {
    bytes[at] = static_cast<char>(orientation);
    const Image turned = ReadImage(Write("n.jpg", bytes));
    const bool swapped = orientation >= 5 && orientation <= 8;
    ASSERT_EQ(turned.width, swapped ? h : w);
    for (const auto& [x, y] : {std::pair<int64_t, int64_t>{0, 0}, {3, 7}, {20, 11}}) {
      // Where the stored pixel (x, y) is shown.
      const std::map<int, std::pair<int64_t, int64_t>> shown = {
          {2, {w - 1 - x, y}}, {3, {w - 1 - x, h - 1 - y}}, {4, {x, h - 1 - y}}, {5, {y, x}},
          {6, {h - 1 - y, x}}, {7, {h - 1 - y, w - 1 - x}}, {8, {y, w - 1 - x}}, {9, {x, y}}};
      const auto [to_x, to_y] = shown.at(orientation);
      EXPECT_EQ(pixel(turned, to_x, to_y), pixel(plain, x, y)) << orientation;
    }
  }
}

TEST(ImageOptions, RoundTripThroughText) {
  const ImageOptions options =
      ParseImageOptions("size=640x480,mean=127.5,std=1/2/3,order=bgr,layout=nhwc");
  EXPECT_EQ(options.width, 640);
  EXPECT_EQ(options.height, 480);
  EXPECT_EQ(options.mean[2], 127.5);
  EXPECT_EQ(options.std[1], 2);
  EXPECT_TRUE(options.bgr && options.channels_last);
  EXPECT_EQ(ToString(options), "size=640x480,mean=127.5,std=1/2/3,order=bgr,layout=nhwc");
  EXPECT_EQ(ToString(ParseImageOptions("")), "size=auto,mean=0,std=255,order=rgb,layout=nchw");
  EXPECT_EQ(ToString(ParseImageOptions(ToString(ImageOptions{}))), ToString(ImageOptions{}));
  for (const char* text :
       {"width=3", "size=3", "size=0x4", "size=99999x4", "mean=a", "mean=1/2", "mean=1/2/3/4",
        "std=0", "std=inf", "order=rbg", "layout=", "mean", "mean=1,mean=2", "mean=1,"}) {
    const Error error = ErrorOf([&] { ParseImageOptions(text); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << text;
  }
  const Error error = ErrorOf([] { ParseImageOptions("sise=1x1"); });
  EXPECT_MENTIONS(error, "sise");
  EXPECT_NE(error.hint().find("size="), std::string::npos);
}

TEST(Image, BecomesTheInputOfADetector) {
  const Image image = ReadImage(kImages + "page_640.jpg");
  const Tensor t = ImageToTensor(
      image, ParseImageOptions("mean=127.5,std=127.5,order=bgr,layout=nchw"), DType::kFloat);
  ASSERT_EQ(t.shape(), (Shape{1, 3, 640, 640}));
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < 640 * 640; ++i) {
      const float pixel = image.rgb[static_cast<size_t>(i * 3 + 2 - c)];
      // (x / 255 - 0.5) / 0.5, as the index says.
      ASSERT_NEAR(t.data<float>()[c * 640 * 640 + i], (pixel / 255.0F - 0.5F) / 0.5F, 2e-7F);
    }
  }
  const Tensor last = ImageToTensor(image, ParseImageOptions("layout=nhwc"), DType::kUint8);
  EXPECT_EQ(last.shape(), (Shape{1, 640, 640, 3}));
  EXPECT_EQ(std::memcmp(last.raw(), image.rgb.data(), last.bytes()), 0);
  const Tensor half = ImageToTensor(image, ParseImageOptions("layout=nhwc"), DType::kFloat16);
  EXPECT_EQ(ElementAsDouble(half, 5), static_cast<double>(Half(image.rgb[5] / 255.0)));
  EXPECT_EQ(ErrorOf([&] { ImageToTensor(image, {}, DType::kInt64); }).code(), Code::kUnsupported);
  EXPECT_EQ(ErrorOf([] { ImageToTensor(Image{}, {}, DType::kFloat); }).code(),
            Code::kInvalidArgument);
}

TEST(Image, ResizesBilinearlyAtHalfPixelCentres) {
  Image image{.width = 13, .height = 7, .rgb = {}};
  for (int i = 0; i < 13 * 7 * 3; ++i) image.rgb.push_back(static_cast<uint8_t>(i * 37 % 256));
  for (const auto& [w, h] :
       {std::pair<int64_t, int64_t>{13, 7}, {26, 21}, {5, 3}, {1, 1}, {40, 2}}) {
    ImageOptions options;
    options.width = w;
    options.height = h;
    options.channels_last = true;
    const Tensor t = ImageToTensor(image, options, DType::kUint8);
    ASSERT_EQ(t.shape(), (Shape{1, h, w, 3}));
    for (int64_t y = 0; y < h; ++y) {
      for (int64_t x = 0; x < w; ++x) {
        const double sx = std::clamp((x + 0.5) * 13 / w - 0.5, 0.0, 12.0);
        const double sy = std::clamp((y + 0.5) * 7 / h - 0.5, 0.0, 6.0);
        const auto x0 = static_cast<int64_t>(sx), y0 = static_cast<int64_t>(sy);
        const int64_t x1 = std::min<int64_t>(x0 + 1, 12), y1 = std::min<int64_t>(y0 + 1, 6);
        const auto p = [&](int64_t px, int64_t py) {
          return static_cast<double>(image.rgb[static_cast<size_t>((py * 13 + px) * 3)]);
        };
        const double exact = (p(x0, y0) * (1 - sx + x0) + p(x1, y0) * (sx - x0)) * (1 - sy + y0) +
                             (p(x0, y1) * (1 - sx + x0) + p(x1, y1) * (sx - x0)) * (sy - y0);
        EXPECT_NEAR(t.data<uint8_t>()[(y * w + x) * 3], exact, 1.0);
      }
    }
  }
}

// A header of 45 bytes that claims 100000 x 1000 pixels.
TEST_F(ImageTest, ForgedSizesAreRefusedBeforeMemoryIsAsked) {
  std::string jpeg = ReadTextFile(kImages + "tiny_1x1.jpg");
  const size_t sof = jpeg.find("\xff\xc0");
  ASSERT_NE(sof, std::string::npos);
  jpeg.replace(sof + 5, 4, "\xff\x00\xff\x00", 4);
  EXPECT_MENTIONS(ErrorOf([&] { ReadImage(Write("huge.jpg", jpeg)); }), "65280 x 65280");
}

TEST_F(ImageTest, DamagedPicturesNeverCrash) {
  for (const char* name : {"tiny_17x9_420.jpg", "prog_420_q75.jpg", "exif_orient_6.jpg",
                           "cmyk_adobe.jpg", "palette.png", "rgb8.png", "gray8.png"}) {
    SCOPED_TRACE(name);
    Mutate(ReadTextFile(kImages + name), 200, [](const std::string& path) {
      const Image image = ReadImage(path);
      EXPECT_EQ(image.rgb.size(), static_cast<size_t>(image.width * image.height * 3));
    });
  }
}

}  // namespace
}  // namespace whimbrel
