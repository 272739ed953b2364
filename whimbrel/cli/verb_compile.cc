// compile: what a model becomes for given shapes: nodes, passes, kernels, memory, package.

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/base/version.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/inputs.h"

namespace whimbrel {
namespace {

struct CompileVerbOptions {
  ModelOptions model;
  bool explain = false;
  std::string output;

  void Visit(ConfigVisitor& v) {
    model.Visit(v);
    v.Field({.name = "explain",
             .help = "show what each pass did, each step's kernel, and why faster ones declined"},
            explain);
    v.Field({.name = "output",
             .help = "write the package here; it holds no alignment evidence ('whimbrel migrate' "
                     "adds that)",
             .value_name = "FILE.wbl",
             .short_flag = "o",
             .writes = true},
            output);
  }
};

// Nodes, those of branches included.
size_t CountNodes(const Graph& graph) {
  size_t count = graph.nodes.size();
  for (const Node& node : graph.nodes) {
    for (const Branch& branch : node.branches) count += CountNodes(*branch.graph);
  }
  return count;
}

Json SpecsJson(const std::vector<TensorSpec>& specs) {
  Json list = Json::array();
  for (const TensorSpec& spec : specs) {
    Json dims = nullptr;
    if (spec.dims) {
      dims = Json::array();
      for (const Dim& dim : *spec.dims)
        dims.push_back(dim.known() ? Json(dim.value()) : Json(ToString(dim)));
    }
    list.push_back(
        {{"name", spec.name}, {"dtype", DTypeName(spec.dtype)}, {"shape", std::move(dims)}});
  }
  return list;
}

Json ShapesJson(const std::vector<InputShape>& shapes) {
  Json object = Json::object();
  for (const InputShape& shape : shapes) {
    const auto dims = shape.shape.dims();
    object[shape.name] = std::vector<int64_t>(dims.begin(), dims.end());
  }
  return object;
}

std::string SpecsText(std::string_view title, const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& spec : specs) {
    text +=
        fmt::format("{:<8}{}  {} {}\n", text.empty() ? title : "", spec.name, DTypeName(spec.dtype),
                    spec.dims ? ToString(*spec.dims) : "of unknown rank");
  }
  return text;
}

struct Compiled {
  CompiledGraph graph;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  std::map<std::string, size_t> kernels;  // "onednn" -> steps
};

Json PassesJson(const std::vector<PassNote>& notes) {
  Json list = Json::array();
  for (const PassNote& note : notes)
    list.push_back({{"pass", note.pass}, {"node", note.node}, {"text", note.text}});
  return list;
}

Json StepsJson(const Executable& executable) {
  Json list = Json::array();
  for (const PlanStep& step : executable.steps()) {
    list.push_back({{"name", step.name},
                    {"op", step.schema ? step.schema->name : ""},
                    {"kernel", step.kernel ? Json(step.kernel->name) : Json(nullptr)},
                    {"declined", step.declined},
                    {"flops", step.cost.flops},
                    {"bytes", step.cost.bytes}});
  }
  return list;
}

std::string ExplainText(const Compiled& compiled, const Executable& executable) {
  std::string text = "\n";
  if (!compiled.graph.notes.empty()) {
    Table passes({"pass", "node", "what"});
    for (const PassNote& note : compiled.graph.notes) passes.Row({note.pass, note.node, note.text});
    text += passes.ToText() + "\n";
  }
  Table steps({"step", "op", "kernel", "declined"});
  for (const PlanStep& step : executable.steps()) {
    steps.Row({step.name, std::string(step.schema ? step.schema->name : ""),
               step.kernel ? std::string(step.kernel->name) : "chosen at run time",
               fmt::format("{}", fmt::join(step.declined, "; "))});
  }
  return text + steps.ToText();
}

std::string PassCounts(const std::vector<PassNote>& notes) {
  std::map<std::string, size_t> counts;
  for (const PassNote& note : notes) ++counts[note.pass];
  std::vector<std::string> parts;
  for (const auto& [pass, count] : counts) parts.push_back(fmt::format("{} {}x", pass, count));
  return parts.empty() ? "none changed anything" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string MemoryText(const ExecutableMemory& memory) {
  return fmt::format("activations {}, workspace {}, weights {}, packed weights {}",
                     FormatBytes(memory.arena_bytes), FormatBytes(memory.workspace_bytes),
                     FormatBytes(memory.constant_bytes), FormatBytes(memory.prepared_bytes));
}

std::string KernelsText(const Compiled& compiled) {
  std::vector<std::string> parts;
  for (const auto& [kernel, steps] : compiled.kernels)
    parts.push_back(fmt::format("{} {}", steps, kernel));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Only what the bytes of the model, the options and this version decide.
Json Manifest(const CompileVerbOptions& options, const SessionOptions& session,
              const Compiled& compiled) {
  const std::string path = ResolveModelPath(options.model.model);
  return {{"tool", {{"name", "whimbrel"}, {"version", kVersion}}},
          {"model",
           {{"name", ModelStem(options.model.model)},
            {"sha256", Sha256Hex(MappedFile::Open(path)->bytes())}}},
          {"target", DeviceKindName(OpenDevice(session.device)->info().kind)},
          {"fusion_switches", session.switches.ToText()},
          {"buckets", Json::array({ShapesJson(compiled.graph.shapes)})},
          {"evidence", nullptr}};
}

CompiledGraph Compile(const CompileVerbOptions& options, const SessionOptions& session_options,
                      const Session& session) {
  CompileOptions compile;
  compile.shapes = ParseInputShapes(options.model.shapes, session.inputs());
  compile.switches = session_options.switches;
  try {
    return CompileGraph(*session.imported(), compile);
  } catch (const Error& e) {
    Graph graph = CloneGraph(*session.imported());
    BindInputShapes(graph, compile.shapes);
    throw ExplainAssumed(e, BindOpenDimsToOne(graph));
  }
}

int RunCompile(const CompileVerbOptions& options, Output& out) {
  const SessionOptions session_options = options.model.ToSessionOptions();
  const std::unique_ptr<Session> session = Session::Open(options.model.model, session_options);
  if (session->is_package()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} is a package: it is compiled already", options.model.model),
                "give the ONNX file; 'whimbrel run' takes packages");
  }
  Compiled compiled;
  compiled.graph = Compile(options, session_options, *session);
  compiled.nodes_before = CountNodes(*session->imported());
  compiled.nodes_after = CountNodes(*compiled.graph.graph);
  const Executable executable(compiled.graph.graph, session->device_handle());
  for (const PlanStep& step : executable.steps())
    ++compiled.kernels[step.kernel ? std::string(step.kernel->name) : "chosen at run time"];
  for (const std::string& line : compiled.graph.assumed)
    out.Talk(fmt::format("assumed {}; --shape sets it", line));

  std::string sha256;
  if (!options.output.empty()) {
    PackageContents contents;
    contents.manifest = std::make_shared<const Json>(Manifest(options, session_options, compiled));
    contents.buckets.push_back({.shapes = compiled.graph.shapes, .graph = compiled.graph.graph});
    sha256 = WritePackage(options.output, contents);
  }
  const ExecutableMemory memory = executable.memory();
  if (out.json()) {
    Json result = {
        {"model", options.model.model},
        {"device", session->device().info().name},
        {"inputs", SpecsJson(session->inputs())},
        {"outputs", SpecsJson(session->outputs())},
        {"shapes", ShapesJson(compiled.graph.shapes)},
        {"assumed", compiled.graph.assumed},
        {"nodes", {{"before", compiled.nodes_before}, {"after", compiled.nodes_after}}},
        {"kernels", compiled.kernels},
        {"passes", PassesJson(compiled.graph.notes)},
        {"memory",
         {{"arena_bytes", memory.arena_bytes},
          {"workspace_bytes", memory.workspace_bytes},
          {"constant_bytes", memory.constant_bytes},
          {"prepared_bytes", memory.prepared_bytes}}},
        {"package", options.output.empty() ? Json(nullptr)
                                           : Json{{"file", options.output}, {"sha256", sha256}}}};
    if (options.explain) result["steps"] = StepsJson(executable);
    out.Result(result);
    return 0;
  }
  out.Text(SpecsText("inputs", session->inputs()) + SpecsText("outputs", session->outputs()));
  out.Text(fmt::format("nodes   {} -> {}\npasses  {}\nkernels {}\nmemory  {}\n",
                       compiled.nodes_before, compiled.nodes_after,
                       PassCounts(compiled.graph.notes), KernelsText(compiled),
                       MemoryText(memory)));
  if (options.explain) out.Text(ExplainText(compiled, executable));
  if (!options.output.empty()) {
    out.Text(
        fmt::format("package {}  {}\n        sha256 {}\n        without alignment evidence: "
                    "'whimbrel migrate' makes one with it\n",
                    options.output, FormatBytes(FileSize(options.output)), sha256));
  }
  return 0;
}

const RegisterCommand<CompileVerbOptions> kRegistered(
    {.name = "compile",
     .stage = Stage::kConvert,
     .summary = "compile a model for given shapes; show nodes, passes, kernels and memory",
     .examples = {"whimbrel compile model.onnx",
                  "whimbrel compile model.onnx --shape x:1x3x640x640 --explain",
                  "whimbrel compile model.onnx --shape x:1x3x640x640 -o model.wbl",
                  "whimbrel compile model.onnx --fusion-switch-file off.json --json"}},
    RunCompile);

}  // namespace
}  // namespace whimbrel
