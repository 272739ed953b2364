// onnx_backend_runner: runs the ONNX backend tests of a folder, a line per case and a closing
// count.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "whimbrel/graph/graph.h"
#include "whimbrel/tensor/npy.h"
#include "whimbrel/tensor/tensor_proto.h"

namespace whimbrel {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string directory;
  std::string filter;
  std::string skips = WHIMBREL_SKIP_LIST;
  bool quiet = false;  // failures and the count only
  // For scripts/fuzz_vs_ort.py: outputs go to WRITE/NAME/SET_K.npy and are compared with nothing
  // but a second run.
  std::string write;
  SessionOptions session;
};

struct Outcome {
  enum class Kind { kPass, kFail, kSkip } kind;
  std::string text;
};

std::string Trim(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// "NAME: reason" a line; # starts a comment.
std::map<std::string, std::string> ReadSkips(const std::string& path) {
  std::map<std::string, std::string> skips;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line = Trim(line);
    if (line.empty() || line[0] == '#') continue;
    const auto colon = line.find(':');
    const std::string reason = colon == std::string::npos ? "" : Trim(line.substr(colon + 1));
    if (reason.empty())
      throw Error(Code::kInvalidData, fmt::format("{}: line \"{}\" gives no reason", path, line));
    skips[Trim(line.substr(0, colon))] = reason;
  }
  return skips;
}

std::set<std::string> ReadFilter(const std::string& path) {
  std::set<std::string> ops;
  std::ifstream file(path);
  if (!file) throw Error(Code::kNotFound, "cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    line = Trim(line);
    if (!line.empty() && line[0] != '#') ops.insert(line);
  }
  return ops;
}

void CollectOps(const Graph& graph, std::set<std::string>& ops) {
  for (const Node& node : graph.nodes) {
    ops.insert(node.domain.empty() ? node.op : node.domain + ":" + node.op);
    for (const Branch& branch : node.branches) CollectOps(*branch.graph, ops);
  }
}

// Empty when equal within the tolerances of the contract (DESIGN.md), else the first difference.
std::string Difference(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype())
    return fmt::format("type {}, expected {}", DTypeName(got.dtype()), DTypeName(want.dtype()));
  if (!(got.shape() == want.shape()))
    return fmt::format("shape {}, expected {}", ToString(got.shape()), ToString(want.shape()));
  double rtol = 1e-3;
  if (want.dtype() == DType::kBFloat16) rtol = 0x1p-8;
  if (want.dtype() == DType::kFloat16) rtol = 0x1p-10;
  if (!IsFloating(want.dtype())) rtol = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double a = ElementAsDouble(got, i);
    const double b = ElementAsDouble(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (IsFloating(want.dtype()) && std::fabs(a - b) <= 1e-7 + rtol * std::fabs(b)) continue;
    return fmt::format("element {}: {}, expected {}", i, a, b);
  }
  return "";
}

// Every bit, -0.0 and NaN too: a second run must repeat the first.
bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

Outcome WriteCase(const fs::path& folder, const Options& options) {
  const std::string name = folder.filename().string();
  try {
    const auto session = Session::Open((folder / "model.onnx").string(), options.session);
    fs::create_directories(fs::path(options.write) / name);
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) sets.push_back(entry.path());
    }
    std::sort(sets.begin(), sets.end());
    for (const fs::path& set : sets) {
      std::vector<Tensor> inputs;
      for (size_t j = 0; j < session->inputs().size(); ++j)
        inputs.push_back(ReadTensorProtoFile((set / fmt::format("input_{}.pb", j)).string()));
      const std::vector<Tensor> got = session->Run(inputs);
      const std::vector<Tensor> again = session->Run(inputs);
      for (size_t k = 0; k < got.size(); ++k) {
        if (!SameBits(got[k], again[k]))
          return {Outcome::Kind::kFail, fmt::format("{} output {}: a second run gave other bits",
                                                    set.filename().string(), k)};
        WriteNpy(
            (fs::path(options.write) / name / fmt::format("{}_{}.npy", set.filename().string(), k))
                .string(),
            got[k]);
      }
    }
  } catch (const Error& e) {
    return {e.code() == Code::kUnsupported ? Outcome::Kind::kSkip : Outcome::Kind::kFail, e.what()};
  }
  return {Outcome::Kind::kPass, ""};
}

std::vector<Tensor> ReadTensors(const fs::path& folder, const std::string& kind, size_t count) {
  std::vector<Tensor> tensors(count);
  for (size_t j = 0; j < count; ++j) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, j);
    if (fs::exists(path)) tensors[j] = ReadTensorProtoFile(path.string());
  }
  return tensors;
}

// The suites up to onnx 1.17 store bfloat16 as the bits in uint16.
Tensor AsDeclared(const Tensor& tensor, DType declared) {
  if (declared != DType::kBFloat16 || tensor.dtype() != DType::kUint16) return tensor;
  Tensor same = Tensor::Host(declared, tensor.shape());
  std::copy_n(static_cast<const std::byte*>(tensor.raw()), tensor.bytes(),
              static_cast<std::byte*>(same.raw()));
  return same;
}

