// tensor_proto: ONNX TensorProto messages and .pb files to tensors and back, external data too.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "whimbrel/tensor/tensor.h"

namespace onnx {
class TensorProto;
}

namespace whimbrel {

// Where external data of a model is looked up: beside the model file, never the current directory.
struct ExternalDataContext {
  // Empty = the model came from memory: external data is an error that says so.
  std::string directory;
};

// kInvalidData / kUnsupported naming the tensor, with file, offset and length for external data.
// A location that leaves the directory is refused. External data is memory-mapped.
Tensor TensorFromProto(const onnx::TensorProto& proto, const ExternalDataContext& context);
Tensor ReadTensorProtoFile(const std::string& path, std::string* name = nullptr);
void WriteTensorProtoFile(const std::string& path, const Tensor& tensor, std::string_view name);

}  // namespace whimbrel
