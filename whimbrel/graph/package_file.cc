// The bytes of a .wbl file: written in one piece, read through a map; nothing is believed before
// its hash is checked.

#include "whimbrel/graph/package_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/hash.h"
#include "whimbrel/graph/package.h"

namespace whimbrel {
namespace {

constexpr std::string_view kMagic = "WHIMBRL1";
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kVersionOffset = 8;
constexpr size_t kFlagsOffset = 12;
constexpr size_t kIndexOffsetOffset = 16;
constexpr size_t kIndexBytesOffset = 24;
constexpr size_t kIndexHashOffset = 32;
constexpr size_t kAlignment = 64;

constexpr std::array<std::string_view, kSectionCount> kSectionNames{"manifest", "graphs", "plans",
                                                                    "weights", "probes"};

Error DamagedFile(const std::string& path, const std::string& what) {
  return Error(Code::kInvalidData, path + ": " + what,
               "copy or download the package again, or make it anew with whimbrel migrate");
}

std::string ChunkHash(std::span<const std::byte> section, size_t chunk) {
  const size_t begin = chunk * kPackageChunkBytes;
  return Sha256Hex(section.subspan(begin, std::min(kPackageChunkBytes, section.size() - begin)));
}

std::string EncodeIndex(const std::array<PackageSection, kSectionCount>& sections) {
  Json list = Json::array();
  for (const PackageSection& section : sections) {
    list.push_back({{"name", section.name},
                    {"offset", section.offset},
                    {"bytes", section.bytes},
                    {"chunks", section.chunks}});
  }
  return Json{{"sections", std::move(list)}}.dump();
}

// Where the index lies, by the header.
std::span<const std::byte> CheckHeader(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string& path = file.path();
  if (bytes.empty()) throw DamagedFile(path, "the file is empty, not a .wbl package");
  if (bytes.size() < kMagic.size() || AsText(bytes.first(kMagic.size())) != kMagic) {
    throw Error(Code::kInvalidData,
                path + ": not a .wbl package (header: the first 8 bytes are not " +
                    std::string(kMagic) + ")",
                "check that this is the file you mean");
  }
  if (bytes.size() < kHeaderBytes) {
    throw DamagedFile(
        path, fmt::format("header is cut short ({} of {} bytes)", bytes.size(), kHeaderBytes));
  }
  const auto version = GetLittle<uint32_t>(bytes.data() + kVersionOffset);
  if (version != kFormatVersion) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: header: format version {}, this tool reads {}", path, version,
                            kFormatVersion),
                "make the package again with this version of the tool");
  }
  const auto flags = GetLittle<uint32_t>(bytes.data() + kFlagsOffset);
  if (flags != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: header: flags {:#x} are not known to this tool", path, flags),
                "make the package again with this version of the tool");
  }
  const auto offset = GetLittle<uint64_t>(bytes.data() + kIndexOffsetOffset);
  const auto size = GetLittle<uint64_t>(bytes.data() + kIndexBytesOffset);
  if (offset < kHeaderBytes || offset > bytes.size() || size != bytes.size() - offset) {
    throw DamagedFile(path,
                      fmt::format("header says that the index has {} bytes at {} and ends the "
                                  "file, the file has {} bytes",
                                  size, offset, bytes.size()));
  }
  return bytes.subspan(offset);
}

std::array<PackageSection, kSectionCount> DecodeIndex(std::string_view text, size_t index_offset) {
  const auto fail = [](const std::string& what) { throw Error(Code::kInvalidData, what); };
  const Json json = ParseJson(text, "JSON");
  const auto& list = json.at("sections").get_ref<const Json::array_t&>();
  std::array<PackageSection, kSectionCount> sections;
  if (list.size() != sections.size()) fail("it names other sections");
  size_t expected = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const Json& item = list[i];
    PackageSection& section = sections[i];
    section.name = kSectionNames[i];
    if (item.at("name").get_ref<const std::string&>() != section.name) {
      fail(fmt::format("section {} is not in its place", section.name));
    }
    // No gaps and no overlaps: every byte is in one section.
    const auto offset = static_cast<int64_t>(expected);
    section.offset = static_cast<size_t>(DecodeInteger(item.at("offset"), offset, offset));
    const auto room = static_cast<int64_t>(index_offset - expected);
    section.bytes = static_cast<size_t>(DecodeInteger(item.at("bytes"), 0, room));
    if (section.hashed_bytes() > static_cast<size_t>(room)) {
      fail(fmt::format("section {} reaches into the index", section.name));
    }
    for (const Json& hash : item.at("chunks").get_ref<const Json::array_t&>()) {
      section.chunks.push_back(hash.get_ref<const std::string&>());
    }
    if (section.chunks.size() != ChunkCount(section.hashed_bytes())) {
      fail(fmt::format("section {} has {} hashes for {} bytes", section.name, section.chunks.size(),
                       section.bytes));
    }
    expected = section.end();
  }
  if (expected != index_offset) fail("bytes lie outside every section");
  return sections;
}

}  // namespace

