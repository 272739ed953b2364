// graph_codec: graphs and tensors as the JSON and the bytes that a package holds.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/base/json.h"
#include "whimbrel/graph/ir.h"

namespace whimbrel {

// Gathers the bytes of tensors. Equal bytes are kept once, whatever type or shape they are read as;
// each piece starts at a multiple of 64.
class BlobWriter {
 public:
  static constexpr size_t kAlignment = 64;

  // Where the tensor's bytes (plain layout) lie among all. The tensor's memory must stay as it is
  // until CopyTo. kUnsupported for a tensor without memory or of a type without size.
  size_t Add(const Tensor& tensor);
  size_t bytes() const { return bytes_; }
  void CopyTo(std::span<std::byte> to) const;  // bytes() long; gaps become zero

 private:
  struct Blob {
    Tensor tensor;
    size_t offset = 0;
  };
  std::vector<Blob> blobs_;
  std::map<std::pair<const void*, size_t>, size_t> by_address_;  // (first byte, bytes) -> offset
  std::map<std::string, size_t> by_hash_;                        // SHA-256 -> offset
  size_t bytes_ = 0;
};

// The readers of JSON below believe nothing: whatever the JSON says, they give a sound object or
// throw kInvalidData (kUnsupported for an op that this tool does not know), or nlohmann's exception
// for a member that is missing or of another type.

Json EncodeTensor(const Tensor& tensor, BlobWriter& blobs);  // {dtype, shape, offset, bytes}
// A view of `blobs`, whose elements are not looked at.
Tensor DecodeTensor(const Json& json, const std::shared_ptr<Buffer>& blobs);

// Schemas are left out: reading looks them up again. Throws kUnsupported for a node without one.
Json EncodeGraph(const Graph& graph, BlobWriter& weights);
// Checks ids and order; CheckInferred is left to the caller, who knows when the weights may be
// read.
Graph DecodeGraph(const Json& json, const std::shared_ptr<Buffer>& weights);

// kInvalidData when stored types or dims contradict what the ops infer: kernels trust them. Reads
// the constants that inference asks for.
void CheckInferred(const Graph& graph);

// Any bytes as JSON text and back: each byte above 127 is written as the character of that number.
std::string EncodeText(std::string_view bytes);
std::string DecodeText(const Json& json);
int64_t DecodeInteger(const Json& json, int64_t least = std::numeric_limits<int64_t>::min(),
                      int64_t most = std::numeric_limits<int64_t>::max());
// Finite numbers as such; NaN and infinities as their bits.
Json EncodeFloat(float value);
float DecodeFloat(const Json& json);

}  // namespace whimbrel
