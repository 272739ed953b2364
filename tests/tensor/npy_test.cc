// npy: numpy's bytes, every type and order, and damaged files.

#include "whimbrel/tensor/npy.h"

#include "tests/tensor/test_files.h"

namespace whimbrel {
namespace {

using namespace std::string_literals;

class NpyTest : public FolderTest {
 protected:
  static std::string File(const std::string& dict, const std::string& data, char major = 1) {
    std::string text = "\x93NUMPY"s + major + '\0';
    text += static_cast<char>(dict.size());
    text += static_cast<char>(dict.size() >> 8);
    if (major > 1) text += "\0\0"s;
    return text + dict + data;
  }
  Error ReadError(const std::string& bytes) const {
    const std::string path = Write("x.npy", bytes);
    const Error error = ErrorOf([&] { ReadNpy(path); });
    EXPECT_MENTIONS(error, path);
    return error;
  }
};

TEST_F(NpyTest, WritesTheBytesThatNumpyWrites) {
  // numpy 2.4.6: np.save(f, np.array([[1.5, -2, 3.25]], '<f4'))
  const std::string expected =
      "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"s +
      std::string(58, ' ') + "\n\0\0\xc0\x3f\0\0\0\xc0\0\0\x50\x40"s;
  WriteNpy(Path("a.npy"), Tensor::FromValues({1, 3}, std::vector<float>{1.5F, -2, 3.25F}));
  EXPECT_EQ(ReadTextFile(Path("a.npy")), expected);
  WriteNpy(Path("b.npy"), Tensor::Scalar(2.5));
  const std::string scalar = ReadTextFile(Path("b.npy"));
  EXPECT_EQ(scalar.size(), 136u);
  EXPECT_NE(scalar.find("'shape': (), }"), std::string::npos);
  WriteNpy(Path("c.npy"), Tensor::FromValues({2}, std::vector<uint8_t>{1, 2}));
  EXPECT_NE(
      ReadTextFile(Path("c.npy")).find("'descr': '|u1', 'fortran_order': False, 'shape': (2,), }"),
      std::string::npos);
}

TEST_F(NpyTest, EveryTypeAndRankRoundTrips) {
  const Shape shapes[] = {{}, {5}, {0}, {2, 3}, {1, 2, 3, 1, 2, 1, 1, 2}, {3, 0, 2}};
  for (int type = 1; type < 16; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (ItemSize(dtype) == 0) continue;
    for (const Shape& shape : shapes) {
      Tensor t = Tensor::Host(dtype, shape);
      for (int64_t i = 0; i < t.elements(); ++i)
        SetElementFromDouble(t, i, static_cast<double>(i % 3));
      WriteNpy(Path("t.npy"), t);
      EXPECT_TRUE(BitEqual(ReadNpy(Path("t.npy")), t)) << DTypeName(dtype) << ToString(shape);
    }
  }
  const Tensor bf16 = Tensor::Scalar(BFloat16(1.0F));
  WriteNpy(Path("t.npy"), bf16);
  EXPECT_EQ(ReadNpy(Path("t.npy")).values<uint16_t>()[0], 0x3f80);
}

TEST_F(NpyTest, ChannelsLastIsWrittenPlain) {
  const Tensor plain = Tensor::FromValues({1, 2, 2}, std::vector<float>{1, 2, 3, 4});
  Tensor last = Tensor::Host(DType::kFloat, {1, 2, 2}).WithLayout({1, 2, 2}, Layout::kChannelsLast);
  ConvertLayout(plain, last);
  WriteNpy(Path("t.npy"), last);
  EXPECT_TRUE(BitEqual(ReadNpy(Path("t.npy")), plain));
}

TEST_F(NpyTest, FortranOrderAndAllFormatsAreRead) {
  const std::string dict = "{'descr':'|u1','fortran_order':True,'shape':(2,3)}";
  for (char major : {1, 2, 3}) {
    const Tensor t = ReadNpy(Write("f.npy", File(dict, "abcdef", major)));
    const auto values = t.values<uint8_t>();
    EXPECT_EQ(std::string(values.begin(), values.end()), "acebdf");
  }
  // Not aligned: copied. Other quotes, order and spaces: Python's, too.
  const Tensor t =
      ReadNpy(Write("g.npy", File("{ \"shape\": (1 ,),'fortran_order': False, 'descr': '<i4' }\n",
                                  "\x01\0\0\0"s)));
  EXPECT_EQ(t.values<int32_t>()[0], 1);
  // Bytes above 1 are true.
  const Tensor b = ReadNpy(
      Write("b.npy", File("{'descr':'|b1','fortran_order':False,'shape':(2,)}", "\x02\0"s)));
  EXPECT_EQ(IntegerValues(b), (std::vector<int64_t>{1, 0}));
}

TEST_F(NpyTest, FaultsAreNamed) {
  const auto dict = [](const std::string& descr, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_MENTIONS(ReadError(""), "not an .npy");
  EXPECT_MENTIONS(ReadError("PK\x03\x04 this is a zip"), "not an .npy");
  EXPECT_MENTIONS(ReadError(File(dict("'<f4'", "(3,)"), "1234")),
                  "12 bytes of data, the file has 4");
  EXPECT_MENTIONS(ReadError(File(dict("'<f4'", "(1,)"), "12345")), "the file has 5");
  EXPECT_MENTIONS(ReadError(File(dict("'<f4'", "(4611686018427387904, 4)"), "")), "2^58");
  EXPECT_MENTIONS(ReadError(File(dict("'<f4'", "(-1,)"), "")), "dimension");
  EXPECT_MENTIONS(ReadError("\x93NUMPY\x01\0\xff\xff{}"s), "65535 bytes");
  EXPECT_MENTIONS(ReadError(File("{'descr': '<f4'}", "")), "needed");
  for (const char* descr : {"'>f4'", "'<c8'", "'|O'", "'<U4'", "'<V2'", "''", "[('a', '<f4')]"}) {
    EXPECT_EQ(ReadError(File(dict(descr, "()"), "1234")).code(), Code::kUnsupported) << descr;
  }
  EXPECT_EQ(ReadError(File(dict("'<f4'", "(1,1,1,1,1,1,1,1,1)"), "1234")).code(),
            Code::kUnsupported);
  EXPECT_EQ(ReadError(File(dict("'<f4'", "()"), "1234", 9)).code(), Code::kUnsupported);
}

TEST_F(NpyTest, DamagedFilesNeverCrash) {
  WriteNpy(Path("t.npy"), Tensor::FromValues({2, 3}, std::vector<float>(6, 1.0F)));
  Mutate(ReadTextFile(Path("t.npy")), 600, [](const std::string& path) {
    const Tensor t = ReadNpy(path);
    EXPECT_TRUE(BitEqual(t, CopyPlain(t)));  // every byte is there
  });
}

}  // namespace
}  // namespace whimbrel
