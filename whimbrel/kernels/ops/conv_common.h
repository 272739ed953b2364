// ConvGeometry: the figures of one convolution call, with the inference, cost and reference that
// Conv and FusedConv share.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "whimbrel/kernels/ops/window.h"

namespace whimbrel {

// Input X [batch, in_channels, in...], weights W [out_channels, in_channels / groups, kernel...]
// (transposed convolution: [in_channels, out_channels / groups, kernel...]), output Y [batch,
// out_channels, out...].
struct ConvGeometry : WindowGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  double macs() const;
  bool depthwise() const { return groups > 1 && groups == in_channels; }
};

// Of a Conv or FusedConv call whose inputs have shapes (data is not read); throws as inference
// does.
ConvGeometry ConvGeometryOf(const OpCall& call);
// Of a ConvTranspose call: pads are what is cut from the full output, see conv_transpose.cc.
ConvGeometry ConvTransposeGeometryOf(const OpCall& call);

std::vector<AttributeSpec> ConvAttributes();
std::vector<AttributeSpec> ConvTransposeAttributes();
// Y from X (input 0), W (1) and the attributes; checks B (2) when there.
void InferConv(InferContext& c);
void InferConvTranspose(InferContext& c);
Cost ConvCost(const OpCall& call);
Cost ConvTransposeCost(const OpCall& call);

// y = activation(conv(x, w) + b + z): inputs X, W, B?, Z? and slope?; the sums in double.
size_t ConvReferenceWorkspace(const OpCall& call);
void RunConvReference(const OpCall& call, std::span<std::byte> workspace, Stream& stream);

}  // namespace whimbrel
