// safetensors: weight files of model hubs: header JSON, then little-endian data, memory-mapped.

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "whimbrel/tensor/tensor.h"

namespace whimbrel {

struct SafetensorsFile {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in file order; views of the map
  std::map<std::string, std::string> metadata;
};

// Checks header length, offsets, overlaps, sizes; every fault is kInvalidData naming tensor and
// figures.
SafetensorsFile ReadSafetensors(const std::string& path);
void WriteSafetensors(const std::string& path,
                      const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace whimbrel