size_t PaddedBytes(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

size_t ChunkCount(size_t bytes) {
  return bytes / kPackageChunkBytes + (bytes % kPackageChunkBytes == 0 ? 0 : 1);
}

void CheckChunk(const MappedFile& file, const PackageSection& section, size_t chunk) {
  const auto bytes = file.bytes().subspan(section.offset, section.hashed_bytes());
  if (ChunkHash(bytes, chunk) == section.chunks[chunk]) return;
  throw DamagedFile(file.path(), fmt::format("section {} is damaged (chunk {} of {})", section.name,
                                             chunk + 1, section.chunks.size()));
}

void CheckSection(const MappedFile& file, const PackageSection& section) {
  for (size_t chunk = 0; chunk < section.chunks.size(); ++chunk) CheckChunk(file, section, chunk);
}

void In(const std::string& place, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    throw e.WithContext(place);
  } catch (const Json::exception& e) {
    throw Error(Code::kInvalidData, fmt::format("{}: {}", place, e.what()));
  }
}

PackageFile OpenPackage(const std::string& path) {
  PackageFile package{.file = MappedFile::Open(path), .sections = {}};
  const auto index = CheckHeader(*package.file);
  const auto stored = package.file->bytes().subspan(kIndexHashOffset, 32);
  const auto actual = Sha256().Update(index).Digest();
  if (!std::equal(actual.begin(), actual.end(), stored.begin())) {
    throw DamagedFile(path, "index is damaged (its hash is not the one in the header)");
  }
  const auto index_offset = package.file->bytes().size() - index.size();
  In(path + ": index", [&] { package.sections = DecodeIndex(AsText(index), index_offset); });
  return package;
}

std::string WriteSections(const std::string& path, const PackageParts& parts,
                          const BlobWriter& weights) {
  std::array<PackageSection, kSectionCount> sections;
  size_t end = kHeaderBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t bytes = i == kWeights ? weights.bytes() : parts[i].size();
    sections[i] = {.name = kSectionNames[i], .offset = end, .bytes = bytes};
    end = sections[i].end();
  }
  std::vector<std::byte> file(end);  // zero: so is the padding
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto place = std::span(file).subspan(sections[i].offset, sections[i].hashed_bytes());
    if (i == kWeights) {
      weights.CopyTo(place.first(sections[i].bytes));
    } else {
      std::copy(parts[i].begin(), parts[i].end(), place.begin());
    }
    for (size_t chunk = 0; chunk < ChunkCount(place.size()); ++chunk) {
      sections[i].chunks.push_back(ChunkHash(place, chunk));
    }
  }
  const std::string index = EncodeIndex(sections);
  const auto hash = Sha256().Update(index).Digest();
  std::copy(kMagic.begin(), kMagic.end(), reinterpret_cast<char*>(file.data()));
  PutLittle<uint32_t>(file.data() + kVersionOffset, kFormatVersion);
  PutLittle<uint64_t>(file.data() + kIndexOffsetOffset, end);
  PutLittle<uint64_t>(file.data() + kIndexBytesOffset, index.size());
  std::copy(hash.begin(), hash.end(), file.data() + kIndexHashOffset);
  const auto index_bytes = AsBytes(index);
  file.insert(file.end(), index_bytes.begin(), index_bytes.end());
  WriteFileAtomic(path, std::span<const std::byte>(file));
  return Sha256Hex(file);
}

bool LooksLikePackage(const std::string& path) {
  if (!FileExists(path) || IsDirectory(path)) return false;
  try {
    const auto file = MappedFile::Open(path);
    const auto bytes = file->bytes();
    return bytes.size() >= kMagic.size() && AsText(bytes.first(kMagic.size())) == kMagic;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace whimbrel
