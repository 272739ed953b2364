// Attributes: the named constants of one node.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// Marker of a graph attribute; the graph floor keeps the branches themselves beside the node.
class SubgraphAttribute {
 public:
  virtual ~SubgraphAttribute() = default;
};

using AttributeValue =
    std::variant<int64_t, float, std::string, Tensor, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, std::shared_ptr<const SubgraphAttribute>>;

enum class AttributeType : uint8_t { kInt, kFloat, kString, kTensor, kInts, kFloats, kStrings, kGraph };
std::string_view AttributeTypeName(AttributeType type);

class Attributes {
 public:
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  void Set(std::string name, AttributeValue value);
  void Erase(std::string_view name);
  // The default is returned when the attribute is absent; another type than asked is kInvalidData.
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string_view String(std::string_view name, std::string_view otherwise) const;
  std::span<const int64_t> Ints(std::string_view name) const;  // empty when absent
  std::span<const float> Floats(std::string_view name) const;
  std::span<const std::string> Strings(std::string_view name) const;
  const Tensor* TensorOrNull(std::string_view name) const;
  const SubgraphAttribute* Graph(std::string_view name) const;  // nullptr when absent

  const std::map<std::string, AttributeValue, std::less<>>& all() const { return values_; }

 private:
  const AttributeValue* Find(std::string_view name) const;
  std::map<std::string, AttributeValue, std::less<>> values_;
};

}  // namespace whimbrel
