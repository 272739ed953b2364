// Switches, the pass list and the order of compilation.

#include "whimbrel/graph/compile.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/config.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/json.h"
#include "whimbrel/graph/onnx_import.h"

namespace whimbrel {
namespace {

std::vector<Pass>& MutablePasses() {
  static std::vector<Pass> passes;
  return passes;
}

void CheckPassName(std::string_view name, std::string_view where) {
  std::vector<std::string_view> known;
  for (const Pass& pass : Passes()) known.push_back(pass.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string list;
  for (std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
  const auto near = NearestWord(name, known);
  throw Error(
      Code::kInvalidArgument, fmt::format("{}: there is no pass {}", where, name),
      near.empty() ? "passes: " + list : fmt::format("did you mean {}? passes: {}", near, list));
}

}  // namespace

RegisterPass::RegisterPass(const Pass& pass) {
  auto& passes = MutablePasses();
  passes.push_back(pass);
  std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
    return std::tuple(a.order, a.name) < std::tuple(b.order, b.name);
  });
}

const std::vector<Pass>& Passes() {
  return MutablePasses();
}

FusionSwitches FusionSwitches::FromFile(const std::string& path) {
  return FromJson(ReadTextFile(path), path);
}

FusionSwitches FusionSwitches::FromJson(std::string_view text, std::string_view source) {
  const Json json = ParseJson(text, source);
  const auto fail = [&](const std::string& what) {
    throw Error(Code::kInvalidData, fmt::format("{}: {}", source, what),
                R"(expected {"Switch":{"GraphFusion":{"PASS":"off"}}})");
  };
  if (!json.is_object() || !json.contains("Switch")) fail("key Switch is missing");
  FusionSwitches switches;
  for (const auto& [group, entries] : json["Switch"].items()) {
    // UBFusion switches kernels of the vendor's compiler; here it is accepted and means nothing.
    if (group != "GraphFusion" && group != "UBFusion") fail(fmt::format("unknown group {}", group));
    if (!entries.is_object()) fail(fmt::format("{} must be an object", group));
    if (group != "GraphFusion") continue;
    for (const auto& [pass, state] : entries.items()) {
      if (!state.is_string() || (state != "on" && state != "off"))
        fail(fmt::format("{} must be \"on\" or \"off\"", pass));
      if (pass == "ALL") {
        for (const Pass& p : Passes()) switches.Set(p.name, state == "on");
      } else {
        CheckPassName(pass, source);
      }
    }
    // ALL first, single passes after it, whatever the order in the file.
    for (const auto& [pass, state] : entries.items()) {
      if (pass != "ALL") switches.Set(pass, state == "on");
    }
  }
  return switches;
}

void FusionSwitches::Set(std::string_view pass, bool enabled) {
  CheckPassName(pass, "fusion switches");
  const auto it = std::find(off_.begin(), off_.end(), pass);
  if (enabled && it != off_.end()) off_.erase(it);
  if (!enabled && it == off_.end()) off_.emplace_back(pass);
  std::sort(off_.begin(), off_.end());
}

bool FusionSwitches::on(std::string_view pass) const {
  return std::find(off_.begin(), off_.end(), pass) == off_.end();
}

std::string FusionSwitches::ToText() const {
  std::string text;
  for (const std::string& pass : off_) text += (text.empty() ? "" : " ") + pass + "=off";
  return text;
}

namespace {

void RunPass(const Pass& pass, Graph& graph, std::vector<PassNote>& notes) {
  for (Node& node : graph.nodes) {
    for (Branch& branch : node.branches) {
      if (branch.refused.empty()) RunPass(pass, *branch.graph, notes);
    }
  }
  pass.run(graph, notes);
  RemoveUnused(graph);
  VerifyGraph(graph, pass.name);
}

}  // namespace

CompiledGraph CompileGraph(const Graph& imported, const CompileOptions& options) {
  RequireKnownOps(imported);
  CompiledGraph compiled;
  Graph graph = CloneGraph(imported);
  BindInputShapes(graph, options.shapes);
  compiled.assumed = BindOpenDimsToOne(graph);
  SpecializeGraph(graph);
  if (options.optimize) {
    for (const Pass& pass : Passes()) {
      if (options.switches.on(pass.name)) RunPass(pass, graph, compiled.notes);
    }
  }
  for (ValueId id : graph.inputs)
    compiled.shapes.push_back({graph.value(id).name, ToShape(*graph.value(id).info.dims)});
  compiled.graph = std::make_shared<const Graph>(std::move(graph));
  return compiled;
}

}  // namespace whimbrel
