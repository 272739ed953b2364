// depth_space: what DepthToSpace and SpaceToDepth share: reading blocksize and mode.

#pragma once

#include <string>

#include <fmt/format.h>

#include "whimbrel/kernels/ops/elementwise.h"

namespace whimbrel {

// Checks mode, rank 4 and blocksize; gives blocksize, at most 2^15 so that its square is small.
inline int64_t InferBlockSize(const InferContext& c) {
  const std::string_view mode = c.attrs().String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    c.Fail("mode is \"" + std::string(mode) + "\"", "it is DCR or CRD");
  }
  const int64_t size = c.attrs().Int("blocksize", 0);
  if (size < 1 || size > 32768) {
    c.Fail(fmt::format("blocksize is {}", size), "it lies in [1, 32768]");
  }
  if (c.in(0).dims && c.in(0).rank() != 4) {
    c.Fail("input must be [N, C, H, W], is " + ToString(*c.in(0).dims));
  }
  return size;
}

// dim / by; fails when that leaves a rest.
inline Dim ExactQuotient(const InferContext& c, const Dim& dim, int64_t by) {
  if (dim.known() && dim.value() % by != 0) {
    c.Fail(fmt::format("{} of input {} is no multiple of {}", dim.value(), ToString(*c.in(0).dims),
                       by));
  }
  return FloorDiv(dim, Dim(by));
}

inline std::vector<AttributeSpec> DepthSpaceAttributes(bool mode) {
  std::vector<AttributeSpec> specs = {{"blocksize", AttributeType::kInt, true, "at least 1"}};
  if (mode) {
    specs.push_back({"mode", AttributeType::kString, false,
                     "DCR (default): the block is the outer part of the channel; CRD: the inner"});
  }
  return specs;
}

}  // namespace whimbrel
