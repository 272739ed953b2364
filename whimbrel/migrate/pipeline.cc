// The stages in order, what is reused, and what is written.

#include "whimbrel/migrate/pipeline.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/cpu.h"
#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/migrate/evidence.h"
#include "whimbrel/migrate/manifest.h"
#include "whimbrel/migrate/report.h"
#include "whimbrel/migrate/stage_text.h"
#include "whimbrel/migrate/work.h"

namespace whimbrel {
namespace {

// Temporary files of writes that a kill cut short: nobody else writes here while the lock is held.
void RemoveLeftovers(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".whimbrel-") && name.ends_with(".tmp"))
      leftovers.push_back(entry.path().string());
  }
  for (const std::string& leftover : leftovers) RemoveFile(leftover);
}

Json ToleranceJson(const AlignTolerance& t) {
  return Json{
      {"elementwise", t.elementwise}, {"matrix", t.matrix},    {"rtol", t.rtol}, {"atol", t.atol},
      {"float16", t.float16},         {"bfloat16", t.bfloat16}};
}

PackageParts PartsOf(Work& work, std::vector<Tensor> reference_outputs) {
  return {.model_name = work.name(),
          .model_sha256 = work.model_sha256(),
          .device = work.device()->info().kind,
          .threads = work.threads(),
          .switches = work.switches(),
          .tolerance = work.tolerance(),
          .compiled = work.compiled(),
          .inputs = work.inputs(),
          .reference_outputs = std::move(reference_outputs)};
}

class Migration {
 public:
  explicit Migration(const MigrateOptions& options)
      : options_(options),
        work_({options.model, options.to, options.threads, options.inputs,
               options.fusion_switch_file, options.tolerance}),
        lock_((MakeDirectories(options.out), options.out)),
        manifest_(OpenManifest()) {
    RemoveLeftovers(options.out);
    RemoveLeftovers(WorkFolder(options.out));
    Describe();
  }

  MigrateResult Run() {
    try {
      Stage("scan", work_.ScanKey(), [&](const StageProgress&) { return ScanStage(work_); });
      Stage("compile", work_.CompileKey(),
            [&](const StageProgress&) { return CompileStage(work_); });
      Stage("align", work_.AlignKey(), [&](const StageProgress& progress) {
        Json result = AlignStage(work_, progress, &reference_outputs_);
        result["reference_outputs"] = WriteTensors(ReferenceFile(), reference_outputs_);
        return result;
      });
      Stage("bench", work_.BenchKey(options_.bench_seconds), [&](const StageProgress& progress) {
        return BenchStage(work_, options_.bench_seconds, progress);
      });
      PackageStage();
    } catch (const Error& e) {
      Fail(e);
      throw;
    }
    Judge();
    result_.directory = options_.out;
    result_.package = PackagePath();
    result_.manifest = JoinPath(options_.out, "manifest.json");
    result_.report = JoinPath(options_.out, "report.html");
    result_.contents = std::make_shared<const Json>(manifest_.json());
    return std::move(result_);
  }

  std::string Refuse(const Error& error) {
    Stage("scan", work_.ScanKey(), [&](const StageProgress&) { return ScanStage(work_); });
    stage_ = "compile";
    Fail(error);
    return JoinPath(options_.out, "report.html");
  }

 private:
  std::string PackageName() const { return work_.name() + ".wbl"; }
  std::string PackagePath() const { return JoinPath(options_.out, PackageName()); }
  std::string ReferenceFile() const { return JoinPath(WorkFolder(options_.out), "reference.bin"); }

  Manifest OpenManifest() {
    if (options_.restart) RemoveFile(JoinPath(options_.out, "manifest.json"));
    std::string note;
    Manifest manifest = Manifest::Open(options_.out, &note);
    if (!note.empty()) result_.notes.push_back(note);
    return manifest;
  }

  void Describe() {
    const DeviceInfo& device = work_.device()->info();
    Json& json = manifest_.json();
    json["model"] =
        Json{{"path", work_.path()}, {"name", work_.name()}, {"sha256", work_.model_sha256()}};
    json["target"] = Json{{"device", device.name},
                          {"description", device.description},
                          {"emulated", device.emulated}};
    json["options"] = Json{{"command", options_.command},
                           {"inputs", options_.inputs_text},
                           {"inputs_sha256", work_.inputs_sha256()},
                           {"shapes", work_.ShapesJson()},
                           {"threads", work_.threads()},
                           {"isa", IsaName(ActiveIsa())},
                           {"fusion_switches", work_.switches().ToText()},
                           {"tolerance", ToleranceJson(work_.tolerance())},
                           {"bench_seconds", options_.bench_seconds}};
    json["error"] = nullptr;
  }

  void Tell(const std::string& stage, double fraction, const std::string& detail) const {
    if (options_.progress) options_.progress(stage, fraction, detail);
  }

  void Done(const std::string& stage, bool reused) {
    result_.stages.push_back(
        {stage, reused, manifest_.Seconds(stage), StageText(manifest_.json(), stage)});
    Tell(stage, 1, reused ? "unchanged, not done again" : "");
  }

