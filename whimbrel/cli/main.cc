// The program: words in, exit code out.

#include <string>
#include <vector>

#include "whimbrel/base/threads.h"
#include "whimbrel/cli/program.h"

extern char** environ;

int main(int argc, char** argv) {
  whimbrel::EnsureOpenMpWaitPolicy(argv);
  whimbrel::PrepareStandardStreams();
  bool json = false;
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment.emplace_back(*variable);
    return whimbrel::RunProgram(words, environment, &json);
  } catch (...) {
    return whimbrel::ReportCurrentException(json);
  }
}
