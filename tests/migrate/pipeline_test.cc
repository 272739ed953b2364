// Migrate: what is written, what a second run redoes, and what it does with damaged leftovers.

#include "whimbrel/migrate/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/graph/package.h"
#include "whimbrel/graph/session.h"
#include "whimbrel/migrate/manifest.h"

namespace whimbrel {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "whimbrel-migrate-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Model() {
  return std::string(WHIMBREL_TEST_DATA) + "/derived/rnet_extdata/model.onnx";
}

std::vector<std::pair<std::string, Tensor>> Inputs(float value) {
  std::vector<std::pair<std::string, Tensor>> inputs;
  for (const InputShape& shape : CompileGraph(ImportOnnx(Model()), {}).shapes) {
    Tensor tensor = Tensor::Host(DType::kFloat, shape.shape);
    for (float& element : tensor.values<float>()) element = value;
    inputs.emplace_back(shape.name, tensor);
  }
  return inputs;
}

MigrateOptions Options(const Folder& folder) {
  MigrateOptions options;
  options.model = Model();
  options.out = folder.path();
  options.threads = 1;
  options.inputs = Inputs(0.25F);
  options.inputs_text = "all 0.25";
  options.bench_seconds = 0.02;
  return options;
}

std::string Sha(const std::string& path) {
  return Sha256Hex(MappedFile::Open(path)->bytes());
}

std::vector<std::string> Redone(const MigrateResult& result) {
  std::vector<std::string> names;
  for (const StageOutcome& stage : result.stages) {
    if (!stage.reused && stage.name != "gate") names.push_back(stage.name);
  }
  return names;
}

TEST(Migrate, WritesManifestPackageAndReport) {
  const Folder folder;
  const MigrateResult result = Migrate(Options(folder));
  EXPECT_TRUE(result.gate.pass);
  EXPECT_THAT(Redone(result), ElementsAre("scan", "compile", "align", "bench", "package"));
  EXPECT_EQ(result.package, folder / "rnet_extdata.wbl");
  const Json manifest = ParseJson(ReadTextFile(folder / "manifest.json"), "manifest");
  EXPECT_EQ(manifest["verdict"], "pass");
  EXPECT_EQ(manifest["package"]["sha256"], Sha(result.package));
  const PackageContents contents = ReadPackage(result.package, VerifyMode::kFull);
  EXPECT_EQ(contents.probes.size(), 1U);
  const std::string text = DumpJson(*contents.manifest);
  EXPECT_THAT(text, testing::Not(HasSubstr(folder.path())));
  EXPECT_THAT(text, testing::Not(HasSubstr("_ms")));  // nothing measured
  EXPECT_EQ((*contents.manifest)["alignment"]["verdict"], "pass");
  EXPECT_THAT(ReadTextFile(folder / "report.html"), HasSubstr("<canvas id=\"chart-errors\""));
}

TEST(Migrate, ASecondRunRedoesOnlyWhatChanged) {
  const Folder folder;
  const std::string first = Sha(Migrate(Options(folder)).package);
  const MigrateResult same = Migrate(Options(folder));
  EXPECT_THAT(Redone(same), IsEmpty());
  EXPECT_THAT(same.notes, IsEmpty());
  EXPECT_EQ(Sha(same.package), first);

  MigrateOptions longer = Options(folder);
  longer.bench_seconds = 0.03;
  EXPECT_THAT(Redone(Migrate(longer)), ElementsAre("bench"));

  MigrateOptions other = longer;
  other.inputs = Inputs(0.5F);
  EXPECT_THAT(Redone(Migrate(other)), ElementsAre("align", "bench", "package"));
  EXPECT_NE(Sha(same.package), first);

  MigrateOptions again = Options(folder);
  again.restart = true;
  EXPECT_EQ(Redone(Migrate(again)).size(), 5U);
  EXPECT_EQ(Sha(same.package), first);
}

TEST(Migrate, ChangedExternalDataIsAChangedModel) {
  const Folder folder;
  const std::string copy = folder / "model";
  std::filesystem::copy(ParentDirectory(Model()), copy);
  MigrateOptions options = Options(folder);
  options.model = copy;
  options.out = folder / "out";
  const std::string first = Sha(Migrate(options).package);
  EXPECT_THAT(Redone(Migrate(options)), IsEmpty());
  std::string weights = ReadTextFile(copy + "/weights.data");
  weights[100] = static_cast<char>(weights[100] ^ 1);  // a low bit of some weight
  WriteFileAtomic(copy + "/weights.data", std::string_view(weights));
  const MigrateResult changed = Migrate(options);
  EXPECT_EQ(Redone(changed).size(), 5U);
  EXPECT_NE(Sha(changed.package), first);
}

TEST(Migrate, LimitsAreJudgedWithoutMeasuringAgain) {
  const Folder folder;
  MigrateOptions options = Options(folder);
  Migrate(options);
  options.limits.memory_bytes = 1;
  const MigrateResult result = Migrate(options);
  EXPECT_THAT(Redone(result), IsEmpty());
  EXPECT_FALSE(result.gate.pass);
  EXPECT_EQ(ParseJson(ReadTextFile(result.manifest), "manifest")["verdict"], "fail");
  EXPECT_TRUE(FileExists(result.package));
}

