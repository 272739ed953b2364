// tensor_proto: every field and type, external data and its refusals, messages that lie.

#include "whimbrel/tensor/tensor_proto.h"

#include <cstring>
#include <filesystem>

#include "tests/tensor/test_files.h"

#include "whimbrel/tensor/onnx.pb.h"

namespace whimbrel {
namespace {

onnx::TensorProto Proto(int type, std::initializer_list<int64_t> dims) {
  onnx::TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(type);
  for (int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

Error ConvertError(const onnx::TensorProto& proto, const std::string& directory = "") {
  const Error error = ErrorOf([&] { TensorFromProto(proto, {directory}); });
  EXPECT_MENTIONS(error, "'w'");
  return error;
}

class TensorProtoTest : public FolderTest {
 protected:
  onnx::TensorProto External(const std::string& location, const std::string& offset = "",
                             const std::string& length = "") const {
    onnx::TensorProto proto = Proto(onnx::TensorProto::FLOAT, {2});
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, const std::string*> entries[] = {
        {"location", &location}, {"offset", &offset}, {"length", &length}};
    for (const auto& [key, value] : entries) {
      if (value->empty()) continue;
      auto* entry = proto.add_external_data();
      entry->set_key(key);
      entry->set_value(*value);
    }
    return proto;
  }
};

TEST_F(TensorProtoTest, EveryTypeRoundTripsThroughAFile) {
  for (int type = 1; type <= 16; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (ItemSize(dtype) == 0) continue;
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0, 4}}) {
      Tensor t = Tensor::Host(dtype, shape);
      for (int64_t i = 0; i < t.elements(); ++i)
        SetElementFromDouble(t, i, static_cast<double>(i % 2));
      WriteTensorProtoFile(Path("t.pb"), t, "name");
      std::string name;
      EXPECT_TRUE(BitEqual(ReadTensorProtoFile(Path("t.pb"), &name), t)) << DTypeName(dtype);
      EXPECT_EQ(name, "name");
    }
  }
}

TEST_F(TensorProtoTest, TypedFieldsHoldTheNarrowTypes) {
  const auto from_ints = [](int type, std::initializer_list<int32_t> values) {
    onnx::TensorProto proto = Proto(type, {static_cast<int64_t>(values.size())});
    for (int32_t value : values) proto.add_int32_data(value);
    return TensorFromProto(proto, {});
  };
  EXPECT_EQ(IntegerValues(from_ints(onnx::TensorProto::INT8, {-128, 127, 255})),
            (std::vector<int64_t>{-128, 127, -1}));
  EXPECT_EQ(IntegerValues(from_ints(onnx::TensorProto::UINT8, {0, 255})),
            (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(IntegerValues(from_ints(onnx::TensorProto::INT16, {-32768, 32767})),
            (std::vector<int64_t>{-32768, 32767}));
  EXPECT_EQ(IntegerValues(from_ints(onnx::TensorProto::UINT16, {65535})),
            (std::vector<int64_t>{65535}));
  EXPECT_EQ(IntegerValues(from_ints(onnx::TensorProto::BOOL, {0, 1, 7})),
            (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(ElementAsDouble(from_ints(onnx::TensorProto::FLOAT16, {0x3c00}), 0), 1);
  EXPECT_EQ(ElementAsDouble(from_ints(onnx::TensorProto::BFLOAT16, {-16512}), 0),
            -1);  // sign extended
  EXPECT_EQ(ErrorOf([&] { from_ints(onnx::TensorProto::INT8, {256}); }).code(), Code::kInvalidData);
  EXPECT_EQ(ErrorOf([&] { from_ints(onnx::TensorProto::UINT16, {-40000}); }).code(),
            Code::kInvalidData);
}

TEST_F(TensorProtoTest, TypedFieldsHoldTheWideTypes) {
  onnx::TensorProto f = Proto(onnx::TensorProto::FLOAT, {1});
  f.add_float_data(1.5F);
  EXPECT_EQ(ElementAsDouble(TensorFromProto(f, {}), 0), 1.5);
  onnx::TensorProto d = Proto(onnx::TensorProto::DOUBLE, {});
  d.add_double_data(1e300);
  EXPECT_EQ(ElementAsDouble(TensorFromProto(d, {}), 0), 1e300);
  onnx::TensorProto i = Proto(onnx::TensorProto::INT64, {2});
  i.add_int64_data(INT64_MIN);
  i.add_int64_data(3);
  EXPECT_EQ(IntegerValues(TensorFromProto(i, {})), (std::vector<int64_t>{INT64_MIN, 3}));
  onnx::TensorProto u = Proto(onnx::TensorProto::UINT32, {1});
  u.add_uint64_data(0xffffffff);
  EXPECT_EQ(ElementAsInt64(TensorFromProto(u, {}), 0), 0xffffffff);
  u.set_uint64_data(0, 0x100000000);
  EXPECT_EQ(ConvertError(u).code(), Code::kInvalidData);
}

TEST_F(TensorProtoTest, UnpackedFieldsAreReadToo) {
  // dims: 2 (unpacked), data_type: INT64, int64_data: 5, 6 as two varint fields.
  const std::string bytes("\x08\x02\x10\x07\x38\x05\x38\x06", 8);
  EXPECT_EQ(IntegerValues(ReadTensorProtoFile(Write("u.pb", bytes))), (std::vector<int64_t>{5, 6}));
  // dims packed, which the schema does not ask for.
  const std::string packed("\x0a\x02\x01\x02\x10\x07\x3a\x02\x05\x06", 10);
  EXPECT_EQ(ReadTensorProtoFile(Write("p.pb", packed)).shape(), (Shape{1, 2}));
}

TEST_F(TensorProtoTest, CountsMustMatchBeforeAnyMemoryIsAsked) {
  onnx::TensorProto huge = Proto(onnx::TensorProto::FLOAT, {50'000, 50'000});
  EXPECT_MENTIONS(ConvertError(huge), "10000000000 bytes");
  huge.set_raw_data("1234");
  EXPECT_MENTIONS(ConvertError(huge), "holds 4 bytes");
  EXPECT_MENTIONS(ConvertError(Proto(onnx::TensorProto::FLOAT, {1 << 30, 1 << 30})), "2^58");
  EXPECT_EQ(ConvertError(Proto(onnx::TensorProto::FLOAT, {-1})).code(), Code::kInvalidData);
  EXPECT_EQ(ConvertError(Proto(onnx::TensorProto::FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 1})).code(),
            Code::kUnsupported);
  onnx::TensorProto both = Proto(onnx::TensorProto::FLOAT, {1});
  both.add_float_data(1);
  both.set_raw_data("1234");
  EXPECT_EQ(ConvertError(both).code(), Code::kInvalidData);
  onnx::TensorProto other = Proto(onnx::TensorProto::FLOAT, {1});
  other.add_int32_data(1);
  EXPECT_MENTIONS(ConvertError(other), "other types");
  onnx::TensorProto more = Proto(onnx::TensorProto::FLOAT, {});
  more.add_float_data(1);
  more.add_float_data(2);
  EXPECT_MENTIONS(ConvertError(more), "2 values");
  EXPECT_EQ(TensorFromProto(Proto(onnx::TensorProto::FLOAT, {0}), {}).elements(), 0);
}

TEST_F(TensorProtoTest, TypesWithoutTensorsAreNamed) {
  for (const auto& [type, word] : {std::pair<int, const char*>{8, "string"},
                                   {14, "complex64"},
                                   {17, "FLOAT8E4M3FN"},
                                   {22, "INT4"},
                                   {99, "type 99"},
                                   {257, "type 257"},
                                   {-1, "type -1"}}) {
    const Error error = ConvertError(Proto(type, {}));
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_MENTIONS(error, word);
  }
  EXPECT_EQ(ConvertError(Proto(0, {})).code(), Code::kInvalidData);
}

TEST_F(TensorProtoTest, ExternalDataIsMappedFromTheModelsFolder) {
  const float values[] = {0, 1.5F, -2, 7};
  std::filesystem::create_directory(Path("sub"));
  Write("sub/data.bin", std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  for (const auto& [offset, length, first] :
       {std::tuple<const char*, const char*, float>{"4", "8", 1.5F}, {"8", "", -2}, {"", "8", 0}}) {
    const Tensor t = TensorFromProto(External("sub/data.bin", offset, length), {folder_});
    EXPECT_EQ(t.data<float>()[0], first);
  }
  EXPECT_EQ(TensorFromProto(External("./sub/data.bin", "3", "8"), {folder_}).elements(),
            2);  // not aligned
  for (const auto& [offset, length] : {std::pair<const char*, const char*>{"12", "8"},
                                       {"18446744073709551615", "8"},
                                       {"17", ""},
                                       {"0", "4"},
                                       {"0", "16"}}) {
    const Error error = ConvertError(External("sub/data.bin", offset, length), folder_);
    EXPECT_EQ(error.code(), Code::kInvalidData);
    EXPECT_MENTIONS(error, "sub/data.bin");
    EXPECT_MENTIONS(error, std::string("offset ") + offset);
    EXPECT_MENTIONS(error, std::string("length ") + (*length != 0 ? length : "8"));
  }
  EXPECT_MENTIONS(ConvertError(External("sub/data.bin", "-1"), folder_), "\"-1\"");
  EXPECT_MENTIONS(ConvertError(External("sub/data.bin", "4k"), folder_), "\"4k\"");
  EXPECT_MENTIONS(ConvertError(External("sub/data.bin")), "from memory");
  EXPECT_EQ(ConvertError(External("missing.bin"), folder_).code(), Code::kNotFound);
  EXPECT_MENTIONS(ConvertError(External(""), folder_), "location");
}

TEST_F(TensorProtoTest, ExternalDataNeverLeavesTheFolder) {
  Write("secret.bin", "12345678");
  std::filesystem::create_directory(Path("model"));
  std::filesystem::create_directory(Path("model/sub"));
  std::filesystem::create_symlink("../secret.bin", Path("model/link.bin"));
  std::filesystem::create_directory_symlink("..", Path("model/up"));
  Write("model/inside.bin", "12345678");
  std::filesystem::create_symlink("inside.bin", Path("model/alias.bin"));
  Write("model2.bin", "12345678");
  std::filesystem::create_symlink("../model2.bin", Path("model/prefix.bin"));
  const std::string model = Path("model");
  EXPECT_EQ(TensorFromProto(External("alias.bin"), {model}).elements(), 2);
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("sub/../../secret.bin"), Path("secret.bin"),
        std::string("link.bin"), std::string("up/secret.bin"), std::string("prefix.bin"),
        std::string(".."), std::string("."), std::string("sub"),
        std::string("inside.bin\0x", 12)}) {
    const Error error = ConvertError(External(location), model);
    EXPECT_EQ(error.code(), Code::kInvalidData) << location;
    EXPECT_MENTIONS(error, "refused");
  }
}

TEST_F(TensorProtoTest, RealTestDataIsRead) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(WHIMBREL_TEST_DATA "/models")) {
    if (entry.path().extension() != ".pb") continue;
    const Tensor t = ReadTensorProtoFile(entry.path());
    EXPECT_TRUE(t.has_data()) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST_F(TensorProtoTest, OtherFilesAreNoMessages) {
  EXPECT_MENTIONS(ErrorOf([&] { ReadTensorProtoFile(Write("x.pb", "hello, world")); }), "x.pb");
  EXPECT_EQ(ErrorOf([&] { ReadTensorProtoFile(Path("none.pb")); }).code(), Code::kNotFound);
  EXPECT_EQ(ErrorOf([&] { ReadTensorProtoFile(Write("e.pb", "")); }).code(), Code::kInvalidData);
  // Groups nested far beyond the limit, in an unknown field.
  EXPECT_EQ(
      ErrorOf([&] { ReadTensorProtoFile(Write("deep.pb", std::string(100'000, '\x7b'))); }).code(),
      Code::kInvalidData);
}

TEST_F(TensorProtoTest, DamagedMessagesNeverCrash) {
  const auto read = [](const std::string& path) {
    const Tensor t = ReadTensorProtoFile(path);
    EXPECT_TRUE(BitEqual(t, CopyPlain(t)));
  };
  WriteTensorProtoFile(Path("t.pb"), Tensor::FromValues({2, 3}, std::vector<float>(6, 1.0F)),
                       "name");
  Mutate(ReadTextFile(Path("t.pb")), 600, read);
  onnx::TensorProto typed = Proto(onnx::TensorProto::INT8, {4});
  for (int i = 0; i < 4; ++i) typed.add_int32_data(i - 2);
  Mutate(typed.SerializeAsString(), 600, read);
  Write("data.bin", "12345678");
  Mutate(External("data.bin", "0", "8").SerializeAsString(), 600, read);
}

}  // namespace
}  // namespace whimbrel
