// report: a migrated folder as one HTML page that needs nothing else: verdict, charts, tables, how
// to do it again.

#pragma once

#include <string>

#include "whimbrel/base/json.h"

namespace whimbrel {

// `manifest`: what manifest.json holds; stages that are missing are left out of the page. Names
// that come from the model are escaped. No address outside the page is in it.
std::string MakeReport(const Json& manifest);

}  // namespace whimbrel