  template <typename F>
  void Stage(const std::string& stage, const std::string& key, F make) {
    stage_ = stage;
    if (manifest_.Reusable(stage, key) != nullptr) return Done(stage, true);
    Tell(stage, 0, "");
    const auto start = std::chrono::steady_clock::now();
    // 1 is told once, when the stage is recorded.
    const Json result = make([&](double fraction, const std::string& detail) {
      Tell(stage, std::min(fraction, 0.99), detail);
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    manifest_.Record(stage, key, result, took.count());
    manifest_.Save();
    Done(stage, false);
  }

  // Recorded, there, and the bytes that were recorded.
  bool PackageIsWhole(const Json& record) {
    const Json* file = Member(&record, "file");
    const Json* hash = Member(&record, "sha256");
    if (file == nullptr || hash == nullptr || *file != PackageName()) return false;
    if (!FileExists(PackagePath())) {
      result_.notes.push_back(fmt::format("{} was gone, it is written again", PackageName()));
      return false;
    }
    if (*hash != Sha256Hex(MappedFile::Open(PackagePath())->bytes())) {
      result_.notes.push_back(fmt::format("{} was damaged, it is written again", PackageName()));
      return false;
    }
    return true;
  }

  void PackageStage() {
    stage_ = "package";
    const Json* record = manifest_.Reusable(stage_, work_.PackageKey());
    if (record != nullptr && PackageIsWhole(*record)) {
      manifest_.json()["package"] = *record;
      return Done(stage_, true);
    }
    Tell(stage_, 0, "");
    const auto start = std::chrono::steady_clock::now();
    RemoveOtherPackage();
    const Json align = *manifest_.Result("align");
    const PackageContents contents =
        BuildPackage(PartsOf(work_, ReferenceOutputs(align)), *manifest_.Result("scan"), align);
    const std::string sha256 = WritePackage(PackagePath(), contents);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const Json result = {{"file", PackageName()},
                         {"sha256", sha256},
                         {"bytes", FileSize(PackagePath())},
                         {"probes", contents.probes.size()}};
    manifest_.Record(stage_, work_.PackageKey(), result, took.count());
    manifest_.json()["package"] = result;
    manifest_.Save();
    Done(stage_, false);
  }

  // DIR holds one package: that of an earlier model goes.
  void RemoveOtherPackage() {
    const Json* file = Member(Member(&manifest_.json(), "package"), "file");
    if (file == nullptr || !file->is_string() || *file == PackageName()) return;
    RemoveFile(JoinPath(options_.out, FileName(file->get<std::string>())));
  }

  std::vector<Tensor> ReferenceOutputs(const Json& align) {
    if (!reference_outputs_.empty()) return reference_outputs_;
    const Json* description = Member(&align, "reference_outputs");
    std::vector<Tensor> kept;
    if (description != nullptr) kept = ReadTensors(ReferenceFile(), *description);
    if (!kept.empty()) return kept;
    result_.notes.push_back(
        "the kept reference outputs were gone or damaged: the reference runs again");
    return RunReference(work_.imported(), work_.inputs());
  }

  void Judge() {
    stage_ = "gate";
    Tell(stage_, 0, "");
    manifest_.Save();
    result_.gate = Gate(options_.out, options_.limits);
    Json& json = manifest_.json();
    json["gate"] = ToJson(result_.gate);
    json["verdict"] = result_.gate.pass ? "pass" : "fail";
    manifest_.Save();
    Done(stage_, false);
    WriteFileAtomic(JoinPath(options_.out, "report.html"), std::string_view(MakeReport(json)));
  }

  // What is known so far stays readable, with the error beside it.
  void Fail(const Error& error) {
    manifest_.json()["error"] = Json{{"stage", stage_},
                                     {"code", whimbrel::Describe(error.code()).name},
                                     {"text", error.what()},
                                     {"hint", error.hint()}};
    manifest_.json()["gate"] = nullptr;
    manifest_.json()["verdict"] = nullptr;
    try {
      manifest_.Save();
      WriteFileAtomic(JoinPath(options_.out, "report.html"),
                      std::string_view(MakeReport(manifest_.json())));
    } catch (const Error&) {
      // The first error is the one to tell.
    }
  }

  const MigrateOptions& options_;
  MigrateResult result_;
  Work work_;
  FolderLock lock_;
  Manifest manifest_;
  std::string stage_;
  std::vector<Tensor> reference_outputs_;
};

}  // namespace

std::string ReportRefusal(const MigrateOptions& options, const Error& error) {
  return Migration(options).Refuse(error);
}

MigrateResult Migrate(const MigrateOptions& options) {
  return Migration(options).Run();
}

PackageOutcome MakePackage(const PackageRequest& request, const std::string& path) {
  Work work({request.model, request.device, request.threads, request.inputs,
             request.fusion_switch_file, request.tolerance});
  const auto tell = [&](const std::string& stage, double fraction, const std::string& detail) {
    if (request.progress) request.progress(stage, fraction, detail);
  };
  tell("scan", 0, "");
  const Json scan = AsWritten(ScanStage(work));
  tell("scan", 1, "");
  std::vector<Tensor> reference_outputs;
  const Json align = AsWritten(AlignStage(
      work,
      [&](double fraction, const std::string& detail) {
        tell("align", std::min(fraction, 0.99), detail);
      },
      &reference_outputs));
  tell("align", 1, "");
  tell("package", 0, "");
  PackageOutcome outcome;
  outcome.file = path;
  outcome.sha256 =
      WritePackage(path, BuildPackage(PartsOf(work, std::move(reference_outputs)), scan, align));
  outcome.aligned = align.at("verdict") == "pass";
  if (align.at("first_bad_layer").is_string())
    outcome.first_bad_layer = align.at("first_bad_layer").get<std::string>();
  outcome.coverage_percent = scan.at("coverage").at("count_percent").get<double>();
  tell("package", 1, "");
  return outcome;
}

}  // namespace whimbrel
