// Reading with distrust, writing atomically, and the lock.

#include "whimbrel/migrate/manifest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/base/version.h"

namespace whimbrel {
namespace {

constexpr int kFormat = 1;

std::string PathOf(const std::string& directory) {
  return JoinPath(directory, "manifest.json");
}

Json EmptyManifest() {
  return Json{{"format", kFormat},  {"tool", {{"name", "whimbrel"}, {"version", kVersion}}},
              {"model", nullptr},   {"target", nullptr},
              {"options", nullptr}, {"stages", Json::object()},
              {"package", nullptr}, {"gate", nullptr},
              {"verdict", nullptr}};
}

// Empty when the form is right.
std::string FormFault(const Json& json) {
  if (!json.is_object()) return "is no JSON object";
  const Json* format = Member(&json, "format");
  if (format == nullptr || *format != kFormat) return fmt::format("is not of format {}", kFormat);
  const Json* stages = Member(&json, "stages");
  if (stages == nullptr || !stages->is_object()) return "has no stages";
  return "";
}

Json ReadManifest(const std::string& path) {
  Json json = ParseJson(ReadTextFile(path), path);
  if (const std::string fault = FormFault(json); !fault.empty()) {
    throw Error(Code::kInvalidData, fmt::format("{} {}", path, fault),
                "run whimbrel migrate again: it makes the file anew");
  }
  return json;
}

}  // namespace

const Json* Member(const Json* json, std::string_view key) {
  if (json == nullptr || !json->is_object()) return nullptr;
  const auto found = json->find(key);
  return found == json->end() ? nullptr : &*found;
}

Manifest::Manifest(std::string directory)
    : directory_(std::move(directory)), json_(std::make_unique<Json>(EmptyManifest())) {}
Manifest::~Manifest() = default;
Manifest::Manifest(Manifest&&) noexcept = default;

Manifest Manifest::Open(const std::string& directory, std::string* note) {
  Manifest manifest(directory);
  if (!FileExists(PathOf(directory))) return manifest;
  try {
    Json read = ReadManifest(PathOf(directory));
    // The rest describes the run at hand and is set by it.
    for (const char* key : {"stages", "package"}) {
      if (const Json* member = Member(&read, key)) (*manifest.json_)[key] = *member;
    }
  } catch (const Error& e) {
    *note = fmt::format("manifest.json was damaged, every stage is done again: {}", e.what());
  }
  return manifest;
}

Manifest Manifest::Require(const std::string& directory) {
  if (!FileExists(PathOf(directory))) {
    throw Error(Code::kNotFound, fmt::format("there is no manifest.json in {}", directory),
                "DIR is the folder that whimbrel migrate wrote (-o DIR)");
  }
  Manifest manifest(directory);
  *manifest.json_ = ReadManifest(PathOf(directory));
  return manifest;
}

const Json* Manifest::Result(std::string_view stage) const {
  return Member(Member(Member(json_.get(), "stages"), stage), "result");
}

const Json* Manifest::Reusable(std::string_view stage, std::string_view key) const {
  const Json* record = Member(Member(json_.get(), "stages"), stage);
  const Json* recorded_key = Member(record, "key");
  const Json* hash = Member(record, "sha256");
  const Json* result = Member(record, "result");
  const Json* seconds = Member(record, "seconds");
  if (recorded_key == nullptr || hash == nullptr || result == nullptr || *recorded_key != key)
    return nullptr;
  if (seconds == nullptr || !seconds->is_number()) return nullptr;
  return *hash == Sha256Hex(DumpJson(*result)) ? result : nullptr;
}

double Manifest::Seconds(std::string_view stage) const {
  const Json* seconds = Member(Member(Member(json_.get(), "stages"), stage), "seconds");
  return seconds != nullptr && seconds->is_number() ? seconds->get<double>() : 0;
}

const Json& Manifest::Record(std::string_view stage, std::string_view key, const Json& result,
                             double seconds) {
  const std::string text = DumpJson(result);
  Json& record = (*json_)["stages"][std::string(stage)];
  record =
      Json{{"key", key}, {"seconds", seconds}, {"sha256", ""}, {"result", ParseJson(text, stage)}};
  record["sha256"] = Sha256Hex(DumpJson(record["result"]));
  (*json_)["gate"] = nullptr;
  (*json_)["verdict"] = nullptr;
  return record["result"];
}

void Manifest::Save() const {
  WriteFileAtomic(PathOf(directory_), std::string_view(DumpJson(*json_)));
}

std::string WorkFolder(const std::string& directory) {
  return JoinPath(directory, ".whimbrel");
}

FolderLock::FolderLock(const std::string& directory) {
  MakeDirectories(WorkFolder(directory));
  const std::string path = JoinPath(WorkFolder(directory), "lock");
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("cannot write in {}: {}", directory, std::strerror(errno)),
                "choose another -o DIR");
  }
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t length = pread(file_, holder, sizeof(holder) - 1, 0);
    close(file_);
    throw Error(Code::kInvalidArgument,
                fmt::format("{} is in use by another migrate{}", directory,
                            length > 0 ? fmt::format(" (process {})", holder) : ""),
                "wait for it, or give another -o DIR");
  }
  const std::string own = std::to_string(getpid());
  // Only for the message above: a failure changes nothing.
  if (ftruncate(file_, 0) != 0 || pwrite(file_, own.data(), own.size(), 0) < 0) return;
}

// The lock goes with the descriptor; the file stays, or two processes could each lock a file of
// that name.
FolderLock::~FolderLock() {
  close(file_);
}

}  // namespace whimbrel
