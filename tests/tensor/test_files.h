// test_files: a folder per test, the error of a call, and the mutation of a file's bytes.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"

namespace whimbrel {

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = JoinPath(testing::TempDir(), "whimbrel-tensor-XXXXXX");
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }
  std::string Write(std::string_view name, std::string_view bytes) const {
    WriteFileAtomic(Path(name), bytes);
    return Path(name);
  }

  // Flips, overwrites and cuts: `read` must succeed or throw Error, nothing else.
  template <typename F>
  void Mutate(const std::string& bytes, int rounds, F read) const {
    std::mt19937 random(7);
    int failed = 0;
    for (int round = 0; round < rounds; ++round) {
      std::string damaged = bytes;
      if (round % 4 == 0) {
        damaged.resize(random() % bytes.size());
      } else {
        // Half of the hits go to the head, where the lengths and types are.
        const size_t range = round % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 160);
        for (unsigned i = 0; i <= random() % 3; ++i) {
          damaged[random() % range] = static_cast<char>(round % 3 == 0 ? 0xff : random());
        }
      }
      const std::string path = Path("damaged");
      std::filesystem::remove(path);
      WriteQuick(path, damaged);
      try {
        read(path);
      } catch (const Error& error) {
        EXPECT_NE(error.code(), Code::kInternal) << error.what();
        EXPECT_NE(std::string_view(error.what()).find("damaged"), std::string_view::npos)
            << error.what();
        ++failed;
      }
    }
    EXPECT_GT(failed, rounds / 10);
  }

  std::string folder_;

 private:
  // WriteFileAtomic syncs, which is slow a thousand times.
  static void WriteQuick(const std::string& path, std::string_view bytes) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
};

template <typename F>
Error ErrorOf(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error came";
  return Error(Code::kOk, "");
}

#define EXPECT_MENTIONS(error, word) \
  EXPECT_NE(std::string_view((error).what()).find(word), std::string_view::npos) << (error).what()

}  // namespace whimbrel
