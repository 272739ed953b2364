// safetensors: round trips, and headers that lie.

#include "whimbrel/tensor/safetensors.h"

#include "tests/tensor/test_files.h"

namespace whimbrel {
namespace {

class SafetensorsTest : public FolderTest {
 protected:
  static std::string File(const std::string& header, const std::string& data) {
    uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
  }
  Error ReadError(const std::string& bytes) const {
    const std::string path = Write("x.safetensors", bytes);
    const Error error = ErrorOf([&] { ReadSafetensors(path); });
    EXPECT_MENTIONS(error, path);
    return error;
  }
};

TEST_F(SafetensorsTest, EveryTypeRoundTripsAlignedAndMapped) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int type = 1; type <= 16; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (ItemSize(dtype) == 0) continue;
    for (const Shape& shape : {Shape{}, Shape{3, 5}, Shape{0, 2}}) {
      Tensor t = Tensor::Host(dtype, shape);
      for (int64_t i = 0; i < t.elements(); ++i)
        SetElementFromDouble(t, i, static_cast<double>(i % 2));
      tensors.emplace_back("t\"\xc3\xa9" + std::to_string(tensors.size()), t);
    }
  }
  WriteSafetensors(Path("a"), tensors, {{"format", "pt"}, {"k", "v"}});
  const SafetensorsFile file = ReadSafetensors(Path("a"));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"k", "v"}}));
  ASSERT_EQ(file.tensors.size(), tensors.size());
  const std::map<std::string, Tensor> read(file.tensors.begin(), file.tensors.end());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(read.contains(name));
    EXPECT_TRUE(BitEqual(read.at(name), tensor)) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.at(name).raw()) % ItemSize(tensor.dtype()), 0u);
  }
}

TEST_F(SafetensorsTest, ReadsWhatOthersWrite) {
  const std::string odd =
      File(R"({"__metadata__":{"a":"b"},"x":{"dtype":"I16","shape":[2],"data_offsets":[1,5]},)"
           R"("y":{"shape":[1],"data_offsets":[0,1],"dtype":"U8"}}  )",
           std::string("\x07\x01\x00\x02\x00", 5));
  const SafetensorsFile file = ReadSafetensors(Write("a", odd));
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].first, "y");
  EXPECT_EQ(IntegerValues(file.tensors[1].second), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(ReadSafetensors(Write("b", File("{}", ""))).tensors.empty());
}

TEST_F(SafetensorsTest, FaultsNameTensorAndFigures) {
  const auto one = [](const std::string& fields) { return "{\"w\":{" + fields + "}}"; };
  EXPECT_MENTIONS(ReadError("1234"), "4 bytes");
  EXPECT_MENTIONS(ReadError(std::string(8, '\xff') + "{}"), "18446744073709551615");
  EXPECT_MENTIONS(ReadError(File("[]", "")), "'{'");
  EXPECT_MENTIONS(ReadError(File("{\"w\":", "")), "JSON");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "1234")),
                  "'w'");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "123")),
                  "the file has 3 bytes");
  EXPECT_MENTIONS(
      ReadError(File(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "12345")),
      "5 bytes");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "12")),
                  "hole");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"U8","shape":[1],"data_offsets":[2,1])"), "12")),
                  "[2, 1)");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"U8","shape":[-1],"data_offsets":[0,0])"), "")),
                  "dimension");
  EXPECT_MENTIONS(
      ReadError(
          File(one(R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0])"), "")),
      "2^58");
  EXPECT_MENTIONS(ReadError(File(one(R"("dtype":"Q9","shape":[],"data_offsets":[0,1])"), "1")),
                  "Q9");
  EXPECT_MENTIONS(ReadError(File(one(R"("shape":[],"data_offsets":[0,1])"), "1")), "needed");
  EXPECT_MENTIONS(
      ReadError(File(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "123")),
      "overlap");
  EXPECT_MENTIONS(
      ReadError(File(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "12")),
      "twice");
  EXPECT_EQ(
      ReadError(File(one(R"("dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1])"), "1")).code(),
      Code::kUnsupported);
  EXPECT_EQ(ReadError(File("{\"a\":" + std::string(5000, '['), "")).code(), Code::kInvalidData);
}

TEST_F(SafetensorsTest, RefusesNamesThatCannotBeWritten) {
  const Tensor t = Tensor::Scalar(1.0F);
  EXPECT_EQ(ErrorOf([&] {
              WriteSafetensors(Path("a"), {{"x", t}, {"x", t}});
            }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] {
              WriteSafetensors(Path("a"), {{"__metadata__", t}});
            }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf([&] {
              WriteSafetensors(Path("a"), {{"\xff", t}});
            }).code(),
            Code::kInvalidArgument);
}

TEST_F(SafetensorsTest, DamagedFilesNeverCrash) {
  WriteSafetensors(Path("a"), {{"w", Tensor::FromValues({2}, std::vector<float>{1, 2})},
                               {"b", Tensor::FromValues({3}, std::vector<int8_t>{1, 2, 3})}});
  Mutate(ReadTextFile(Path("a")), 600, [](const std::string& path) {
    for (const auto& [name, t] : ReadSafetensors(path).tensors)
      EXPECT_TRUE(BitEqual(t, CopyPlain(t)));
  });
}

}  // namespace
}  // namespace whimbrel
