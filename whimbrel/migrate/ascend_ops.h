// ascend_ops: what is known of each ONNX op on Ascend 910B, read from the compiled-in tables.

#pragma once

#include <string_view>
#include <vector>

namespace whimbrel {

struct AscendOp {
  std::string_view domain;  // "ai.onnx"
  std::string_view op;
  bool standard = false;
  std::string_view parsed;  // "Y", "Y(doc)", "parser", "N"
  int first_opset = 0;      // 0 = the table does not say
  int last_opset = 0;
  std::string_view ir;       // Ascend IR op, may be empty
  std::string_view ai_core;  // "Y", "composite", "not-AICore" or empty
  std::string_view limits;

  bool taken() const { return parsed != "N"; }
};

// nullptr when neither op nor domain is known.
const AscendOp* FindAscendOp(std::string_view domain, std::string_view op);
bool KnownAscendDomain(std::string_view domain);

// The ops of a standard op's ONNX function body; empty when it has none (or the parser takes the
// op).
const std::vector<std::string_view>& FunctionBody(std::string_view op);

// True when the body, with bodies inside followed, needs only direct ops.
bool BodyIsDirect(std::string_view op);

}  // namespace whimbrel
