// image: JPEG and PNG pictures to 8-bit RGB, and from there to a model's input tensor.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3, rows from the top, EXIF orientation applied
};

// By content, not by name. CMYK JPEG, grey, palette and 16-bit PNG become RGB; a damaged file is
// kInvalidData naming path and the decoder's reason.
Image ReadImage(const std::string& path);
bool LooksLikeImage(const std::string& path);  // JPEG or PNG signature

// value = (pixel - mean) / std per channel of the chosen order. Defaults: no resize, mean 0,
// std 255, rgb, nchw.
struct ImageOptions {
  int64_t width = 0;  // 0 = from the input's shape when that is fixed, else the picture's own
  int64_t height = 0;
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> std{255, 255, 255};
  bool bgr = false;
  bool channels_last = false;  // layout=nhwc
};

// "size=640x640,mean=127.5,std=127.5,order=bgr,layout=nchw"; mean and std take one or three values
// joined by '/' . size is WxH. kInvalidArgument names the unknown key and the known ones.
ImageOptions ParseImageOptions(std::string_view text);
std::string ToString(const ImageOptions& options);  // every field, for the echo of defaults

// [1, 3, H, W] or [1, H, W, 3] of dtype f32, f16 or u8 (u8: mean and std are not applied).
// Bilinear, half-pixel centres, no antialias (cv2.INTER_LINEAR).
Tensor ImageToTensor(const Image& image, const ImageOptions& options, DType dtype);

}  // namespace whimbrel
