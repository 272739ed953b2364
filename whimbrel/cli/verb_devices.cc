// devices: what this machine can run on.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/cli/command.h"
#include "whimbrel/device/device.h"

namespace whimbrel {
namespace {

struct DevicesOptions {
  void Visit(ConfigVisitor&) {}
};

int RunDevices(const DevicesOptions&, Output& out) {
  const std::vector<DeviceInfo> devices = ListDevices();
  if (out.json()) {
    Json list = Json::array();
    for (const DeviceInfo& d : devices) {
      list.push_back({{"name", d.name},
                      {"kind", DeviceKindName(d.kind)},
                      {"description", d.description},
                      {"memory_bytes", d.memory_bytes},
                      {"emulated", d.emulated},
                      {"cores", d.cores},
                      {"alignment_bytes", d.alignment_bytes}});
    }
    out.Result(list);
    return 0;
  }
  Table table({"name", "kind", "memory", "cores", "emulated", "description"});
  for (const DeviceInfo& d : devices) {
    table.Row({d.name, std::string(DeviceKindName(d.kind)), FormatBytes(d.memory_bytes),
               std::to_string(d.cores), d.emulated ? "yes" : "no", d.description});
  }
  out.Text(table.ToText());
  return 0;
}

const RegisterCommand<DevicesOptions> kRegistered(
    {.name = "devices",
     .stage = Stage::kTool,
     .summary = "list the devices that --device takes",
     .examples = {"whimbrel devices", "whimbrel devices --json"}},
    RunDevices);

}  // namespace
}  // namespace whimbrel
