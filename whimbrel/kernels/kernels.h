// kernels: the op registry: what an op is (schema, inference, cost, reference, samples) and the kernels that compute it.

#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/error.h"
#include "whimbrel/device/device.h"
#include "whimbrel/kernels/attributes.h"
#include "whimbrel/kernels/infer.h"
#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

// A set of element types.
using TypeMask = uint32_t;
constexpr TypeMask TypeBit(DType t) { return TypeMask{1} << static_cast<unsigned>(t); }
constexpr TypeMask kFloatTypes = TypeBit(DType::kFloat) | TypeBit(DType::kDouble) | TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16);
constexpr TypeMask kSignedTypes = TypeBit(DType::kInt8) | TypeBit(DType::kInt16) | TypeBit(DType::kInt32) | TypeBit(DType::kInt64);
constexpr TypeMask kUnsignedTypes = TypeBit(DType::kUint8) | TypeBit(DType::kUint16) | TypeBit(DType::kUint32) | TypeBit(DType::kUint64);
constexpr TypeMask kIntegerTypes = kSignedTypes | kUnsignedTypes;
constexpr TypeMask kNumericTypes = kFloatTypes | kIntegerTypes;
constexpr TypeMask kBoolType = TypeBit(DType::kBool);
constexpr TypeMask kAllTypes = kNumericTypes | kBoolType;
constexpr TypeMask kIndexTypes = TypeBit(DType::kInt32) | TypeBit(DType::kInt64);

struct AttributeSpec {
  std::string_view name;
  AttributeType type;
  bool required = false;
  std::string_view note = {};  // default, range, meaning
};

// One formal input or output. `group`: formals of the same non-zero group must have one type.
struct Formal {
  std::string_view name;
  TypeMask types = kAllTypes;
  bool optional = false;
  bool variadic = false;  // last one only; repeats from here on
  int group = 0;
};

struct OpCall;

struct Cost {
  double flops = 0;  // one multiply-add = 2
  double bytes = 0;  // compulsory traffic: inputs read once, outputs written once
};

// An op as a model names it, for opsets [since, until).
struct OpSchema {
  std::string_view name;
  std::string_view domain = {};  // "" = ai.onnx; "whimbrel" = made by our passes
  int since = 1;
  int until = INT_MAX;
  std::vector<Formal> inputs;
  std::vector<Formal> outputs;
  std::vector<AttributeSpec> attributes = {};
  void (*infer)(InferContext&) = nullptr;
  Cost (*cost)(const OpCall&) = nullptr;  // null: DefaultCost
  // Cases for test, benchmark and docs at once; kernels/sample.h has the grammar:
  // "f32:3x16 f32:16 epsilon=1e-6". The usual, 1, odd sizes, no elements, the largest, awkward values.
  std::vector<std::string_view> samples = {};
  bool matrix_op = false;  // sums products: align judges it with the matrix tolerance
  std::string_view doc = {};
};

// What a kernel may keep between runs of one planned call: primitives, packed weights.
class KernelState {
 public:
  virtual ~KernelState() = default;
  virtual size_t bytes() const { return 0; }  // resident memory, for the memory figures
};

// A branch ready to run, made by the graph floor.
class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual void Run(Stream& stream, std::span<Tensor* const> outputs) = 0;
};

// Gives memory to outputs whose shape was not known when the plan was made.
class OutputAllocator {
 public:
  virtual ~OutputAllocator() = default;
  virtual void Allocate(Tensor& out, DType dtype, const Shape& shape) = 0;
};

// One call of one op. While planning, tensors have type, shape and layout, and only constants have data.
struct OpCall {
  const OpSchema* schema = nullptr;
  const Attributes* attributes = nullptr;
  int opset = 0;
  std::span<const Tensor* const> in = {};  // nullptr = optional input left out
  std::span<Tensor* const> out = {};       // nullptr = optional output not asked for
  uint64_t constant_inputs = 0;       // bit i: in[i] never changes and has data
  KernelState* state = nullptr;
  std::span<Subgraph* const> subgraphs = {};  // If: then, else
  OutputAllocator* allocator = nullptr;

