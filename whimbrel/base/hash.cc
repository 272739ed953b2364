// SHA-256 through OpenSSL's EVP interface.

#include "whimbrel/base/hash.h"

#include <openssl/evp.h>

#include "whimbrel/base/error.h"

namespace whimbrel {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw Error(Code::kOutOfMemory, "SHA-256: no memory for a hash");
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw Error(Code::kUnsupported, "SHA-256: OpenSSL refuses the algorithm",
                "check OpenSSL's configuration (openssl list -digest-algorithms)");
  }
}

Sha256::~Sha256() = default;

Sha256& Sha256::Update(std::span<const std::byte> bytes) {
  WHIMBREL_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
  return *this;
}

Sha256& Sha256::Update(std::string_view text) {
  return Update(std::as_bytes(std::span(text.data(), text.size())));
}

std::array<std::byte, 32> Sha256::Digest() {
  std::array<std::byte, 32> digest{};
  WHIMBREL_CHECK(EVP_DigestFinal_ex(state_->context,
                                    reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return digest;
}

std::string Sha256::HexDigest() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (std::byte byte : Digest()) {
    hex += kDigits[std::to_integer<size_t>(byte >> 4)];
    hex += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return hex;
}

std::string Sha256Hex(std::span<const std::byte> bytes) {
  return Sha256().Update(bytes).HexDigest();
}

std::string Sha256Hex(std::string_view text) {
  return Sha256().Update(text).HexDigest();
}

}  // namespace whimbrel
