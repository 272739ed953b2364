// Dispatch to a verb, and what happens when it throws.

#include "whimbrel/cli/program.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/error.h"
#include "whimbrel/base/log.h"
#include "whimbrel/base/version.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/cli/help.h"
#include "whimbrel/cli/parse.h"
#include "whimbrel/cli/settings.h"

namespace whimbrel {
namespace {

std::vector<FieldDescription> GlobalFields() {
  GlobalOptions defaults;
  return DescribeFields([&](ConfigVisitor& visitor) { defaults.Visit(visitor); });
}

std::vector<FieldDescription> FieldsOf(const CommandEntry& entry) {
  const std::unique_ptr<Command> command = entry.make();
  return DescribeFields([&](ConfigVisitor& visitor) { command->Visit(visitor); });
}

std::string FileOf(const Settings& settings) {
  const auto found = settings.find("config");
  return found == settings.end() || found->second.values.empty() ? ""
                                                                 : found->second.values.front();
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && S_ISREG(first.st_mode) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// `package model.onnx -o model.onnx` would cost the user the model.
void CheckNothingIsOverwritten(const Settings& settings,
                               const std::vector<FieldDescription>& fields) {
  for (const FieldDescription& field : fields) {
    const auto written = settings.find(field.key);
    if (!field.info.writes || written == settings.end()) continue;
    const std::string& path = written->second.values.front();
    for (const auto& [key, setting] : settings) {
      if (key == field.key) continue;
      for (const std::string& value : setting.values) {
        // FILE, NAME=FILE, or the folder of a model.
        bool same = SameFile(path, value) || SameFile(path, value + "/model.onnx");
        for (size_t at = value.find('='); at != std::string::npos && !same;
             at = value.find('=', at + 1))
          same = SameFile(path, value.substr(at + 1));
        if (!same) continue;
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: {} is the file that {} names: it would be overwritten",
                                written->second.origin, path, setting.origin),
                    "write to another file");
      }
    }
  }
}

// Global fields first, so that the verb's own settings can be told from them.
struct Invocation {
  GlobalOptions global;
  std::unique_ptr<Command> command;
};

Invocation Configure(const CommandEntry& entry, Settings settings,
                     const std::vector<FieldDescription>& globals,
                     const std::vector<FieldDescription>& fields,
                     const std::vector<std::string>& environment) {
  MergeSettings(SettingsFromEnvironment("", globals, environment), settings);
  MergeSettings(SettingsFromEnvironment(entry.info.name, fields, environment), settings);
  if (const std::string file = FileOf(settings); !file.empty()) {
    std::map<std::string, std::vector<FieldDescription>, std::less<>> parts;
    parts[""] = globals;
    for (const CommandEntry* other : Commands())
      parts[std::string(other->info.name)] = FieldsOf(*other);
    MergeSettings(SettingsFromFile(file, entry.info.name, parts), settings);
    MergeSettings(SettingsFromFile(file, "", parts), settings);
  }
  std::vector<FieldDescription> all = fields;
  all.insert(all.end(), globals.begin(), globals.end());
  Invocation invocation{{}, entry.make()};
  ApplySettings(settings, [&](ConfigVisitor& visitor) {
    invocation.global.Visit(visitor);
    invocation.command->Visit(visitor);
  });
  CheckNothingIsOverwritten(settings, all);
  return invocation;
}

int RunVerb(const CommandEntry& entry, const std::vector<std::string>& words,
            const std::vector<std::string>& environment, bool* json) {
  const std::vector<FieldDescription> globals = GlobalFields();
  const std::vector<FieldDescription> fields = FieldsOf(entry);
  std::vector<FieldDescription> all = fields;
  all.insert(all.end(), globals.begin(), globals.end());
  ParsedWords parsed = ParseWords(entry.info.name, all, words);
  if (parsed.help) {
    Output out{GlobalOptions{}};
    out.Text(CommandHelp(entry.info, fields, globals));
    out.Flush();
    return 0;
  }
  const Invocation invocation =
      Configure(entry, std::move(parsed.settings), globals, fields, environment);
  *json = invocation.global.json;
  LogConfig log;
  log.level = ParseLogLevel(invocation.global.log_level);
  log.file = invocation.global.log_file;
  ConfigureLog(log);
  Output out(invocation.global);
  const int code = invocation.command->Run(out);
  out.Flush();
  return code;
}

int PrintText(const std::string& text) {
  Output out{GlobalOptions{}};
  out.Text(text);
  out.Flush();
  return 0;
}

[[noreturn]] void FailUnknownVerb(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandEntry* entry : Commands()) names.emplace_back(entry->info.name);
  if (word.starts_with('-')) {
    std::string hint = DidYouMean(word, {"--help", "--version"});
    throw Error(
        Code::kInvalidArgument, fmt::format("the verb comes first, not {}", word),
        hint.empty() ? "write: whimbrel VERB [flags]; 'whimbrel --help' lists the verbs" : hint);
  }
  std::string hint = DidYouMean(word, names);
  throw Error(Code::kInvalidArgument, fmt::format("unknown verb '{}'", word),
              hint.empty() ? fmt::format("verbs: {}", fmt::join(names, ", ")) : hint);
}

// Code, message and hint of the exception in flight.
Error CurrentError() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error(Code::kOutOfMemory, "out of memory: the system gave no more",
                 "close other programs, or use smaller shapes (--shape) or batches");
  } catch (const std::exception& e) {
    return Error(Code::kInternal, e.what(),
                 "this is a defect of whimbrel; please report it with the command that led here");
  } catch (...) {
    return Error(Code::kInternal, "an exception of unknown type",
                 "this is a defect of whimbrel; please report it");
  }
}

}  // namespace

void PrepareStandardStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is fd: those below it are open by now.
    const int opened = open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != fd) close(opened);
  }
}

int RunProgram(const std::vector<std::string>& words, const std::vector<std::string>& environment,
               bool* json) {
  *json = std::ranges::find(words, "--json") != words.end();
  if (words.empty()) {
    std::fputs(ProgramHelp().c_str(), stderr);
    throw Error(Code::kInvalidArgument, "no verb given", "write: whimbrel VERB [flags]");
  }
  const std::string& first = words.front();
  if (first == "--version" || first == "-V")
    return PrintText(fmt::format("whimbrel {}\n", kVersion));
  const bool help = first == "--help" || first == "-h" || first == "help";
  if (help && (words.size() == 1 || words[1].starts_with('-'))) return PrintText(ProgramHelp());
  const std::string& verb = help ? words[1] : first;
  const CommandEntry* entry = FindCommand(verb);
  if (!entry) FailUnknownVerb(verb);
  if (help) return RunVerb(*entry, {"--help"}, environment, json);
  return RunVerb(*entry, {words.begin() + 1, words.end()}, environment, json);
}

int ReportCurrentException(bool json) noexcept {
  try {
    const Error error = CurrentError();
    const CodeInfo& info = Describe(error.code());
    FlushLog();
    std::fprintf(stderr, "whimbrel: error: %s\n", Printable(error.what()).c_str());
    if (!error.hint().empty())
      std::fprintf(stderr, "  hint: %s\n", Printable(error.hint()).c_str());
    if (json) {
      const Json answer = {
          {"error", {{"code", info.name}, {"message", error.what()}, {"hint", error.hint()}}}};
      const std::string text = DumpJson(answer);
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
    return info.exit_code;
  } catch (...) {
    std::fputs("whimbrel: error: out of memory while telling of an error\n", stderr);
    return Describe(Code::kOutOfMemory).exit_code;
  }
}

}  // namespace whimbrel