Outcome RunCase(const fs::path& folder, const Options& options,
                const std::set<std::string>* filter) {
  const std::string model = (folder / "model.onnx").string();
  Graph graph;
  std::vector<std::pair<std::vector<Tensor>, std::vector<Tensor>>> sets;
  try {
    graph = ImportOnnx(model);
    std::set<std::string> ops;
    CollectOps(graph, ops);
    if (filter != nullptr) {
      for (const std::string& op : ops) {
        if (filter->count(op) == 0)
          return {Outcome::Kind::kSkip, "op " + op + " is not in the filter"};
      }
    }
    RequireKnownOps(graph);
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().rfind("test_data_set_", 0) != 0) continue;
      sets.emplace_back(ReadTensors(entry.path(), "input", graph.inputs.size()),
                        ReadTensors(entry.path(), "output", graph.outputs.size()));
    }
  } catch (const Error& e) {
    if (e.code() == Code::kUnsupported) return {Outcome::Kind::kSkip, e.what()};
    return {Outcome::Kind::kFail, e.what()};
  }
  if (sets.empty()) return {Outcome::Kind::kFail, "no test_data_set_* in the folder"};
  try {
    const auto session = Session::Open(model, options.session);
    for (auto& [inputs, outputs] : sets) {
      for (size_t j = 0; j < inputs.size(); ++j)
        inputs[j] = AsDeclared(inputs[j], session->inputs()[j].dtype);
      const std::vector<Tensor> got = session->Run(inputs);
      for (size_t k = 0; k < outputs.size(); ++k) {
        if (!outputs[k].defined()) continue;
        const std::string difference = Difference(got[k], AsDeclared(outputs[k], got[k].dtype()));
        if (!difference.empty())
          return {Outcome::Kind::kFail, fmt::format("output {}: {}", k, difference)};
      }
    }
  } catch (const Error& e) {
    return {Outcome::Kind::kFail, e.what()};
  }
  return {Outcome::Kind::kPass, ""};
}

int RunAll(const Options& options) {
  const auto skips = ReadSkips(options.skips);
  std::set<std::string> filter;
  if (!options.filter.empty()) filter = ReadFilter(options.filter);
  fs::path root = options.directory;
  if (fs::is_directory(root / "node")) root /= "node";
  if (!fs::is_directory(root))
    throw Error(Code::kNotFound, fmt::format("there is no folder {}", options.directory),
                "unpack or generate the node tests first (scripts/gen_node_tests.py)");
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  size_t passed = 0;
  size_t failed = 0;
  size_t skipped = 0;
  for (const fs::path& folder : cases) {
    const std::string name = folder.filename().string();
    const auto skip = skips.find(name);
    const Outcome outcome =
        skip != skips.end()
            ? Outcome{Outcome::Kind::kSkip, skip->second}
            : (options.write.empty()
                   ? RunCase(folder, options, options.filter.empty() ? nullptr : &filter)
                   : WriteCase(folder, options));
    const bool fail = outcome.kind == Outcome::Kind::kFail;
    if (!options.quiet || fail) {
      fmt::print("{} {}{}{}\n",
                 outcome.kind == Outcome::Kind::kPass ? "PASS" : (fail ? "FAIL" : "SKIP"), name,
                 outcome.text.empty() ? "" : ": ", outcome.text);
      std::fflush(stdout);  // a crash must not take the names before it along
    }
    passed += outcome.kind == Outcome::Kind::kPass ? 1 : 0;
    failed += fail ? 1 : 0;
    skipped += outcome.kind == Outcome::Kind::kSkip ? 1 : 0;
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  if (passed + failed == 0) {
    fmt::print(stderr, "no case ran\n");
    return 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace whimbrel

int main(int argc, char** argv) {
  whimbrel::Options options;
  const auto usage = [] {
    fmt::print(stderr,
               "usage: onnx_backend_runner DIR [--filter FILE] [--device D] [--threads N] "
               "[--fusion-switch-file FILE] [--reference]\n"
               "                           [--skips FILE] [--quiet] [--write DIR]\n");
    return 2;
  };
  std::string switches;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--filter" && has_value)
      options.filter = argv[++i];
    else if (word == "--device" && has_value)
      options.session.device = argv[++i];
    else if (word == "--threads" && has_value)
      options.session.threads = std::atoi(argv[++i]);
    else if (word == "--fusion-switch-file" && has_value)
      switches = argv[++i];
    else if (word == "--reference")
      options.session.only_reference = true;
    else if (word == "--write" && has_value)
      options.write = argv[++i];
    else if (word == "--skips" && has_value)
      options.skips = argv[++i];
    else if (word == "--quiet")
      options.quiet = true;
    else if (!word.empty() && word[0] != '-' && options.directory.empty())
      options.directory = word;
    else
      return usage();
  }
  if (options.directory.empty()) return usage();
  try {
    if (!switches.empty()) options.session.switches = whimbrel::FusionSwitches::FromFile(switches);
    return whimbrel::RunAll(options);
  } catch (const whimbrel::Error& e) {
    fmt::print(stderr, "onnx_backend_runner: {}\n", e.what());
    return whimbrel::Describe(e.code()).exit_code;
  } catch (const std::exception& e) {
    fmt::print(stderr, "onnx_backend_runner: {}\n", e.what());
    return 5;
  }
}
