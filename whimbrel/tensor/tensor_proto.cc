// tensor_proto: counts are compared with the shape before any memory is asked for.

#include "whimbrel/tensor/tensor_proto.h"

#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sys/stat.h>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/tensor/file_tensor.h"
#include "whimbrel/tensor/onnx.pb.h"

namespace whimbrel {
namespace {

constexpr int kRecursionLimit = 100;

std::string TypeText(int32_t number) {
  if (number > 0 && number <= 16) return std::string(DTypeName(static_cast<DType>(number)));
  if (onnx::TensorProto::DataType_IsValid(number)) {
    return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(number));
  }
  return fmt::format("type {}", number);
}

// Numbers beyond DType's range must not be cut to it: 257 is no float.
DType TypeOf(const onnx::TensorProto& proto) {
  const int32_t number = proto.data_type();
  const DType type = number > 0 && number < 256 ? static_cast<DType>(number) : DType::kUndefined;
  if (ItemSize(type) > 0) return type;
  if (number == 0) throw Error(Code::kInvalidData, "it has no data_type");
  throw Error(Code::kUnsupported, fmt::format("there are no tensors of {}", TypeText(number)),
              "convert it to a float, integer or bool type");
}

Shape ShapeOf(const onnx::TensorProto& proto) {
  const Shape shape(
      std::span<const int64_t>(proto.dims().data(), static_cast<size_t>(proto.dims_size())));
  (void)shape.elements();  // throws when it overflows
  return shape;
}

struct ExternalRange {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

uint64_t ParseCount(const onnx::StringStringEntryProto& entry) {
  uint64_t value = 0;
  const std::string& text = entry.value();
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    throw Error(Code::kInvalidData,
                fmt::format("external data: {} is \"{}\", no number of bytes", entry.key(), text));
  }
  return value;
}

ExternalRange ParseExternal(const onnx::TensorProto& proto) {
  ExternalRange range;
  for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") range.location = entry.value();
    if (entry.key() == "offset") range.offset = ParseCount(entry);
    if (entry.key() == "length") range.length = ParseCount(entry);
  }
  if (range.location.empty()) throw Error(Code::kInvalidData, "external data without a location");
  return range;
}

// "", ".", ".." and absolute paths are refused by their text, symbolic links by where they lead.
std::string ResolveLocation(const std::string& location, const std::string& directory) {
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kInvalidData,
                 fmt::format("external data \"{}\" is refused: {}", location.c_str(), why),
                 "put the data file beside the model and export it with a relative path");
  };
  if (location.front() == '/') throw refuse("the path is absolute");
  if (location.find('\0') != std::string::npos) throw refuse("the path holds a zero byte");
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    if (location.compare(begin, end - begin, "..") == 0) throw refuse("the path holds \"..\"");
    begin = end + 1;
  }
  const auto real = [](const std::string& path) -> std::string {
    char* resolved = realpath(path.c_str(), nullptr);
    std::string text = resolved == nullptr ? "" : resolved;
    std::free(resolved);
    return text;
  };
  std::string root = real(directory);
  std::string path = real(JoinPath(directory, location));
  if (root.empty() || path.empty()) {
    throw Error(Code::kNotFound,
                fmt::format("external data file {} is not there", JoinPath(directory, location)),
                "copy the data file beside the model");
  }
  if (root.back() != '/') root += '/';
  if (!path.starts_with(root)) throw refuse("a link leads out of " + directory);
  struct stat info {};
  // A pipe would block the open.
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    throw refuse("it is no regular file");
  return path;
}

