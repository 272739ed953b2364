// Files: memory maps, whole-file reads with a limit, atomic writes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace whimbrel {

// A file mapped read-only for the life of the object. Errors name the path and the system's reason
// (kNotFound, kInvalidData for a directory).
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

std::string ReadTextFile(const std::string& path, size_t limit_bytes = size_t{1} << 30);

// Writes to a temporary file beside `path`, syncs, renames: a reader sees the old or the new bytes,
// never a part. Throws naming path and reason; the temporary file is removed on failure.
void WriteFileAtomic(const std::string& path, std::span<const std::byte> bytes);
void WriteFileAtomic(const std::string& path, std::string_view text);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);
uint64_t FileSize(const std::string& path);
void MakeDirectories(const std::string& path);
void RemoveFile(const std::string& path);  // no error when it is not there
std::string ParentDirectory(const std::string& path);  // "." when there is none
std::string FileName(const std::string& path);
std::string FileStem(const std::string& path);
std::string JoinPath(std::string_view folder, std::string_view name);
std::string AbsolutePath(const std::string& path);

}  // namespace whimbrel
