// Attribute look-up with type checks.

#include "whimbrel/kernels/attributes.h"

#include <array>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

template <typename T>
const T* As(const AttributeValue* value, std::string_view name, std::string_view wanted) {
  if (value == nullptr) return nullptr;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) {
    throw Error(Code::kInvalidData,
                "attribute " + std::string(name) + " is of type " +
                    std::string(AttributeTypeName(static_cast<AttributeType>(value->index()))) +
                    ", expected " + std::string(wanted));
  }
  return typed;
}

}  // namespace

std::string_view AttributeTypeName(AttributeType type) {
  static constexpr std::array<std::string_view, 8> kNames{"int",  "float",  "string",  "tensor",
                                                          "ints", "floats", "strings", "graph"};
  return kNames.at(static_cast<size_t>(type));
}

void Attributes::Set(std::string name, AttributeValue value) {
  values_.insert_or_assign(std::move(name), std::move(value));
}

void Attributes::Erase(std::string_view name) {
  const auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

int64_t Attributes::Int(std::string_view name, int64_t otherwise) const {
  const auto* v = As<int64_t>(Find(name), name, "int");
  return v == nullptr ? otherwise : *v;
}

double Attributes::Float(std::string_view name, double otherwise) const {
  const auto* v = As<float>(Find(name), name, "float");
  return v == nullptr ? otherwise : static_cast<double>(*v);
}

std::string_view Attributes::String(std::string_view name, std::string_view otherwise) const {
  const auto* v = As<std::string>(Find(name), name, "string");
  return v == nullptr ? otherwise : std::string_view(*v);
}

std::span<const int64_t> Attributes::Ints(std::string_view name) const {
  const auto* v = As<std::vector<int64_t>>(Find(name), name, "ints");
  return v == nullptr ? std::span<const int64_t>() : std::span<const int64_t>(*v);
}

std::span<const float> Attributes::Floats(std::string_view name) const {
  const auto* v = As<std::vector<float>>(Find(name), name, "floats");
  return v == nullptr ? std::span<const float>() : std::span<const float>(*v);
}

std::span<const std::string> Attributes::Strings(std::string_view name) const {
  const auto* v = As<std::vector<std::string>>(Find(name), name, "strings");
  return v == nullptr ? std::span<const std::string>() : std::span<const std::string>(*v);
}

const Tensor* Attributes::TensorOrNull(std::string_view name) const {
  return As<Tensor>(Find(name), name, "tensor");
}

const SubgraphAttribute* Attributes::Graph(std::string_view name) const {
  const auto* v = As<std::shared_ptr<const SubgraphAttribute>>(Find(name), name, "graph");
  return v == nullptr ? nullptr : v->get();
}

}  // namespace whimbrel
