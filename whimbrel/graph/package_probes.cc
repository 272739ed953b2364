// CheckProbes: every probe of a package is run and compared with the outputs it recorded.

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "whimbrel/graph/package.h"

namespace whimbrel {
namespace {

struct Worst {
  int64_t element = -1;  // -1: all fit
  double excess = 0;     // beyond the tolerance; infinite for NaN and infinities that do not agree
  int64_t count = 0;
};

Worst Compare(const Tensor& got, const Tensor& expected, double rtol, double atol) {
  Worst worst;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = ElementAsDouble(got, i);
    const double b = ElementAsDouble(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool finite = std::isfinite(a) && std::isfinite(b);
    const double excess = finite ? std::abs(a - b) - (atol + rtol * std::abs(b)) : INFINITY;
    if (excess <= 0) continue;
    ++worst.count;
    if (worst.element < 0 || excess > worst.excess) {
      worst.element = i;
      worst.excess = excess;
    }
  }
  return worst;
}

void CheckOutput(const Tensor& output, const Tensor& expected, const PackageProbe& probe,
                 const std::string& place) {
  constexpr std::string_view kHint =
      "the package does not compute here what it computed when it was made: make it again on this "
      "machine";
  const Tensor got = output.layout() == Layout::kPlain ? output : CopyPlain(output);
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape())) {
    throw Error(
        Code::kInvalidData,
        fmt::format("{}: expected {} {}, got {} {}", place, DTypeName(expected.dtype()),
                    ToString(expected.shape()), DTypeName(got.dtype()), ToString(got.shape())),
        std::string(kHint));
  }
  const Worst worst = Compare(got, expected, probe.rtol, probe.atol);
  if (worst.element < 0) return;
  throw Error(Code::kInvalidData,
              fmt::format("{}: {} of {} elements differ, worst is element {}: expected {}, got {} "
                          "(rtol {}, atol {})",
                          place, worst.count, expected.elements(), worst.element,
                          ElementAsDouble(expected, worst.element),
                          ElementAsDouble(got, worst.element), probe.rtol, probe.atol),
              std::string(kHint));
}

}  // namespace

void CheckProbes(const PackageContents& contents, const std::string& source,
                 const std::shared_ptr<Device>& device, int threads) {
  const auto stream = device->CreateStream({.threads = threads});
  std::unique_ptr<Executable> executable;  // of the last probe's bucket
  std::optional<size_t> prepared;
  for (size_t p = 0; p < contents.probes.size(); ++p) {
    const PackageProbe& probe = contents.probes[p];
    const Graph& graph = *contents.buckets.at(probe.bucket).graph;
    const std::string place = fmt::format("{}: probe {}", source, p);
    try {
      if (prepared != probe.bucket) {
        VerifyWeights(contents, probe.bucket);
        executable = Executable::Make(*stream, contents.buckets[probe.bucket].graph, device);
        prepared = probe.bucket;
      }
      executable->Run(*stream, probe.inputs);
      stream->Synchronize();
    } catch (const Error& e) {
      throw e.WithContext(place);
    }
    for (size_t i = 0; i < probe.outputs.size(); ++i) {
      CheckOutput(executable->output(i), probe.outputs[i], probe,
                  fmt::format("{}: output {}", place, graph.value(graph.outputs[i]).name));
    }
  }
}

}  // namespace whimbrel
