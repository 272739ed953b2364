// npy: the header is a Python dict literal; everything else is plain memory.

#include "whimbrel/tensor/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/tensor/file_tensor.h"

namespace whimbrel {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Code2Type {
  std::string_view code;  // without the byte order
  DType type;
};
constexpr Code2Type kCodes[] = {
    {"f4", DType::kFloat},  {"f8", DType::kDouble}, {"f2", DType::kFloat16}, {"i1", DType::kInt8},
    {"i2", DType::kInt16},  {"i4", DType::kInt32},  {"i8", DType::kInt64},   {"u1", DType::kUint8},
    {"u2", DType::kUint16}, {"u4", DType::kUint32}, {"u8", DType::kUint64},  {"b1", DType::kBool},
};

struct Header {
  DType dtype = DType::kUndefined;
  bool fortran_order = false;
  Shape shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }: the part of Python's literals
// that numpy writes, in any order and spacing.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header Parse() {
    Header header;
    bool seen[3] = {};
    Expect('{');
    while (!Take('}')) {
      const std::string_view key = QuotedText();
      Expect(':');
      const int index = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (index < 0) Fail(fmt::format("unknown header key '{}'", key));
      if (std::exchange(seen[index], true)) Fail(fmt::format("header key '{}' stands twice", key));
      if (index == 0) header.dtype = TypeOf();
      if (index == 1) header.fortran_order = Boolean();
      if (index == 2) header.shape = Dims();
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (at_ != text_.size()) Fail("text after the header's dict");
    if (!seen[0] || !seen[1] || !seen[2]) Fail("descr, fortran_order and shape are needed");
    return header;
  }

 private:
  [[noreturn]] void Fail(std::string_view why) const {
    throw Error(Code::kInvalidData, fmt::format("{}: {} (header offset {})", path_, why, at_));
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(fmt::format("expected '{}'", c));
  }
  std::string_view QuotedText() {
    SkipSpace();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') Fail("expected a quoted word");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) Fail("a quote is not closed");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  DType TypeOf() {
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw Error(Code::kUnsupported, path_ + ": structured arrays are not read",
                  "save each field as an array of its own");
    }
    const std::string_view descr = QuotedText();
    const std::string_view code = descr.empty() ? descr : descr.substr(1);
    for (const Code2Type& row : kCodes) {
      if (row.code != code) continue;
      if (descr[0] == '<' || descr[0] == '=' || (descr[0] == '|' && ItemSize(row.type) == 1)) {
        return row.type;
      }
      if (descr[0] == '>' && ItemSize(row.type) == 1) return row.type;
    }
    throw Error(Code::kUnsupported,
                fmt::format("{}: arrays of type '{}' are not read", path_, descr),
                "save a little-endian bool, integer or float array");
  }
  bool Boolean() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    Fail("fortran_order is neither True nor False");
  }
  Shape Dims() {
    std::vector<int64_t> dims;
    Expect('(');
    while (!Take(')')) {
      SkipSpace();
      int64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (code != std::errc() || dim < 0) Fail("a dimension is no number of 0 to 2^63 - 1");
      at_ += static_cast<size_t>(end - begin);
      dims.push_back(dim);
      if (!Take(',')) {
        Expect(')');
        break;
      }
    }
    return Shape(dims);
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

// File order: the first axis runs fastest. Result: row-major copy.
Tensor FromFortranOrder(const Tensor& file_order, const Shape& shape) {
  Tensor out = Tensor::Host(file_order.dtype(), shape);
  if (out.elements() == 0) return out;
  std::array<int64_t, kMaxRank> source_strides{};
  int64_t stride = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    source_strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  const size_t item = ItemSize(out.dtype());
  const auto* from = static_cast<const std::byte*>(file_order.raw());
  auto* to = static_cast<std::byte*>(out.raw());
  std::array<int64_t, kMaxRank> index{};
  int64_t source = 0;
  for (int64_t i = 0; i < out.elements(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * item, from + static_cast<size_t>(source) * item,
                item);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      source += source_strides[a];
      if (++index[a] < shape[axis]) break;
      source -= source_strides[a] * shape[axis];
      index[a] = 0;
    }
  }
  return out;
}

Tensor ReadMapped(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto fail = [&](const std::string& why) {
    return Error(Code::kInvalidData, file->path() + ": " + why);
  };
  if (!text.starts_with(kMagic) || text.size() < 10) throw fail("not an .npy file");
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3 || text[7] != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: .npy format {}.{}; 1.0 to 3.0 are read", file->path(), major,
                            static_cast<unsigned char>(text[7])));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  if (text.size() < start) throw fail("cut short in the header's length");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(text[8 + i])) << (8 * i);
  }
  if (length > text.size() - start) {
    throw fail(
        fmt::format("a header of {} bytes is claimed, {} are there", length, text.size() - start));
  }
  const Header header = HeaderParser(text.substr(start, length), file->path()).Parse();
  const size_t data_at = start + length;
  const auto needed = static_cast<size_t>(header.shape.elements()) * ItemSize(header.dtype);
  if (needed != text.size() - data_at) {
    throw fail(fmt::format("{} {} needs {} bytes of data, the file has {}", DTypeName(header.dtype),
                           ToString(header.shape), needed, text.size() - data_at));
  }
  const Tensor tensor = TensorOnFile(file, data_at, header.dtype, header.shape);
  return header.fortran_order && header.shape.rank() > 1 ? FromFortranOrder(tensor, header.shape)
                                                         : tensor;
}

std::string Descr(DType dtype) {
  if (dtype == DType::kBFloat16) return "<u2";
  for (const Code2Type& row : kCodes) {
    if (row.type == dtype) return fmt::format("{}{}", ItemSize(dtype) == 1 ? '|' : '<', row.code);
  }
  throw Error(Code::kUnsupported, fmt::format("numpy has no type for {}", DTypeName(dtype)));
}

}  // namespace

Tensor ReadNpy(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  try {
    return ReadMapped(file);
  } catch (const Error& error) {
    // Shape's own errors know nothing of files.
    if (std::string_view(error.what()).starts_with(path)) throw;
    throw error.WithContext(path);
  }
}

void WriteNpy(const std::string& path, const Tensor& tensor) {
  const Tensor plain = tensor.layout() == Layout::kPlain ? tensor : CopyPlain(tensor);
  const Shape& shape = plain.shape();
  std::string dims;
  for (int64_t dim : shape.dims()) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", dim);
  if (shape.rank() == 1) dims += ',';
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   Descr(plain.dtype()), dims);
  // As numpy does it: room for the first dimension to grow to 21 digits, then spaces and a newline
  // up to a multiple of 64, so that the data can be mapped.
  if (shape.rank() > 0) header.append(21 - std::to_string(shape[0]).size(), ' ');
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append(64 - unpadded % 64, ' ');
  header += '\n';

  std::string file(kMagic);
  file.reserve(unpadded + 65 + plain.bytes());
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  if (plain.bytes() > 0) file.append(plain.data<char>(), plain.bytes());
  WriteFileAtomic(path, file);
}

}  // namespace whimbrel
