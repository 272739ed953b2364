// inputs: the flags of verbs that open a model and feed it, and the tensors that they name.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "whimbrel/base/config.h"
#include "whimbrel/base/error.h"
#include "whimbrel/cli/output.h"
#include "whimbrel/graph/session.h"

namespace whimbrel {

// MODEL, --shape, --device, --threads, --fusion-switch-file. A verb's Visit calls this one's.
struct ModelOptions {
  std::string model;
  std::vector<std::string> shapes;  // NAME:DIMS
  std::string device = "cpu:0";
  int64_t threads = 0;
  std::string fusion_switch_file;

  void Visit(ConfigVisitor& visitor);
  // Reads the switch file. `device_flag`: what errors call the option.
  SessionOptions ToSessionOptions(std::string_view device_flag = "--device") const;
};

// --input, --image, --seed.
struct InputOptions {
  std::vector<std::string> inputs;  // NAME=FILE
  std::string image;                // ParseImageOptions
  int64_t seed = -1;                // -1 = missing inputs are an error

  void Visit(ConfigVisitor& visitor);
};

// "NAME=FILE" at the last '=', "NAME:DIMS" at the last ':' (names may hold both). When the part
// before the last one names no input but the part before another one does, that one counts.
// kInvalidArgument without a separator.
std::pair<std::string, std::string> SplitNamed(std::string_view text, char separator,
                                               const std::vector<TensorSpec>& inputs,
                                               std::string_view flag);

// --shape texts for the model's inputs. kInvalidArgument: unknown name (with the nearest), given
// twice, rank or fixed dim that differs, text that is no shape.
std::vector<InputShape> ParseInputShapes(const std::vector<std::string>& texts,
                                         const std::vector<TensorSpec>& inputs);

struct ModelInputs {
  std::vector<Tensor> tensors;  // host, plain, in graph input order
  std::vector<std::string>
      assumed;  // "x: dim 0 (N) = 1": open dims of seeded inputs that nobody named
  std::vector<std::string> seeded;           // names of the inputs that --seed filled
  std::vector<std::string> seeded_integers;  // those of them that may be indices or sizes
};

// Reads what --input names and fills the rest from --seed; tells on `out` which image options were
// used. Open dims of seeded inputs: from --shape, the same symbol of a given input, a package's
// first bucket that fits, else 1. kInvalidArgument (exit 2): unknown, doubled or missing input,
// wrong type (never cast) or shape, a picture for an input that is not image-shaped. Files that are
// missing or damaged: kNotFound, kInvalidData (exit 3).
ModelInputs ReadInputs(const InputOptions& options, const std::vector<std::string>& shapes,
                       const Session& session, Output& out);

// `error` of compiling for these shapes. When dims were assumed they are the likely cause: wrong
// use, with that hint.
Error ExplainAssumed(const Error& error, const std::vector<std::string>& assumed);

// `error` of working on these inputs: ExplainAssumed, and integers of --seed are named as a likely
// cause (a Gather's index 9 of 4). Errors of files stay as they are.
Error ExplainMadeUp(const Error& error, const std::vector<std::string>& assumed,
                    const std::vector<std::string>& seeded_integers);

// What `work` gives; its errors go through ExplainMadeUp. `inputs`: ModelInputs or NamedInputs.
template <typename Inputs, typename Work>
auto WithMadeUpExplained(const Inputs& inputs, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    throw ExplainMadeUp(e, inputs.assumed, inputs.seeded_integers);
  }
}

// Values of --seed: floats uniform in [-1, 1), integers 0..9, bools 0 or 1. `index`: the input's
// place in the graph, so that each input has values of its own whichever others are given.
Tensor SeededTensor(DType dtype, const Shape& shape, uint64_t seed, size_t index);

// A .npy, a TensorProto .pb, told apart by the name's end and then by content. Pictures are
// refused.
Tensor ReadTensorFile(const std::string& path);

}  // namespace whimbrel
