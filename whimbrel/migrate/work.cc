// Opening, keys, and the stages' calls.

#include "whimbrel/migrate/work.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/base/version.h"
#include "whimbrel/migrate/bench.h"
#include "whimbrel/migrate/evidence.h"
#include "whimbrel/migrate/model_files.h"
#include "whimbrel/migrate/scan.h"

namespace whimbrel {
namespace {

// The version and the program's own bytes: a build with another kernel gives other results.
std::string ToolIdentity() {
  return fmt::format("{} {}", kVersion, Sha256Hex(MappedFile::Open("/proc/self/exe")->bytes()));
}

std::string KeyOf(const Json& parts) {
  return Sha256Hex(DumpJson(parts));
}

int64_t CountNodes(const Graph& graph) {
  auto count = static_cast<int64_t>(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (const Branch& branch : node.branches) count += CountNodes(*branch.graph);
  }
  return count;
}

}  // namespace

Work::Work(const WorkOptions& options) : options_(options) {
  path_ = ResolveModelPath(options.model);
  name_ = ModelStem(options.model);
  if (LooksLikePackage(path_)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} is a package: it has been through this", path_),
                "give the ONNX file; 'whimbrel gate DIR' judges a migrated folder");
  }
  model_sha256_ = HashModel(path_);
  std::sort(options_.inputs.begin(), options_.inputs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  inputs_sha256_ = HashInputs(options_.inputs);
  tool_ = ToolIdentity();
  threads_ = options.threads > 0 ? options.threads : AvailableCores();
  device_ = OpenDevice(options.device);
  if (!options.fusion_switch_file.empty())
    switches_ = FusionSwitches::FromFile(options.fusion_switch_file);
}

std::string Work::scan_target() const {
  if (device_->info().kind == DeviceKind::kCpu) return "cpu";
  throw Error(Code::kUnsupported,
              fmt::format("{} cannot be migrated to by this version", device_->info().name),
              "migrate --to cpu:0");
}

Json Work::ShapesJson() const {
  Json json = Json::object();
  for (const auto& [name, tensor] : options_.inputs) {
    const auto dims = tensor.shape().dims();
    json[name] = std::vector<int64_t>(dims.begin(), dims.end());
  }
  return json;
}

std::vector<InputShape> Work::shapes() const {
  std::vector<InputShape> shapes;
  for (const auto& [name, tensor] : options_.inputs) shapes.push_back({name, tensor.shape()});
  return shapes;
}

const Graph& Work::imported() {
  if (!imported_) imported_ = std::make_unique<Graph>(ImportOnnx(path_));
  return *imported_;
}

const CompiledGraph& Work::compiled() {
  if (!compiled_) compiled_ = CompileGraph(imported(), {.shapes = shapes(), .switches = switches_});
  return *compiled_;
}

const std::vector<Tensor>& Work::inputs() {
  if (!ordered_.empty()) return ordered_;
  const Graph& graph = imported();
  for (const ValueId id : graph.inputs) {
    const std::string& name = graph.value(id).name;
    const auto found = std::find_if(options_.inputs.begin(), options_.inputs.end(),
                                    [&](const auto& i) { return i.first == name; });
    if (found == options_.inputs.end())
      throw Error(Code::kInvalidArgument, fmt::format("input '{}' is missing", name));
    ordered_.push_back(found->second);
  }
  return ordered_;
}

std::string Work::ScanKey() const {
  return KeyOf(Json{{"stage", "scan"},
                    {"tool", tool_},
                    {"model", model_sha256_},
                    {"target", scan_target()},
                    {"shapes", ShapesJson()}});
}

std::string Work::CompileKey() const {
  return KeyOf(Json{{"stage", "compile"},
                    {"tool", tool_},
                    {"model", model_sha256_},
                    {"device", device_->info().name},
                    {"isa", IsaName(ActiveIsa())},
                    {"switches", switches_.ToText()},
                    {"shapes", ShapesJson()}});
}

std::string Work::AlignKey() const {
  const AlignTolerance& t = options_.tolerance;
  return KeyOf(
      Json{{"stage", "align"},
           {"compile", CompileKey()},
           {"inputs", inputs_sha256_},
           {"threads", threads_},
           {"tolerance", {t.elementwise, t.matrix, t.rtol, t.atol, t.float16, t.bfloat16}}});
}

std::string Work::BenchKey(double seconds) const {
  return KeyOf(Json{{"stage", "bench"},
                    {"compile", CompileKey()},
                    {"inputs", inputs_sha256_},
                    {"threads", threads_},
                    {"seconds", seconds}});
}

std::string Work::PackageKey() const {
  return KeyOf(
      Json{{"stage", "package"}, {"scan", ScanKey()}, {"align", AlignKey()}, {"name", name_}});
}

Json AsWritten(const Json& json) {
  return ParseJson(DumpJson(json), "result");
}

Json ScanStage(Work& work) {
  return ToJson(Scan(work.imported(), work.path(), work.scan_target(), work.shapes()));
}

Json CompileStage(Work& work) {
  const CompiledGraph& compiled = work.compiled();
  const Executable executable(compiled.graph, work.device());
  std::map<std::string, int64_t> kernels;
  for (const PlanStep& step : executable.steps())
    ++kernels[step.kernel ? std::string(step.kernel->name) : "chosen at run time"];
  std::map<std::string, int64_t> passes;
  for (const PassNote& note : compiled.notes) ++passes[note.pass];
  const ExecutableMemory memory = executable.memory();
  return Json{{"nodes_before", CountNodes(work.imported())},
              {"nodes_after", CountNodes(*compiled.graph)},
              {"steps", executable.steps().size()},
              {"kernels", kernels},
              {"passes", passes},
              {"memory",
               {{"arena_bytes", memory.arena_bytes},
                {"workspace_bytes", memory.workspace_bytes},
                {"constant_bytes", memory.constant_bytes},
                {"prepared_bytes", memory.prepared_bytes}}}};
}

Json AlignStage(Work& work, const StageProgress& progress, std::vector<Tensor>* reference_outputs) {
  AlignOptions options;
  options.device = work.device()->info().name;
  options.threads = work.threads();
  options.tolerance = work.tolerance();
  options.switches = work.switches();
  if (progress) {
    options.progress = [&](size_t done, size_t total, const std::string& layer) {
      progress(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total), layer);
    };
  }
  AlignResult result = Align(work.imported(), work.inputs(), options);
  *reference_outputs = std::move(result.reference_outputs);
  return ToJson(result);
}

Json BenchStage(Work& work, double seconds, const StageProgress& progress) {
  const auto stream = work.device()->CreateStream({.threads = work.threads()});
  const auto executable = Executable::Make(*stream, work.compiled().graph, work.device());
  BenchOptions options;
  options.seconds = seconds;
  const std::vector<Tensor>& inputs = work.inputs();
  if (!inputs.empty() && inputs.front().shape().rank() >= 4)
    options.batch = std::max<int64_t>(inputs.front().shape()[0], 1);
  if (progress) options.progress = [&](double fraction) { progress(fraction, ""); };
  return ToJson(Bench(*executable, *stream, work.threads(), inputs, options));
}

}  // namespace whimbrel
