// The registry: look-up, schema checks and the choice of a kernel.

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "whimbrel/kernels/kernels.h"

namespace whimbrel {

struct Registry::Impl {
  // unique_ptr keeps addresses stable while entries register
  std::map<std::tuple<std::string_view, std::string_view, int>, std::unique_ptr<OpSchema>> schemas;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<std::unique_ptr<Kernel>>>
      kernels;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}

Registry& Registry::Get() {
  static Registry registry;
  return registry;
}

void Registry::Add(OpSchema schema) {
  WHIMBREL_CHECK(schema.infer != nullptr);
  auto owned = std::make_unique<OpSchema>(std::move(schema));
  const auto key = std::tuple(owned->domain, owned->name, owned->since);
  WHIMBREL_CHECK(impl_->schemas.emplace(key, std::move(owned)).second);
}

void Registry::Add(Kernel kernel) {
  WHIMBREL_CHECK(kernel.run != nullptr);
  auto& list = impl_->kernels[{kernel.domain, kernel.op}];
  list.push_back(std::make_unique<Kernel>(kernel));
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a->rank, a->name) < std::tuple(-b->rank, b->name);
  });
}

const OpSchema* Registry::Find(std::string_view domain, std::string_view name, int opset) const {
  const OpSchema* best = nullptr;
  for (auto it = impl_->schemas.lower_bound({domain, name, 0}); it != impl_->schemas.end(); ++it) {
    const OpSchema& s = *it->second;
    if (s.domain != domain || s.name != name) break;
    if (opset >= s.since && opset < s.until) best = &s;
  }
  return best;
}

bool Registry::HasAnyVersion(std::string_view domain, std::string_view name) const {
  const auto it = impl_->schemas.lower_bound({domain, name, 0});
  return it != impl_->schemas.end() && it->second->domain == domain && it->second->name == name;
}

std::vector<const Kernel*> Registry::Kernels(std::string_view domain, std::string_view op,
                                             DeviceKind device) const {
  std::vector<const Kernel*> found;
  const auto it = impl_->kernels.find({domain, op});
  if (it == impl_->kernels.end()) return found;
  for (const auto& k : it->second) {
    if (k->device == device) found.push_back(k.get());
  }
  return found;
}

const Kernel* Registry::Reference(std::string_view domain, std::string_view op) const {
  for (const Kernel* k : Kernels(domain, op, DeviceKind::kCpu)) {
    if (k->rank == 0) return k;
  }
  return nullptr;
}

std::vector<const OpSchema*> Registry::Schemas() const {
  std::vector<const OpSchema*> all;
  for (const auto& [key, schema] : impl_->schemas) all.push_back(schema.get());
  return all;
}

KernelChoice ChooseKernel(const OpCall& call, DeviceKind device, bool only_reference) {
  KernelChoice choice;
  for (const Kernel* k : Registry::Get().Kernels(call.schema->domain, call.schema->name, device)) {
    if (only_reference && k->rank != 0) continue;
    if (k->isa > ActiveIsa()) {
      choice.declined.push_back(fmt::format("{}: needs {}, this machine or WHIMBREL_ISA gives {}",
                                            k->name, IsaName(k->isa), IsaName(ActiveIsa())));
      continue;
    }
    std::string why;
    if (k->accepts == nullptr || k->accepts(call, &why)) {
      choice.kernel = k;
      return choice;
    }
    choice.declined.push_back(fmt::format("{}: {}", k->name, why));
  }
  return choice;
}

namespace {

const Formal& FormalAt(const std::vector<Formal>& formals, size_t i) {
  return i < formals.size() ? formals[i] : formals.back();
}

}  // namespace

