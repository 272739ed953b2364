// Error: the one exception class, its codes, and the one table that translates a code for every outside world.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace whimbrel {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,  // the call was wrong: flag, shape, name
  kInvalidData,      // the file or message read is damaged or not what it claims
  kNotFound,         // no such file, input, device, op
  kUnsupported,      // understood, but no kernel, type or form for it here
  kOutOfMemory,
  kResourceExhausted,  // a queue, limit or budget is full
  kDeviceError,        // the device or its driver failed
  kAborted,            // cancelled or superseded
  kGateNotMet,         // everything ran; a figure missed its limit
  kInternal,
};

// How one code looks to each outside world. Exit codes: 0 fine, 1 gate not met, 2 wrong use,
// 3 bad input, 4 device trouble, 5 internal. gRPC numbers are those of google.rpc.Code.
struct CodeInfo {
  Code code;
  std::string_view name;  // metric label and JSON field
  int exit_code;
  int http_status;
  int grpc_status;
  std::string_view doctor_topic;
};

const CodeInfo& Describe(Code code);

// Thrown when the operation cannot go on. `what` = what happened, with the numbers.
// `hint` = what the reader can do next; may be empty.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& what, std::string hint = "");
  Code code() const { return code_; }
  const std::string& hint() const { return hint_; }
  // Same error with `context` put before its message ("node conv_1: ...").
  Error WithContext(std::string_view context) const;

 private:
  Code code_;
  std::string hint_;
};

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace whimbrel

// Guards what no input can reach; failing throws Error{kInternal}.
#define WHIMBREL_CHECK(condition) \
  ((condition) ? (void)0 : ::whimbrel::CheckFailed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define WHIMBREL_DCHECK(condition) ((void)0)
#else
#define WHIMBREL_DCHECK(condition) WHIMBREL_CHECK(condition)
#endif