  const Attributes& attrs() const { return *attributes; }
  bool has(size_t i) const { return i < in.size() && in[i] != nullptr; }
  bool has_out(size_t i) const { return i < out.size() && out[i] != nullptr; }
  bool constant(size_t i) const { return i < 64 && ((constant_inputs >> i) & 1) != 0; }
  const Tensor& x(size_t i) const { return *in[i]; }
  Tensor& y(size_t i) const { return *out[i]; }
  // For an output whose dims infer left open: call before writing it. No-op when it already has
  // memory of that shape.
  void ResizeOutput(size_t i, DType dtype, const Shape& shape) const;
};

// How a kernel wants tensors of rank >= 3 to lie.
enum class LayoutRule : uint8_t {
  kPlain,         // inputs plain, outputs plain
  kFollow,        // takes inputs all plain or all channels-last (same rank; others plain); outputs alike
  kChannelsLast,  // data input 0 and outputs channels-last (and residual inputs of the same rank)
};

// One way to compute an op. Candidates are tried from the highest rank down; the first that accepts runs.
struct Kernel {
  std::string_view op;
  std::string_view domain = {};
  std::string_view name;  // "reference", "onednn", "highway", "view"
  DeviceKind device = DeviceKind::kCpu;
  int rank = 0;  // reference = 0
  Isa isa = Isa::kPortable;  // least instruction set needed
  LayoutRule layout = LayoutRule::kPlain;
  // bit i: output 0 may be written over input i (same bytes, element by element)
  uint64_t in_place = 0;
  // The output is input 0's bytes under another shape or layout; the planner lets them share memory.
  // run copies when they do not share.
  bool view = false;
  // False fills `why` in words a user understands: "last dim 17 is no multiple of 8".
  bool (*accepts)(const OpCall&, std::string* why) = nullptr;
  size_t (*workspace)(const OpCall&) = nullptr;  // scratch bytes for run; asked after prepare, state set
  // Once per planned call; may throw Error. Best on the stream that will run: libraries shape their
  // primitives by the calling thread's team.
  std::unique_ptr<KernelState> (*prepare)(const OpCall&) = nullptr;
  void (*run)(const OpCall&, std::span<std::byte> workspace, Stream&) = nullptr;
};

class Registry {
 public:
  static Registry& Get();
  void Add(OpSchema schema);
  void Add(Kernel kernel);
  // nullptr when the op is unknown at that opset.
  const OpSchema* Find(std::string_view domain, std::string_view name, int opset) const;
  bool HasAnyVersion(std::string_view domain, std::string_view name) const;
  // Highest rank first; among equals in order of name.
  std::vector<const Kernel*> Kernels(std::string_view domain, std::string_view op, DeviceKind device) const;
  const Kernel* Reference(std::string_view domain, std::string_view op) const;  // rank 0 on cpu; nullptr if none
  std::vector<const OpSchema*> Schemas() const;  // by domain, name, since

 private:
  struct Impl;
  Registry();
  std::unique_ptr<Impl> impl_;
};

// The kernel that a call gets on a device, with the reasons of those that declined before it.
struct KernelChoice {
  const Kernel* kernel = nullptr;  // nullptr: none accepts
  std::vector<std::string> declined;  // "onednn: weights are not constant"
};
// Considers kernels whose isa fits ActiveIsa(); `only_reference` picks rank 0.
KernelChoice ChooseKernel(const OpCall& call, DeviceKind device, bool only_reference = false);

// Type, count and attribute checks of the schema; throws kInvalidData naming op, formal and figures.
void CheckCall(const OpSchema& schema, const Attributes& attributes, std::span<const ValueInfo> inputs, size_t outputs);

// Runs a schema's infer with checks; the outputs' constants are never set by this.
std::vector<ValueInfo> InferOutputs(const OpSchema& schema, const Attributes& attributes, int opset,
                                    std::span<const ValueInfo> inputs, size_t output_count);

Cost DefaultCost(const OpCall& call);  // one FLOP per output element; all bytes once
Cost CostOf(const OpCall& call);

struct Registration {
  explicit Registration(OpSchema schema) { Registry::Get().Add(std::move(schema)); }
  explicit Registration(Kernel kernel) { Registry::Get().Add(kernel); }
};

}  // namespace whimbrel

#define WHIMBREL_CONCAT_INNER(a, b) a##b
#define WHIMBREL_CONCAT(a, b) WHIMBREL_CONCAT_INNER(a, b)
// Registers an OpSchema or a Kernel when the program starts.
#define WHIMBREL_REGISTER(...) \
  static const ::whimbrel::Registration WHIMBREL_CONCAT(registration_, __COUNTER__){__VA_ARGS__}