Tensor ReadExternal(const onnx::TensorProto& proto, DType dtype, const Shape& shape,
                    const ExternalDataContext& context) {
  const ExternalRange range = ParseExternal(proto);
  if (context.directory.empty()) {
    throw Error(
        Code::kInvalidData,
        fmt::format("its data is in \"{}\", but the model was read from memory and has no folder",
                    range.location),
        "read the model from its file");
  }
  const std::string path = ResolveLocation(range.location, context.directory);
  const auto needed = static_cast<uint64_t>(shape.elements()) * ItemSize(dtype);
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  const uint64_t size = file->bytes().size();
  const uint64_t length = range.length.value_or(needed);
  const auto fail = [&](std::string_view why) {
    return Error(
        Code::kInvalidData,
        fmt::format("external data {} offset {} length {}: {}", path, range.offset, length, why),
        "copy the data file of this very model beside it");
  };
  if (length != needed) {
    throw fail(fmt::format("{} {} needs {} bytes", DTypeName(dtype), ToString(shape), needed));
  }
  if (range.offset > size || length > size - range.offset) {
    throw fail(fmt::format("the file has {} bytes", size));
  }
  return TensorOnFile(file, static_cast<size_t>(range.offset), dtype, shape);
}

template <typename T, typename Field>
void CopyField(const Field& field, Tensor& tensor) {
  T* out = tensor.data<T>();
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<T>(field.Get(i));
}

// int32_data holds the narrow types. Writers differ in whether they extend the sign, so that both
// readings of the bits pass; anything wider is no such value.
template <typename T>
void CopyNarrow(const google::protobuf::RepeatedField<int32_t>& field, Tensor& tensor) {
  constexpr int bits = 8 * sizeof(T);
  T* out = tensor.data<T>();
  for (int i = 0; i < field.size(); ++i) {
    const int32_t value = field.Get(i);
    if (value < -(1 << (bits - 1)) || value >= (1 << bits)) {
      throw Error(Code::kInvalidData, fmt::format("value {} at {} does not fit {}", value, i,
                                                  DTypeName(tensor.dtype())));
    }
    out[i] = static_cast<T>(value);
  }
}

void CopyTyped(const onnx::TensorProto& proto, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      CopyField<float>(proto.float_data(), tensor);
      break;
    case DType::kDouble:
      CopyField<double>(proto.double_data(), tensor);
      break;
    case DType::kInt64:
      CopyField<int64_t>(proto.int64_data(), tensor);
      break;
    case DType::kInt32:
      CopyField<int32_t>(proto.int32_data(), tensor);
      break;
    case DType::kUint64:
      CopyField<uint64_t>(proto.uint64_data(), tensor);
      break;
    case DType::kUint32:
      for (int i = 0; i < proto.uint64_data_size(); ++i) {
        if (proto.uint64_data(i) > UINT32_MAX) {
          throw Error(Code::kInvalidData,
                      fmt::format("value {} at {} does not fit uint32", proto.uint64_data(i), i));
        }
      }
      CopyField<uint32_t>(proto.uint64_data(), tensor);
      break;
    case DType::kBool:
      for (int i = 0; i < proto.int32_data_size(); ++i)
        tensor.data<bool>()[i] = proto.int32_data(i) != 0;
      break;
    case DType::kInt8:
    case DType::kUint8:
      CopyNarrow<uint8_t>(proto.int32_data(), tensor);
      break;
    default:
      CopyNarrow<uint16_t>(proto.int32_data(), tensor);
      break;  // the four 16-bit types
  }
}

// Values in the field that belongs to the type, or in any other field.
struct TypedCount {
  int own;
  int all;
};
TypedCount CountTyped(const onnx::TensorProto& proto, DType dtype) {
  const int all = proto.float_data_size() + proto.int32_data_size() + proto.int64_data_size() +
                  proto.double_data_size() + proto.uint64_data_size() + proto.string_data_size();
  switch (dtype) {
    case DType::kFloat:
      return {proto.float_data_size(), all};
    case DType::kDouble:
      return {proto.double_data_size(), all};
    case DType::kInt64:
      return {proto.int64_data_size(), all};
    case DType::kUint32:
    case DType::kUint64:
      return {proto.uint64_data_size(), all};
    default:
      return {proto.int32_data_size(), all};
  }
}

