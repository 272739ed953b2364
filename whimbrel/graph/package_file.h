// package_file: header, index, sections and hashes of a .wbl file; internal to the package, see
// package.h for its layout.

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/base/file.h"
#include "whimbrel/graph/graph_codec.h"

namespace whimbrel {

// Each of these has a hash of its own.
constexpr size_t kPackageChunkBytes = size_t{1} << 20;

enum SectionId : size_t { kManifest, kGraphs, kPlans, kWeights, kProbes, kSectionCount };

// `bytes` rounded up to the multiple of 64 at which the next section starts.
size_t PaddedBytes(size_t bytes);
// How many chunks cover `bytes`; the last one may be short.
size_t ChunkCount(size_t bytes);

template <typename T>
void PutLittle(std::byte* to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
}

template <typename T>
T GetLittle(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

std::string_view AsText(std::span<const std::byte> bytes);
std::span<const std::byte> AsBytes(std::string_view text);

struct PackageSection {
  std::string_view name;
  size_t offset = 0;  // from the start of the file, a multiple of 64
  size_t bytes = 0;   // without the padding up to the next multiple of 64, which is hashed too
  std::vector<std::string> chunks = {};  // SHA-256 of each

  size_t hashed_bytes() const { return PaddedBytes(bytes); }
  size_t end() const { return offset + hashed_bytes(); }
};

struct PackageFile {
  std::shared_ptr<const MappedFile> file;
  std::array<PackageSection, kSectionCount> sections;

  std::span<const std::byte> bytes(SectionId id) const {
    return file->bytes().subspan(sections[id].offset, sections[id].bytes);
  }
};

// Maps the file and checks its header and index, no section yet. kInvalidData for a damaged file,
// kUnsupported for another format version.
PackageFile OpenPackage(const std::string& path);
// kInvalidData naming section and chunk when the hash is not that of the index.
void CheckChunk(const MappedFile& file, const PackageSection& section, size_t chunk);
void CheckSection(const MappedFile& file, const PackageSection& section);

// The bytes of each section; that of the weights is empty, a BlobWriter holds them.
using PackageParts = std::array<std::vector<std::byte>, kSectionCount>;
// Writes the whole file at once; returns its SHA-256.
std::string WriteSections(const std::string& path, const PackageParts& parts,
                          const BlobWriter& weights);

// Errors of `read` get the place put before them; JSON of another form than expected is damage.
void In(const std::string& place, const std::function<void()>& read);

}  // namespace whimbrel
