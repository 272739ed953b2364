// InferContext: what an op's shape inference is given and what it answers.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "whimbrel/kernels/attributes.h"
#include "whimbrel/kernels/dim.h"
#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

struct OpSchema;

// What is known of one value before it is computed.
struct ValueInfo {
  DType dtype = DType::kUndefined;       // kUndefined = absent or not known
  std::optional<Dims> dims;              // nullopt = rank unknown
  std::shared_ptr<const Tensor> constant;  // the value itself, plain layout, when known
  // Elements of a small integer tensor of rank 0 or 1 (bool as 0 and 1), known one by one: what Shape gives when some
  // dims are symbols. Set whenever it can be, also together with `constant`.
  std::optional<Dims> elements;

  bool present() const { return dtype != DType::kUndefined || dims.has_value(); }
  bool static_shape() const { return dims.has_value() && AllKnown(*dims); }
  int rank() const { return dims ? static_cast<int>(dims->size()) : -1; }
};

// Infer functions read inputs and attributes, check what can be checked, and set each output's type and
// dims. Leaving an output's dims unset says "rank unknown"; a dim that depends on data is Dim().
class InferContext {
 public:
  InferContext(const OpSchema& schema, const Attributes& attributes, int opset,
               std::span<const ValueInfo> inputs, size_t output_count);
  virtual ~InferContext() = default;

  const OpSchema& schema() const { return schema_; }
  const Attributes& attrs() const { return attributes_; }
  int opset() const { return opset_; }
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].present(); }
  const ValueInfo& in(size_t i) const;  // an absent one has dtype kUndefined
  size_t outputs() const { return outputs_.size(); }
  ValueInfo& out(size_t i) { return outputs_.at(i); }

  // Sets output i when the node has it (optional outputs may be missing).
  void SetOut(size_t i, DType dtype, std::optional<Dims> dims);
  // Integer contents of input i: from the constant or from known elements; nullopt when not all known.
  std::optional<std::vector<int64_t>> Integers(size_t i) const;
  // The same with symbols: nullopt when the input is present but nothing is known of it.
  std::optional<Dims> Elements(size_t i) const;
  // "Conv: weight must be ..., is ..." as kInvalidData.
  [[noreturn]] void Fail(const std::string& what, const std::string& hint = "") const;
  // Infers a branch; the graph floor knows how. Default: kInternal.
  virtual std::vector<ValueInfo> InferSubgraph(std::string_view attribute, std::span<const ValueInfo> inputs);

 protected:
  const OpSchema& schema_;
  const Attributes& attributes_;
  int opset_;
  std::span<const ValueInfo> inputs_;
  std::vector<ValueInfo> outputs_;
};

// Ready-made infer functions.
void InferLikeFirst(InferContext& c);       // out 0 = type and dims of in 0 (elements pass through for Identity only)
void InferBroadcast(InferContext& c);       // out 0 = type of in 0, all inputs broadcast
void InferBroadcastBool(InferContext& c);   // the same with bool out (comparisons)

}  // namespace whimbrel
