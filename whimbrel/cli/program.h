// program: the command line from words to exit code.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

// A standard stream that the caller closed would lend its number to the next file opened: closed
// ones are pointed at /dev/null (stdout unwritable, so that results are not lost in silence).
// Writing to a closed pipe becomes an error instead of a signal.
void PrepareStandardStreams();

// Runs `whimbrel words...`; the exit code. Throws whatever the verb throws. `json`: whether --json
// is wanted, as far as it was known when the call ended.
int RunProgram(const std::vector<std::string>& words, const std::vector<std::string>& environment,
               bool* json);

// "whimbrel: error: ..." and the hint on stderr; with `json` also {"error":{code,message,hint}} on
// stdout. Returns the exit code. Call it in a catch block.
int ReportCurrentException(bool json) noexcept;

}  // namespace whimbrel
