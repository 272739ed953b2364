// Log: levelled lines to stderr and a file from a bounded queue that never blocks the caller.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace whimbrel {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };

struct LogConfig {
  LogLevel level = LogLevel::kWarn;
  std::string file;               // empty = stderr
  size_t queue_lines = 8192;      // when full, the oldest lines are dropped and counted
};

// May be called again; the earlier queue is drained first.
void ConfigureLog(const LogConfig& config);
LogLevel ParseLogLevel(std::string_view word);  // trace|debug|info|warn|error|off
bool LogEnabled(LogLevel level);

// Hands one line to the writer thread. Never throws, never waits for the disk; a full disk or a
// full queue drops lines and raises log_lines_dropped().
void LogLine(LogLevel level, std::string_view line) noexcept;
uint64_t log_lines_dropped();
void FlushLog();

}  // namespace whimbrel