TEST(Migrate, DamagedLeftoversAreRedoneWithANote) {
  const Folder folder;
  const MigrateResult first = Migrate(Options(folder));
  const std::string sha = Sha(first.package);

  const std::string manifest = ReadTextFile(first.manifest);
  WriteFileAtomic(first.manifest, std::string_view(manifest).substr(0, manifest.size() / 2));
  const MigrateResult cut = Migrate(Options(folder));
  EXPECT_THAT(cut.notes, Contains(HasSubstr("manifest.json was damaged")));
  EXPECT_EQ(Redone(cut).size(), 5U);

  WriteFileAtomic(first.manifest,
                  std::string_view(R"({"format":1,"stages":{"scan":5,"align":{"key":1}}})"));
  EXPECT_EQ(Redone(Migrate(Options(folder))).size(), 5U);

  std::string package = ReadTextFile(first.package);
  package[package.size() / 2] = static_cast<char>(package[package.size() / 2] ^ 1);
  WriteFileAtomic(first.package, std::string_view(package));
  const MigrateResult flipped = Migrate(Options(folder));
  EXPECT_THAT(flipped.notes, ElementsAre(HasSubstr("was damaged")));
  EXPECT_THAT(Redone(flipped), ElementsAre("package"));

  RemoveFile(first.package);
  RemoveFile(folder / ".whimbrel/reference.bin");
  const MigrateResult gone = Migrate(Options(folder));
  EXPECT_THAT(gone.notes, Contains(HasSubstr("reference runs again")));
  EXPECT_EQ(Sha(gone.package), sha);
}

TEST(Migrate, AnEditedResultIsNotBelieved) {
  const Folder folder;
  const MigrateResult first = Migrate(Options(folder));
  Json manifest = ParseJson(ReadTextFile(first.manifest), "manifest");
  manifest["stages"]["align"]["result"]["verdict"] = "fail";
  WriteFileAtomic(first.manifest, std::string_view(DumpJson(manifest)));
  EXPECT_FALSE(Gate(folder.path(), {}).pass);
  EXPECT_THAT(Redone(Migrate(Options(folder))), ElementsAre("align"));
}

TEST(Migrate, RefusesAFolderThatAnotherOneHolds) {
  const Folder folder;
  const FolderLock lock(folder.path());
  try {
    Migrate(Options(folder));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("in use by another migrate"));
  }
}

TEST(Migrate, RemovesWhatAKilledWriteLeft) {
  const Folder folder;
  WriteFileAtomic(folder / ".whimbrel-1-0.tmp", std::string_view("half"));
  Migrate(Options(folder));
  EXPECT_FALSE(FileExists(folder / ".whimbrel-1-0.tmp"));
}

TEST(Migrate, AFailureStaysReadable) {
  const Folder folder;
  MigrateOptions options = Options(folder);
  options.inputs.clear();
  EXPECT_THROW(Migrate(options), Error);
  const Json manifest = ParseJson(ReadTextFile(folder / "manifest.json"), "manifest");
  EXPECT_EQ(manifest["error"]["stage"], "align");
  EXPECT_EQ(manifest["verdict"], nullptr);
  EXPECT_FALSE(Gate(folder.path(), {}).pass);
}

TEST(MakePackage, WritesTheBytesThatMigrateWrites) {
  const Folder folder;
  const MigrateOptions options = Options(folder);
  const MigrateResult result = Migrate(options);
  PackageRequest request;
  request.model = options.model;
  request.threads = options.threads;
  request.inputs = options.inputs;
  EXPECT_EQ(MakePackage(request, folder / "other.wbl").sha256, Sha(result.package));
}

TEST(MakePackage, IsWrittenWithoutAProbeWhenTheAlignmentFails) {
  const Folder folder;
  MigrateOptions options = Options(folder);
  options.tolerance.rtol = 0;
  options.tolerance.atol = 0;
  const MigrateResult result = Migrate(options);
  EXPECT_FALSE(result.gate.pass);
  EXPECT_THAT(ReadPackage(result.package).probes, IsEmpty());
}

TEST(Gate, SaysWhatIsMissing) {
  const Folder folder;
  EXPECT_THROW(Gate(folder.path(), {}), Error);
  WriteFileAtomic(folder / "manifest.json", std::string_view(R"({"format":1,"stages":{}})"));
  const GateResult result = Gate(folder.path(), {});
  EXPECT_FALSE(result.pass);
  ASSERT_EQ(result.checks.size(), 5U);
  EXPECT_THAT(result.checks[1].detail, HasSubstr("stage align is not in manifest.json"));
  WriteFileAtomic(folder / "manifest.json",
                  std::string_view(R"({"format":1,"stages":{"scan":{"result":{}}}})"));
  EXPECT_THAT([&] { Gate(folder.path(), {}); },
              testing::Throws<Error>(testing::Property(&Error::code, Code::kInvalidData)));
}

TEST(Gate, HoldsFiguresAgainstLimits) {
  const Folder folder;
  const MigrateResult result = Migrate(Options(folder));
  GateLimits limits;
  limits.p99_ms = 1e6;
  limits.memory_bytes = uint64_t{1} << 40;
  EXPECT_TRUE(Gate(folder.path(), limits).pass);
  limits.p99_ms = 1e-9;
  const GateResult slow = Gate(folder.path(), limits);
  EXPECT_FALSE(slow.pass);
  EXPECT_FALSE(slow.checks[3].pass);
  EXPECT_TRUE(slow.checks[4].pass);
  limits = {.coverage_percent = 100, .p99_ms = {}, .memory_bytes = {}};
  EXPECT_TRUE(Gate(folder.path(), limits).pass);
  RemoveFile(result.package);
  EXPECT_THAT(Gate(folder.path(), limits).checks[2].figure, "not readable");
}

}  // namespace
}  // namespace whimbrel
