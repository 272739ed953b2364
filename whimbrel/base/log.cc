// A bounded queue and one writer thread; lines are formatted by spdlog.

#include "whimbrel/base/log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include <spdlog/pattern_formatter.h>

#include "whimbrel/base/error.h"

namespace whimbrel {
namespace {

using namespace std::chrono_literals;

// The writer sleeps this long after the line that woke it: a burst pays for one wake-up, and 50 wake-ups a
// second stay out of the P99 of any model.
constexpr auto kGather = 20ms;
// A reader of our pipe that stalls longer than this costs lines, not time.
constexpr auto kStall = 100ms;
// FlushLog gives up after this: a flush must not hang a program that ends.
constexpr auto kFlushLimit = 5s;
// Bytes that a pipe which polls as writable takes without blocking (PIPE_BUF).
constexpr size_t kPipeBytes = 4096;

std::atomic<LogLevel> level_now{LogLevel::kWarn};
std::atomic<uint64_t> dropped{0};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// Where lines go. Used by the writer thread only, after construction.
class Sink {
 public:
  explicit Sink(const std::string& file) {
    if (file.empty()) return;
    // O_NONBLOCK: a pipe that nobody reads is an error now, not a hang.
    fd_ = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd_ < 0) {
      throw Error(
          Code::kInvalidArgument,
          "cannot write the log file " + file + ": " + std::generic_category().message(errno),
          "choose another --log-file");
    }
  }
  ~Sink() {
    if (fd_ != STDERR_FILENO) close(fd_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // False: the line did not get out whole.
  bool Write(std::string_view line) {
    if (torn_) {  // the last line broke off; do not let this one continue it
      if (WriteSome("\n") != 1) return false;
      torn_ = false;
    }
    size_t done = 0;
    while (done < line.size()) {
      const ssize_t written = WriteSome(line.substr(done, kPipeBytes));
      if (written <= 0) {
        torn_ = done > 0;
        return false;
      }
      done += static_cast<size_t>(written);
    }
    return true;
  }

 private:
  ssize_t WriteSome(std::string_view part) {
    pollfd ready{fd_, POLLOUT, 0};
    const auto wait = stalled_ ? 0ms : std::chrono::milliseconds(kStall);
    int polled = 0;
    do {
      polled = poll(&ready, 1, static_cast<int>(wait.count()));
    } while (polled < 0 && errno == EINTR);
    stalled_ = polled == 0;
    if (polled <= 0) return -1;
    ssize_t written = 0;
    do {
      written = write(fd_, part.data(), part.size());
    } while (written < 0 && errno == EINTR);
    return written;
  }

  int fd_ = STDERR_FILENO;
  bool stalled_ = false;  // wait no further until the reader moves
  bool torn_ = false;
};

class Log {
 public:
  // Never destroyed: threads may log while the program ends. atexit drains it.
  static Log& Get() {
    static Log& log = *new Log;
    return log;
  }

  void Configure(const LogConfig& config) {
    auto sink = std::make_shared<Sink>(config.file);  // throws before anything changes
    Flush();
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    queue_limit_ = std::max<size_t>(1, config.queue_lines);
    level_now.store(config.level, std::memory_order_relaxed);
  }

  void Push(LogLevel level, std::string_view text) {
    Line line{level, std::chrono::system_clock::now(), spdlog::details::os::thread_id(),
              std::string(text)};
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) {
        dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      if (!writer_.joinable()) StartWriter();
      wake = queue_.empty();
      queue_.push_back(std::move(line));
      ++accepted_;
      if (queue_.size() > queue_limit_) {
        queue_.pop_front();
        ++finished_;
        dropped.fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (wake) wake_.notify_one();
  }

  void Flush() {
    std::unique_lock lock(mutex_);
    const uint64_t goal = accepted_;
    if (finished_ >= goal) return;
    hurry_ = true;
    wake_.notify_one();
    finished_changed_.wait_for(lock, kFlushLimit, [&] { return finished_ >= goal; });
  }

 private:
  struct Line {
    LogLevel level;
    std::chrono::system_clock::time_point time;
    size_t thread;
    std::string text;
  };

  Log() = default;

  void StartWriter() {
    writer_ = std::thread([this] { Run(); });
    std::atexit([] { Get().Stop(); });
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      hurry_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }

  // Blocks every signal on the writer: handlers run on the program's own threads, and a closed
  // pipe answers EPIPE instead of ending the process.
  static void BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

  // A busy machine runs compute before log lines: at normal priority the writer's turns stood in the
  // P99 of a 66 us model. 0 means the calling thread.
  static void YieldToCompute() { setpriority(PRIO_PROCESS, 0, 19); }

  void Run() noexcept {
    BlockSignals();
    YieldToCompute();
    std::deque<Line> lines;  // kept between rounds: an empty deque still allocates
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return !queue_.empty() || stopped_; });
      if (queue_.empty()) return;
      wake_.wait_for(lock, kGather, [&] { return hurry_; });
      hurry_ = stopped_;
      lines.swap(queue_);
      const std::shared_ptr<Sink> sink = sink_;
      lock.unlock();
      for (const Line& line : lines) Write(line, *sink);
      const size_t count = lines.size();
      lines.clear();
      lock.lock();
      finished_ += count;
      finished_changed_.notify_all();
    }
  }