void CheckCall(const OpSchema& schema, const Attributes& attributes,
               std::span<const ValueInfo> inputs, size_t outputs) {
  const bool variadic = !schema.inputs.empty() && schema.inputs.back().variadic;
  if (inputs.size() > schema.inputs.size() && !variadic) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} inputs given, at most {} are allowed",
                                                schema.name, inputs.size(), schema.inputs.size()));
  }
  const bool variadic_out = !schema.outputs.empty() && schema.outputs.back().variadic;
  if (outputs > schema.outputs.size() && !variadic_out) {
    throw Error(Code::kInvalidData, fmt::format("{}: {} outputs asked for, it has {}", schema.name,
                                                outputs, schema.outputs.size()));
  }
  std::map<int, std::pair<DType, std::string_view>> groups;
  for (size_t i = 0; i < std::max(inputs.size(), schema.inputs.size()); ++i) {
    const Formal& formal = FormalAt(schema.inputs, i);
    const bool present = i < inputs.size() && inputs[i].present();
    if (!present) {
      if (!formal.optional && !(formal.variadic && i > 0)) {
        throw Error(Code::kInvalidData,
                    fmt::format("{}: input {} ({}) is missing", schema.name, i, formal.name));
      }
      continue;
    }
    const DType type = inputs[i].dtype;
    if (type == DType::kUndefined) continue;
    if ((formal.types & TypeBit(type)) == 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: input {} ({}) of type {} is not taken", schema.name, i,
                              formal.name, DTypeName(type)),
                  "cast it to a type that the operator takes");
    }
    if (formal.group != 0) {
      const auto [it, fresh] = groups.try_emplace(formal.group, type, formal.name);
      if (!fresh && it->second.first != type) {
        throw Error(Code::kInvalidData,
                    fmt::format("{}: inputs {} ({}) and {} ({}) must have one type", schema.name,
                                it->second.second, DTypeName(it->second.first), formal.name,
                                DTypeName(type)));
      }
    }
  }
  for (const AttributeSpec& spec : schema.attributes) {
    if (spec.type == AttributeType::kGraph)
      continue;  // branches lie beside the node, not among its attributes
    const auto it = attributes.all().find(spec.name);
    if (it == attributes.all().end()) {
      if (spec.required)
        throw Error(Code::kInvalidData,
                    fmt::format("{}: attribute {} is missing", schema.name, spec.name));
      continue;
    }
    const auto have = static_cast<AttributeType>(it->second.index());
    if (have != spec.type) {
      throw Error(Code::kInvalidData,
                  fmt::format("{}: attribute {} is of type {}, expected {}", schema.name, spec.name,
                              AttributeTypeName(have), AttributeTypeName(spec.type)));
    }
  }
  for (const auto& [name, value] : attributes.all()) {
    const bool known =
        std::any_of(schema.attributes.begin(), schema.attributes.end(),
                    [&, &attribute = name](const AttributeSpec& s) { return s.name == attribute; });
    if (!known) {
      throw Error(Code::kInvalidData,
                  fmt::format("{}: attribute {} is not known at this version of the operator",
                              schema.name, name),
                  "the model may declare the wrong opset; check it with onnx.checker");
    }
  }
}

std::vector<ValueInfo> InferOutputs(const OpSchema& schema, const Attributes& attributes, int opset,
                                    std::span<const ValueInfo> inputs, size_t output_count) {
  CheckCall(schema, attributes, inputs, output_count);
  InferContext context(schema, attributes, opset, inputs, output_count);
  schema.infer(context);
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < output_count; ++i) out.push_back(std::move(context.out(i)));
  return out;
}

Cost DefaultCost(const OpCall& call) {
  Cost cost;
  for (const Tensor* t : call.in) {
    if (t != nullptr) cost.bytes += static_cast<double>(t->bytes());
  }
  for (const Tensor* t : call.out) {
    if (t == nullptr) continue;
    cost.bytes += static_cast<double>(t->bytes());
    cost.flops += static_cast<double>(t->elements());
  }
  return cost;
}

Cost CostOf(const OpCall& call) {
  return call.schema->cost != nullptr ? call.schema->cost(call) : DefaultCost(call);
}

void OpCall::ResizeOutput(size_t i, DType dtype, const Shape& shape) const {
  if (!has_out(i)) return;
  Tensor& t = *out[i];
  if (t.has_data() && t.dtype() == dtype && t.shape() == shape) return;
  if (allocator == nullptr) {
    throw Error(Code::kInternal,
                fmt::format("{}: output {} needs memory for {} and has no allocator", schema->name,
                            i, ToString(shape)));
  }
  allocator->Allocate(t, dtype, shape);
}

}  // namespace whimbrel
