// Sha256: the one content hash (packages, compile cache, resume keys), by OpenSSL.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace whimbrel {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256& Update(std::span<const std::byte> bytes);
  Sha256& Update(std::string_view text);
  std::array<std::byte, 32> Digest();  // ends the hash; call once
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Sha256Hex(std::string_view text);

}  // namespace whimbrel
