// manifest: DIR/manifest.json: what each stage was made from and gave, the package it names, and
// the gate's verdict.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "whimbrel/base/json.h"

namespace whimbrel {

// docs/MANIFEST.md has the schema. Every save is atomic. Not thread-safe.
class Manifest {
 public:
  // An empty one when there is no file. A damaged file gives an empty one too, and `note` says what
  // was wrong.
  static Manifest Open(const std::string& directory, std::string* note);
  // kNotFound without a file, kInvalidData when it is damaged or not of this form.
  static Manifest Require(const std::string& directory);
  ~Manifest();
  Manifest(Manifest&&) noexcept;

  Json& json() { return *json_; }
  const Json& json() const { return *json_; }

  // What a stage gave, whatever its key; nullptr when it was never done.
  const Json* Result(std::string_view stage) const;
  // The same when it was made under `key` and is whole (its hash is recorded beside it).
  const Json* Reusable(std::string_view stage, std::string_view key) const;
  double Seconds(std::string_view stage) const;  // 0 when not recorded
  // Sets a stage's record and forgets the verdict, which judged something older. Returns the result
  // as a later reader will see it (NaN and Inf are null).
  const Json& Record(std::string_view stage, std::string_view key, const Json& result,
                     double seconds);
  void Save() const;

 private:
  explicit Manifest(std::string directory);
  std::string directory_;
  std::unique_ptr<Json> json_;
};

// Member `key` of `json` when that is an object that has it, else nullptr.
const Json* Member(const Json* json, std::string_view key);

// The one process that may write DIR: held from making to destruction, or to the process's end
// however it ends.
class FolderLock {
 public:
  // kInvalidArgument naming the process when another one holds it.
  explicit FolderLock(const std::string& directory);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

// Where a migrated folder keeps what only the next run needs.
std::string WorkFolder(const std::string& directory);

}  // namespace whimbrel
