// scan_findings: what a reader should know of a model beyond the verdict on each op.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "whimbrel/migrate/scan.h"

namespace whimbrel {

// `imported` as the file says; `bound`: the same with open dims as 1 and infos inferred as far as
// possible.
std::vector<ScanFinding> FindFindings(const Graph& imported, const Graph& bound,
                                      const std::string& model, std::string_view target);

}  // namespace whimbrel
