// model_files: the files that an ONNX model consists of: itself and the external data beside it.

#pragma once

#include <string>
#include <vector>

namespace whimbrel {

// The model first, then its external data files by name, once each, as paths. Of a model that
// imports; a damaged one gives what was found before the damage.
std::vector<std::string> ModelFiles(const std::string& path);

// SHA-256 over the files' names (without folder) and contents: the same for equal models wherever
// they lie.
std::string HashModel(const std::string& path);

}  // namespace whimbrel
