// Files by POSIX calls; every failure names the path and the system's reason.

#include "whimbrel/base/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

[[noreturn]] void FailWithErrno(int error, const std::string& action, const std::string& path) {
  Code code = Code::kInternal;
  std::string hint;
  switch (error) {
    case ENOENT:
      code = Code::kNotFound;
      hint = "check the path";
      break;
    case EISDIR:
    case ENOTDIR:
      code = Code::kInvalidData;
      hint = "check which part of the path is a folder";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kInvalidArgument;
      hint = "check the permissions of the file and its folder";
      break;
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
      code = Code::kInvalidArgument;
      hint = "choose another path";
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = Code::kResourceExhausted;
      hint = "free space on the disk or choose another folder";
      break;
    case EMFILE:
    case ENFILE:
      code = Code::kResourceExhausted;
      hint = "raise the limit of open files (ulimit -n)";
      break;
    case ENOMEM:
      code = Code::kOutOfMemory;
      break;
    default:
      break;
  }
  throw Error(code, "cannot " + action + " " + path + ": " + std::generic_category().message(error),
              hint);
}

[[noreturn]] void Fail(const std::string& action, const std::string& path) {
  FailWithErrno(errno, action, path);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Closes now and says whether the system kept all that was written.
  bool Close() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

struct stat StatOf(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) Fail("read", path);
  if (S_ISDIR(info.st_mode)) FailWithErrno(EISDIR, "read", path);
  return info;
}

void WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB at once; the loop takes what it gives.
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      Fail("write", path);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

// A device, pipe or socket takes the bytes as they come: a rename would replace /dev/null.
void WriteInPlace(const std::string& path, std::span<const std::byte> bytes) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) Fail("open", path);
  WriteAll(file.get(), bytes, path);
}

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe nobody writes to would wait forever.
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) Fail("open", path);
  const struct stat info = StatOf(fd.get(), path);
  if (!S_ISREG(info.st_mode)) {
    throw Error(Code::kInvalidData, "cannot map " + path + ": it is a device or pipe, not a file",
                "copy it to a file first");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);  // the constructor is private
  file->path_ = path;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return file;  // an empty range cannot be mapped
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) Fail("map", path);
  file->data_ = static_cast<const std::byte*>(data);
  file->size_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

std::string ReadTextFile(const std::string& path, size_t limit_bytes) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) Fail("open", path);
  const auto expected = static_cast<size_t>(StatOf(file.get(), path).st_size);
  std::string text;
  size_t filled = 0;
  // The size is a first guess only: /proc says 0, and a file may grow. The byte past the limit is
  // asked for too, so that "too long" is seen.
  const size_t most = limit_bytes == SIZE_MAX ? SIZE_MAX : limit_bytes + 1;
  text.resize(std::min(most, expected + 1));
  while (true) {
    const ssize_t got = read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0) {
      if (errno == EINTR) continue;
      Fail("read", path);
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > limit_bytes) {
      throw Error(Code::kInvalidData,
                  path + " holds more than " + std::to_string(limit_bytes) +
                      " bytes, the most that is read here",
                  "check that this is the file you mean");
    }
    if (filled == text.size()) text.resize(std::min(most, std::max<size_t>(4096, filled * 2)));
  }
  text.resize(filled);
  return text;
}

void WriteFileAtomic(const std::string& path, std::span<const std::byte> bytes) {
  static std::atomic<uint64_t> counter{0};
  struct stat old {};
  const bool replaces = stat(path.c_str(), &old) == 0;
  if (replaces && S_ISDIR(old.st_mode)) FailWithErrno(EISDIR, "write", path);
  if (replaces && !S_ISREG(old.st_mode)) return WriteInPlace(path, bytes);

  // A link stays a link: its target is replaced.
  std::error_code ignored;
  const std::string target =
      replaces ? std::filesystem::canonical(path, ignored).string() : std::string();
  const std::string& final_path = target.empty() ? path : target;
  const std::string folder = ParentDirectory(final_path);
  const std::string temporary = JoinPath(folder, ".whimbrel-" + std::to_string(getpid()) + "-" +
                                                     std::to_string(counter.fetch_add(1)) + ".tmp");
  // Without a name until it is whole: a program that is killed leaves nothing behind. Not all file
  // systems can; there the file has its temporary name from the start.
  Descriptor nameless(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  const bool linked_later = nameless.get() >= 0 && access("/proc/self/fd", X_OK) == 0;
  Descriptor named(linked_later
                       ? -1
                       : open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  Descriptor& file = linked_later ? nameless : named;
  if (file.get() < 0) Fail("write", path);
  try {
    if (replaces && fchmod(file.get(), old.st_mode & 07777) != 0) Fail("write", path);
    WriteAll(file.get(), bytes, path);
    if (fsync(file.get()) != 0) Fail("write", path);
    if (linked_later) {
      const std::string itself = "/proc/self/fd/" + std::to_string(file.get());
      if (linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        Fail("write", path);
      }
    }
    if (!file.Close()) Fail("write", path);
    if (rename(temporary.c_str(), final_path.c_str()) != 0) Fail("write", path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  // The new name survives a power cut once the folder is synced. Not all file systems can; the
  // bytes themselves are safe by now.
  Descriptor directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) fsync(directory.get());
}

void WriteFileAtomic(const std::string& path, std::string_view text) {
  WriteFileAtomic(path, std::as_bytes(std::span(text.data(), text.size())));
}

bool FileExists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

uint64_t FileSize(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) Fail("read", path);
  if (S_ISDIR(info.st_mode)) FailWithErrno(EISDIR, "read", path);
  return static_cast<uint64_t>(info.st_size);
}

void MakeDirectories(const std::string& path) {
  if (IsDirectory(path)) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) FailWithErrno(error.value(), "make the folder", path);
}

void RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) Fail("remove", path);
}

std::string ParentDirectory(const std::string& path) {
  const std::string trimmed = WithoutTrailingSlash(path);
  const std::string parent = std::filesystem::path(trimmed).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(WithoutTrailingSlash(path)).filename().string();
}

std::string FileStem(const std::string& path) {
  return std::filesystem::path(WithoutTrailingSlash(path)).stem().string();
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  return (std::filesystem::path(folder) / std::filesystem::path(name)).string();
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) FailWithErrno(error.value(), "resolve", path);
  return WithoutTrailingSlash(absolute.lexically_normal().string());
}

}  // namespace whimbrel
