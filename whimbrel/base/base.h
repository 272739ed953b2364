// base: errors, log, config, threads, memory maps, JSON, hashing and 16-bit number formats; what every other floor stands on.

#pragma once

#include "whimbrel/base/config.h"
#include "whimbrel/base/cpu.h"
#include "whimbrel/base/error.h"
#include "whimbrel/base/file.h"
#include "whimbrel/base/function_ref.h"
#include "whimbrel/base/hash.h"
#include "whimbrel/base/json.h"
#include "whimbrel/base/log.h"
#include "whimbrel/base/number.h"
#include "whimbrel/base/threads.h"
#include "whimbrel/base/version.h"
