// Opening models and keeping executables per shape.

#include "whimbrel/graph/session.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "whimbrel/base/file.h"
#include "whimbrel/graph/infer_graph.h"
#include "whimbrel/graph/onnx_import.h"

namespace whimbrel {
namespace {

std::vector<TensorSpec> Specs(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorSpec> specs;
  for (ValueId id : ids) {
    const Value& value = graph.value(id);
    specs.push_back({value.name, value.info.dtype, value.info.dims});
  }
  return specs;
}

std::string KeyOf(const std::vector<Shape>& shapes) {
  std::string key;
  for (const Shape& shape : shapes) key += ToString(shape) + ";";
  return key;
}

}  // namespace

std::string ResolveModelPath(const std::string& model) {
  if (!IsDirectory(model)) {
    if (!FileExists(model))
      throw Error(Code::kNotFound, fmt::format("there is no file {}", model),
                  "MODEL is an ONNX file, a .wbl package or a folder that holds model.onnx");
    return model;
  }
  const std::string usual = JoinPath(model, "model.onnx");
  if (FileExists(usual)) return usual;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(model)) {
    if (entry.path().extension() == ".onnx") found.push_back(entry.path().string());
  }
  if (found.size() == 1) return found[0];
  throw Error(Code::kNotFound,
              fmt::format("folder {} holds {} .onnx files and no model.onnx", model, found.size()),
              "name the file");
}

std::string ModelStem(const std::string& model) {
  const std::string absolute = AbsolutePath(model);
  if (IsDirectory(absolute)) return FileName(absolute);
  if (FileName(absolute) == "model.onnx") {
    const std::string folder = FileName(ParentDirectory(absolute));
    if (!folder.empty() && folder != ".") return folder;
  }
  return FileStem(absolute);
}

std::unique_ptr<Session> Session::Open(const std::string& model, const SessionOptions& options) {
  const std::string path = ResolveModelPath(model);
  std::unique_ptr<Session> session(new Session());
  session->options_ = options;
  session->device_ = OpenDevice(options.device);
  session->stream_ = session->device_->CreateStream({.threads = options.threads});
  if (LooksLikePackage(path)) {
    session->package_ = std::make_unique<PackageContents>(ReadPackage(path, options.verify));
    CheckProbes(*session->package_, path, session->device_, options.threads);
    const Graph& graph = *session->package_->buckets.at(0).graph;
    session->inputs_ = Specs(graph, graph.inputs);
    session->outputs_ = Specs(graph, graph.outputs);
  } else {
    session->imported_ = std::make_unique<Graph>(ImportOnnx(path));
    RequireKnownOps(*session->imported_);
    Graph described = CloneGraph(*session->imported_);
    InferGraph(described);
    session->inputs_ = Specs(described, described.inputs);
    session->outputs_ = Specs(described, described.outputs);
  }
  return session;
}

Executable& Session::Prepare(const std::vector<Shape>& shapes) {
  if (shapes.size() != inputs_.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} inputs given, the model takes {}", shapes.size(), inputs_.size()));
  }
  const std::string key = KeyOf(shapes);
  Entry& entry = executables_[key];
  entry.last_use = ++clock_;
  if (entry.executable) return *entry.executable;
  try {
    std::shared_ptr<const Graph> graph;
    if (package_) {
      std::string known;
      size_t chosen = 0;
      for (size_t b = 0; b < package_->buckets.size(); ++b) {
        const PackageBucket& bucket = package_->buckets[b];
        std::vector<Shape> bucket_shapes;
        std::string text;
        for (const InputShape& s : bucket.shapes) {
          bucket_shapes.push_back(s.shape);
          text += (text.empty() ? "" : " ") + s.name + ":" + ToString(s.shape);
        }
        if (KeyOf(bucket_shapes) == key) {
          graph = bucket.graph;
          chosen = b;
        }
        known += (known.empty() ? "" : "; ") + text;
      }
      if (!graph) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("the package has no bucket for {}; it has {}", key, known),
                    "package the model with --shape for these dims, or run the ONNX file");
      }
      VerifyWeights(*package_, chosen);
    } else {
      CompileOptions compile;
      compile.switches = options_.switches;
      compile.optimize = !options_.only_reference;
      for (size_t i = 0; i < shapes.size(); ++i)
        compile.shapes.push_back({inputs_[i].name, shapes[i]});
      graph = CompileGraph(*imported_, compile).graph;
    }
    entry.executable =
        Executable::Make(*stream_, graph, device_, {.only_reference = options_.only_reference});
  } catch (...) {
    executables_.erase(key);
    throw;
  }
  while (executables_.size() > std::max<size_t>(options_.max_executables, 1)) {
    const auto oldest = std::min_element(
        executables_.begin(), executables_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    executables_.erase(oldest);
  }
  return *executables_.at(key).executable;
}

Executable& Session::PrepareDefault(const std::vector<InputShape>& shapes,
                                    std::vector<std::string>* assumed) {
  std::vector<Shape> all;
  if (package_) {
    for (const InputShape& given : shapes) {
      if (std::any_of(inputs_.begin(), inputs_.end(),
                      [&](const TensorSpec& s) { return s.name == given.name; }))
        continue;
      throw Error(Code::kInvalidArgument, fmt::format("the package has no input {}", given.name));
    }
    std::vector<InputShape> bucket = package_->buckets.at(0).shapes;
    for (InputShape& s : bucket) {
      const auto given = std::find_if(shapes.begin(), shapes.end(),
                                      [&](const InputShape& g) { return g.name == s.name; });
      all.push_back(given == shapes.end() ? s.shape : given->shape);
    }
    return Prepare(all);
  }
  Graph graph = CloneGraph(*imported_);
  BindInputShapes(graph, shapes);
  auto lines = BindOpenDimsToOne(graph);
  if (assumed != nullptr) *assumed = std::move(lines);
  for (ValueId id : graph.inputs) all.push_back(ToShape(*graph.value(id).info.dims));
  return Prepare(all);
}

std::vector<Tensor> Session::Run(const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  Executable& executable = Prepare(shapes);
  executable.Run(*stream_, inputs);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executable.outputs(); ++i)
    outputs.push_back(CopyPlain(executable.output(i)));
  return outputs;
}

}  // namespace whimbrel
