// migrate: what moving a model takes and proves: scan, align, bench, package, gate and report.

#pragma once

#include "whimbrel/migrate/align.h"
#include "whimbrel/migrate/bench.h"
#include "whimbrel/migrate/gate.h"
#include "whimbrel/migrate/pipeline.h"
#include "whimbrel/migrate/report.h"
#include "whimbrel/migrate/scan.h"
