// The package's manifest and probes, and the file that keeps reference outputs between runs.

#include "whimbrel/migrate/evidence.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/base/version.h"

namespace whimbrel {
namespace {

std::span<const std::byte> BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw()), tensor.bytes()};
}

std::string HashTensors(const std::vector<Tensor>& tensors) {
  Sha256 hash;
  for (const Tensor& tensor : tensors) {
    hash.Update(fmt::format("{} {}\n", DTypeName(tensor.dtype()), ToString(tensor.shape())));
    hash.Update(BytesOf(tensor));
  }
  return hash.HexDigest();
}

Json DimsJson(const Shape& shape) {
  const auto dims = shape.dims();
  return std::vector<int64_t>(dims.begin(), dims.end());
}

Json ShapesJson(const std::vector<InputShape>& shapes) {
  Json object = Json::object();
  for (const InputShape& shape : shapes) object[shape.name] = DimsJson(shape.shape);
  return object;
}

// Without paths: where the model lay is no property of the package.
Json CoverageJson(const Json& scan) {
  Json ops = scan.at("ops");
  for (Json& op : ops) op.erase("nodes");
  return Json{
      {"target", scan.at("target")}, {"coverage", scan.at("coverage")}, {"ops", std::move(ops)}};
}

Json AlignmentJson(const Json& align, const AlignTolerance& t) {
  return Json{{"verdict", align.at("verdict")},
              {"first_bad_layer", align.at("first_bad_layer")},
              {"reference", align.at("reference")},
              {"tolerance",
               {{"elementwise", t.elementwise},
                {"matrix", t.matrix},
                {"rtol", t.rtol},
                {"atol", t.atol},
                {"float16", t.float16},
                {"bfloat16", t.bfloat16}}},
              {"outputs", align.at("outputs")},
              {"layers", align.at("layers")}};
}

Json PlanJson(const Graph& graph) {
  const Plan plan = MakePlan(graph, {});
  std::map<std::string, int64_t> kernels;
  for (const PlanStep& step : plan.steps)
    ++kernels[step.kernel ? std::string(step.kernel->name) : "chosen at run time"];
  return Json{{"steps", plan.steps.size()},
              {"kernels", kernels},
              {"arena_bytes", plan.memory.arena_bytes},
              {"constant_bytes", plan.constant_bytes}};
}

}  // namespace

PackageContents BuildPackage(const PackageParts& parts, const Json& scan, const Json& align) {
  PackageContents contents;
  const Graph& graph = *parts.compiled.graph;
  PackageProbe probe{.bucket = 0,
                     .inputs = parts.inputs,
                     .outputs = parts.reference_outputs,
                     .rtol = parts.tolerance.rtol,
                     .atol = parts.tolerance.atol};
  for (const Tensor& output : parts.reference_outputs) {
    // The same allowance as the alignment's end to end rule.
    double least = 0;
    if (output.dtype() == DType::kFloat16) least = parts.tolerance.float16;
    if (output.dtype() == DType::kBFloat16) least = parts.tolerance.bfloat16;
    probe.rtol = std::max(probe.rtol, least);
    probe.atol = std::max(probe.atol, least);
  }
  contents.manifest = std::make_shared<const Json>(Json{
      {"tool", {{"name", "whimbrel"}, {"version", kVersion}}},
      {"model", {{"name", parts.model_name}, {"sha256", parts.model_sha256}}},
      {"target", DeviceKindName(parts.device)},
      {"options",
       {{"isa", IsaName(ActiveIsa())},
        {"threads", parts.threads},
        {"fusion_switches", parts.switches.ToText()},
        {"precision", "f32"}}},
      {"buckets", Json::array({ShapesJson(parts.compiled.shapes)})},
      {"scan", CoverageJson(scan)},
      {"plans", Json::array({PlanJson(graph)})},
      {"alignment", AlignmentJson(align, parts.tolerance)},
      {"probes", Json::array({Json{{"bucket", 0},
                                   {"inputs_sha256", HashTensors(parts.inputs)},
                                   {"outputs_sha256", HashTensors(parts.reference_outputs)}}})}});
  contents.buckets.push_back({.shapes = parts.compiled.shapes, .graph = parts.compiled.graph});
  // A probe that the alignment has shown to fail would make the package refuse itself: then the
  // evidence says "fail", and no probe promises otherwise.
  const Json& outputs = align.at("outputs");
  const bool end_to_end = std::all_of(outputs.begin(), outputs.end(),
                                      [](const Json& o) { return o.at("ok").get<bool>(); });
  if (end_to_end) contents.probes.push_back(std::move(probe));
  return contents;
}

std::string HashInputs(const std::vector<std::pair<std::string, Tensor>>& inputs) {
  Sha256 hash;
  for (const auto& [name, tensor] : inputs) {
    hash.Update(fmt::format("{}:{} {} {}\n", name.size(), name, DTypeName(tensor.dtype()),
                            ToString(tensor.shape())));
    hash.Update(BytesOf(tensor));
  }
  return hash.HexDigest();
}

Json WriteTensors(const std::string& path, const std::vector<Tensor>& tensors) {
  std::vector<std::byte> bytes;
  Json list = Json::array();
  for (const Tensor& tensor : tensors) {
    const Tensor plain = CopyPlain(tensor);
    const auto own = BytesOf(plain);
    bytes.insert(bytes.end(), own.begin(), own.end());
    list.push_back(
        Json{{"dtype", static_cast<int>(plain.dtype())}, {"shape", DimsJson(plain.shape())}});
  }
  WriteFileAtomic(path, std::span<const std::byte>(bytes));
  return Json{{"sha256", Sha256Hex(std::span<const std::byte>(bytes))},
              {"tensors", std::move(list)}};
}

std::vector<Tensor> ReadTensors(const std::string& path, const Json& description) {
  if (!FileExists(path)) return {};
  const auto file = MappedFile::Open(path);
  if (Sha256Hex(file->bytes()) != description.at("sha256").get<std::string>()) return {};
  std::vector<Tensor> tensors;
  size_t offset = 0;
  for (const Json& item : description.at("tensors")) {
    const auto dims = item.at("shape").get<std::vector<int64_t>>();
    Tensor tensor = Tensor::Host(static_cast<DType>(item.at("dtype").get<int>()),
                                 Shape(std::span<const int64_t>(dims)));
    if (tensor.bytes() > file->bytes().size() - offset) return {};
    if (tensor.bytes() > 0)
      std::memcpy(tensor.raw(), file->bytes().data() + offset, tensor.bytes());
    offset += tensor.bytes();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace whimbrel