Tensor Convert(const onnx::TensorProto& proto, const ExternalDataContext& context) {
  const DType dtype = TypeOf(proto);
  const Shape shape = ShapeOf(proto);
  if (proto.has_segment()) throw Error(Code::kUnsupported, "tensors in segments are not read");
  const TypedCount typed = CountTyped(proto, dtype);
  const size_t raw_bytes = proto.raw_data().size();
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    if (typed.all > 0 || raw_bytes > 0) {
      throw Error(Code::kInvalidData, "it has external data and data in the message");
    }
    return ReadExternal(proto, dtype, shape, context);
  }
  const auto fail = [&](const std::string& found) {
    return Error(Code::kInvalidData,
                 fmt::format("{} {} needs {} elements ({} bytes), the message holds {}",
                             DTypeName(dtype), ToString(shape), shape.elements(),
                             static_cast<size_t>(shape.elements()) * ItemSize(dtype), found));
  };
  if (typed.all != typed.own) {
    throw fail(fmt::format("{} values in fields of other types", typed.all - typed.own));
  }
  if (proto.has_raw_data() && (raw_bytes > 0 || typed.own == 0)) {
    if (typed.own > 0) throw fail("raw_data and typed data at once");
    if (raw_bytes != static_cast<size_t>(shape.elements()) * ItemSize(dtype)) {
      throw fail(fmt::format("{} bytes", raw_bytes));
    }
    return TensorFromBytes(proto.raw_data().data(), dtype, shape);
  }
  if (typed.own != shape.elements()) throw fail(fmt::format("{} values", typed.own));
  Tensor tensor = Tensor::Host(dtype, shape);
  CopyTyped(proto, tensor);
  return tensor;
}

}  // namespace

Tensor TensorFromProto(const onnx::TensorProto& proto, const ExternalDataContext& context) {
  try {
    return Convert(proto, context);
  } catch (const Error& error) {
    throw error.WithContext(proto.name().empty() ? "tensor without a name"
                                                 : "tensor '" + proto.name() + "'");
  }
}

Tensor ReadTensorProtoFile(const std::string& path, std::string* name) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > INT_MAX) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} bytes; a protobuf message ends at 2^31 - 1",
                                                path, bytes.size()));
  }
  const auto size = static_cast<int>(bytes.size());
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                size);
  stream.SetTotalBytesLimit(size);
  stream.SetRecursionLimit(kRecursionLimit);
  onnx::TensorProto proto;
  // protobuf prints its own complaints to stderr; ours is thrown.
  const google::protobuf::LogSilencer silence;
  if (!proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    throw Error(Code::kInvalidData,
                fmt::format("{}: {} bytes are no ONNX TensorProto message", path, size),
                "expected a .pb file as the ONNX test data has them");
  }
  if (name != nullptr) *name = proto.name();
  try {
    return TensorFromProto(proto, {.directory = ParentDirectory(path)});
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

void WriteTensorProtoFile(const std::string& path, const Tensor& tensor, std::string_view name) {
  // The other fields take some hundred bytes.
  if (tensor.bytes() > size_t{INT_MAX} - name.size() - 1024) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: tensor '{}' has {} bytes; a protobuf message ends at 2^31 - 1",
                            path, name, tensor.bytes()),
                "write it as .npy or .safetensors");
  }
  onnx::TensorProto proto;
  for (int64_t dim : tensor.shape().dims()) proto.add_dims(dim);
  proto.set_data_type(static_cast<int32_t>(tensor.dtype()));
  if (!name.empty()) proto.set_name(std::string(name));
  const Tensor plain = tensor.layout() == Layout::kPlain ? tensor : CopyPlain(tensor);
  proto.set_raw_data(plain.raw(), plain.bytes());
  WriteFileAtomic(path, proto.SerializeAsString());
}

}  // namespace whimbrel
