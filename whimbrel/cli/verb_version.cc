// version: the tool, the instruction set in force, libraries and threads.

#include <dlfcn.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/base/version.h"
#include "whimbrel/cli/command.h"

namespace whimbrel {
namespace {

struct VersionOptions {
  void Visit(ConfigVisitor&) {}
};

// oneDNN belongs to the kernels; its C function is looked up among what is loaded, so that this
// file needs no header of it and builds without it. The struct begins so since oneDNN 1.0
// (dnnl_version_t). Empty: not linked.
std::string OneDnnVersion() {
  struct Version {
    int major;
    int minor;
    int patch;
  };
  using VersionFunction = const Version* (*)();
  const auto function = reinterpret_cast<VersionFunction>(dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (function == nullptr || function() == nullptr) return "";
  return fmt::format("{}.{}.{}", function()->major, function()->minor, function()->patch);
}

std::string Compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#else
  return fmt::format("gcc {}", __VERSION__);
#endif
}

int RunVersion(const VersionOptions&, Output& out) {
  SetComputeThreads(0);
  const std::string onednn = OneDnnVersion();
  const Isa isa = ActiveIsa();
  if (out.json()) {
    out.Result({{"whimbrel", kVersion},
                {"isa", IsaName(isa)},
                {"cpu", CpuModelName()},
                {"cores", AvailableCores()},
                {"threads", compute_threads()},
                {"onednn", onednn.empty() ? Json(nullptr) : Json(onednn)},
                {"onednn_used", !onednn.empty() && isa != Isa::kPortable},
                {"compiler", Compiler()}});
    return 0;
  }
  std::string dnn = onednn.empty() ? "not built in" : onednn;
  if (!onednn.empty() && isa == Isa::kPortable) dnn += " (not used: WHIMBREL_ISA=portable)";
  out.Text(
      fmt::format("whimbrel   {}\nisa        {}\ncpu        {}\nthreads    {} of {} cores\noneDNN  "
                  "   {}\ncompiler   {}\n",
                  kVersion, IsaName(isa), CpuModelName(), compute_threads(), AvailableCores(), dnn,
                  Compiler()));
  return 0;
}

const RegisterCommand<VersionOptions> kRegistered(
    {.name = "version",
     .stage = Stage::kTool,
     .summary = "show the version, the instruction set in force and the libraries",
     .examples = {"whimbrel version", "whimbrel version --json",
                  "WHIMBREL_ISA=avx2 whimbrel version"}},
    RunVersion);

}  // namespace
}  // namespace whimbrel
