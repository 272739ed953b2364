// The table of codes and the error class.

#include "whimbrel/base/error.h"

#include <array>
#include <utility>

namespace whimbrel {
namespace {

constexpr std::array<CodeInfo, 11> kCodes{{
    {Code::kOk, "ok", 0, 200, 0, ""},
    {Code::kInvalidArgument, "invalid_argument", 2, 400, 3, "usage"},
    {Code::kInvalidData, "invalid_data", 3, 400, 3, "bad-input"},
    {Code::kNotFound, "not_found", 3, 404, 5, "bad-input"},
    {Code::kUnsupported, "unsupported", 3, 501, 12, "coverage"},
    {Code::kOutOfMemory, "out_of_memory", 4, 507, 8, "memory"},
    {Code::kResourceExhausted, "resource_exhausted", 4, 503, 8, "limits"},
    {Code::kDeviceError, "device_error", 4, 503, 14, "device"},
    {Code::kAborted, "aborted", 5, 499, 1, "cancelled"},
    {Code::kGateNotMet, "gate_not_met", 1, 412, 9, "gate"},
    {Code::kInternal, "internal", 5, 500, 13, "internal"},
}};

}  // namespace

const CodeInfo& Describe(Code code) { return kCodes.at(static_cast<size_t>(code)); }

Error::Error(Code code, const std::string& what, std::string hint)
    : std::runtime_error(what), code_(code), hint_(std::move(hint)) {}

Error Error::WithContext(std::string_view context) const {
  return Error(code_, std::string(context) + ": " + what(), hint_);
}

void CheckFailed(const char* condition, const char* file, int line) {
  throw Error(Code::kInternal,
              std::string("check failed: ") + condition + " at " + file + ":" +
                  std::to_string(line),
              "this is a defect of whimbrel; please report it with the command that led here");
}

}  // namespace whimbrel