  // Runs on the writer thread.
  void Write(const Line& line, Sink& sink) {
    bool written = false;
    try {
      std::string text;
      for (const char c : line.text) {  // one call, one line
        if (c == '\n') {
          text += "\\n";
        } else if (c == '\r') {
          text += "\\r";
        } else {
          text += c;
        }
      }
      spdlog::details::log_msg message(line.time, {}, "", SpdlogLevel(line.level), text);
      message.thread_id = line.thread;
      spdlog::memory_buf_t formatted;
      formatter_.format(message, formatted);
      written = sink.Write({formatted.data(), formatted.size()});
    } catch (...) {
      written = false;  // no memory: the line is lost and counted
    }
    if (!written) dropped.fetch_add(1, std::memory_order_relaxed);
  }

  spdlog::pattern_formatter formatter_{"%Y-%m-%dT%H:%M:%S.%e%z %-5l [%t] %v"};  // writer thread
  std::mutex mutex_;
  std::condition_variable wake_;                             // with mutex_
  std::condition_variable finished_changed_;                 // with mutex_
  std::deque<Line> queue_;                                   // guarded by mutex_
  size_t queue_limit_ = LogConfig{}.queue_lines;             // guarded by mutex_
  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>("");  // guarded by mutex_
  uint64_t accepted_ = 0;                                    // guarded by mutex_
  uint64_t finished_ = 0;  // written or dropped; guarded by mutex_
  bool hurry_ = false;     // guarded by mutex_
  bool stopped_ = false;   // guarded by mutex_
  std::thread writer_;     // started under mutex_, joined by Stop
};

}  // namespace

void ConfigureLog(const LogConfig& config) {
  Log::Get().Configure(config);
}

LogLevel ParseLogLevel(std::string_view word) {
  constexpr std::string_view kWords[] = {"trace", "debug", "info", "warn", "error", "off"};
  for (size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i] == word) return static_cast<LogLevel>(i);
  }
  throw Error(Code::kInvalidArgument, "\"" + std::string(word) + "\" is no log level",
              "use trace, debug, info, warn, error or off");
}

bool LogEnabled(LogLevel level) {
  return level >= level_now.load(std::memory_order_relaxed) && level != LogLevel::kOff;
}

void LogLine(LogLevel level, std::string_view line) noexcept {
  if (!LogEnabled(level)) return;
  try {
    Log::Get().Push(level, line);
  } catch (...) {  // no memory or no thread
    dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

uint64_t log_lines_dropped() {
  return dropped.load(std::memory_order_relaxed);
}

void FlushLog() {
  Log::Get().Flush();
}

}  // namespace whimbrel
