// dtype: sizes and names of the element types.

#include "whimbrel/tensor/dtype.h"

#include <array>
#include <string>

namespace whimbrel {
namespace {

struct TypeRow {
  DType type;
  size_t size;
  std::string_view name;
  std::string_view short_name;
};

constexpr TypeRow kTypes[] = {
    {DType::kUndefined, 0, "undefined", ""},   {DType::kFloat, 4, "float32", "f32"},
    {DType::kUint8, 1, "uint8", "u8"},         {DType::kInt8, 1, "int8", "i8"},
    {DType::kUint16, 2, "uint16", "u16"},      {DType::kInt16, 2, "int16", "i16"},
    {DType::kInt32, 4, "int32", "i32"},        {DType::kInt64, 8, "int64", "i64"},
    {DType::kString, 0, "string", "str"},      {DType::kBool, 1, "bool", "b1"},
    {DType::kFloat16, 2, "float16", "f16"},    {DType::kDouble, 8, "float64", "f64"},
    {DType::kUint32, 4, "uint32", "u32"},      {DType::kUint64, 8, "uint64", "u64"},
    {DType::kComplex64, 0, "complex64", ""},   {DType::kComplex128, 0, "complex128", ""},
    {DType::kBFloat16, 2, "bfloat16", "bf16"},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "the number of a type is its row");

}  // namespace

size_t ItemSize(DType type) {
  const auto row = static_cast<size_t>(type);
  return row < std::size(kTypes) ? kTypes[row].size : 0;
}

std::string_view DTypeName(DType type) {
  const auto number = static_cast<size_t>(type);
  if (number < std::size(kTypes)) return kTypes[number].name;
  // A view needs a lasting string; there are only 256 numbers.
  static const auto names_of_all = [] {
    std::array<std::string, 256> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = "type " + std::to_string(i);
    return names;
  }();
  return names_of_all[number];
}

DType DTypeFromName(std::string_view name) {
  if (name.empty()) return DType::kUndefined;
  for (const TypeRow& row : kTypes) {
    if (row.name == name || row.short_name == name) return row.type;
  }
  if (name == "float") return DType::kFloat;
  if (name == "half" || name == "fp16") return DType::kFloat16;
  if (name == "double") return DType::kDouble;
  if (name == "fp32") return DType::kFloat;
  return DType::kUndefined;
}

}  // namespace whimbrel
