// Files: maps, limits, and writes that leave the old bytes when they fail.

#include "whimbrel/base/file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = JoinPath(testing::TempDir(), "whimbrel-file-XXXXXX");
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }
  int Entries() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }

  std::string folder_;
};

template <typename F>
Error ErrorOf(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "no error");
}

TEST_F(FileTest, WritesAndReadsBackAnyBytes) {
  const std::string bytes("a\0b\xff\n", 5);
  WriteFileAtomic(Path("f"), bytes);
  EXPECT_EQ(ReadTextFile(Path("f")), bytes);
  EXPECT_EQ(FileSize(Path("f")), 5u);
  WriteFileAtomic(Path("f"), std::string_view());
  EXPECT_EQ(ReadTextFile(Path("f")), "");
  const std::string large(3'000'001, 'x');
  WriteFileAtomic(Path("f"), large);
  EXPECT_EQ(ReadTextFile(Path("f")), large);
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, KeepsTheOldFileWhenTheWriteFails) {
  WriteFileAtomic(Path("f"), "old");
  // A file size limit makes the write fail half way, as a full disk does.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = ErrorOf([&] { WriteFileAtomic(Path("f"), std::string(100'000, 'n')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.code(), Code::kResourceExhausted);
  EXPECT_NE(std::string(error.what()).find(Path("f")), std::string::npos) << error.what();
  EXPECT_EQ(ReadTextFile(Path("f")), "old");
  EXPECT_EQ(Entries(), 1) << "the temporary file is still there";
}

TEST_F(FileTest, KeepsTheModeOfTheFileItReplacesAndTheLinkItIsNamedBy) {
  WriteFileAtomic(Path("f"), "old");
  ASSERT_EQ(chmod(Path("f").c_str(), 0640), 0);
  std::filesystem::create_symlink("f", Path("link"));
  WriteFileAtomic(Path("link"), "new");
  EXPECT_EQ(ReadTextFile(Path("f")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  struct stat info {};
  ASSERT_EQ(stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST_F(FileTest, WritesToADeviceWithoutReplacingIt) {
  WriteFileAtomic("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(ErrorOf([] { WriteFileAtomic("/dev/full", "x"); }).code(), Code::kResourceExhausted);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(FileTest, NamesPathAndReasonInEveryError) {
  const std::string missing = Path("missing");
  for (const Error& error :
       {ErrorOf([&] { ReadTextFile(missing); }), ErrorOf([&] { MappedFile::Open(missing); }),
        ErrorOf([&] { FileSize(missing); }),
        ErrorOf([&] { WriteFileAtomic(missing + "/f", "x"); })}) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_NE(std::string(error.what()).find(missing), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
  for (const Error& error :
       {ErrorOf([&] { ReadTextFile(folder_); }), ErrorOf([&] { MappedFile::Open(folder_); }),
        ErrorOf([&] { FileSize(folder_); }), ErrorOf([&] { WriteFileAtomic(folder_, "x"); })}) {
    EXPECT_EQ(error.code(), Code::kInvalidData) << error.what();
  }
}

TEST_F(FileTest, RefusesToReadPastTheLimit) {
  WriteFileAtomic(Path("f"), "12345");
  EXPECT_EQ(ReadTextFile(Path("f"), 5), "12345");
  EXPECT_EQ(ErrorOf([&] { ReadTextFile(Path("f"), 4); }).code(), Code::kInvalidData);
  EXPECT_EQ(ErrorOf([] { ReadTextFile("/dev/zero", 10'000); }).code(), Code::kInvalidData);
}

TEST_F(FileTest, ReadsAFileWhoseSizeIsNotKnown) {
  EXPECT_NE(ReadTextFile("/proc/self/status").find("VmRSS"), std::string::npos);
}

TEST_F(FileTest, MapsAFileThatOutlivesItsName) {
  WriteFileAtomic(Path("f"), "weights");
  const auto map = MappedFile::Open(Path("f"));
  RemoveFile(Path("f"));
  EXPECT_EQ(map->path(), Path("f"));
  const auto bytes = map->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "weights");
}

TEST_F(FileTest, MapsAnEmptyFileAndRefusesAPipe) {
  WriteFileAtomic(Path("f"), "");
  EXPECT_TRUE(MappedFile::Open(Path("f"))->bytes().empty());
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf([&] { MappedFile::Open(Path("pipe")); }).code(), Code::kInvalidData);
}

TEST_F(FileTest, MakesFoldersAndRemovesFiles) {
  MakeDirectories(Path("a/b/c"));
  MakeDirectories(Path("a/b/c"));
  EXPECT_TRUE(IsDirectory(Path("a/b/c")));
  WriteFileAtomic(Path("a/f"), "x");
  EXPECT_TRUE(FileExists(Path("a/f")));
  EXPECT_FALSE(IsDirectory(Path("a/f")));
  EXPECT_EQ(ErrorOf([&] { MakeDirectories(Path("a/f/d")); }).code(), Code::kInvalidData);
  RemoveFile(Path("a/f"));
  RemoveFile(Path("a/f"));
  EXPECT_FALSE(FileExists(Path("a/f")));
}

TEST(Paths, TakeNamesApartAndJoinThem) {
  EXPECT_EQ(ParentDirectory("a/b.onnx"), "a");
  EXPECT_EQ(ParentDirectory("b.onnx"), ".");
  EXPECT_EQ(ParentDirectory("a/b/"), "a");
  EXPECT_EQ(ParentDirectory("/"), "/");
  EXPECT_EQ(FileName("a/b.onnx"), "b.onnx");
  EXPECT_EQ(FileName("a/b/"), "b");
  EXPECT_EQ(FileStem("a/b.tar.gz"), "b.tar");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(AbsolutePath("/a/./b/../c/"), "/a/c");
  EXPECT_EQ(AbsolutePath("x"), JoinPath(std::filesystem::current_path().string(), "x"));
}

}  // namespace
}  // namespace whimbrel
