// Files of /proc and /sys.

#include "whimbrel/migrate/machine.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <malloc.h>

namespace whimbrel {
namespace {

constexpr std::string_view kPeakKey = "VmHWM:";

std::optional<double> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

uint64_t PeakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with(kPeakKey)) continue;
    const size_t digit = line.find_first_of("0123456789");
    uint64_t kib = 0;
    if (digit != std::string::npos)
      std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return 0;
}

bool ResetPeakMemory() {
  malloc_trim(0);
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;  // proc(5): 5 resets the peak resident set size
  return file.good();
}

EnergyMeter::EnergyMeter(const std::string& root) {
  std::error_code ignored;
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename().string();
    // "intel-rapl:0" is a package; "intel-rapl:0:0" a part that it includes.
    if (name.starts_with("intel-rapl:") && std::count(name.begin(), name.end(), ':') == 1)
      folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  if (folders.empty())
    reason_ =
        fmt::format("{} shows no RAPL counters (virtual machine, or no powercap driver)", root);
  for (const std::string& folder : folders) {
    const std::string file = folder + "/energy_uj";
    if (!ReadNumber(file)) {
      reason_ = fmt::format("{} cannot be read: {}", file, std::strerror(errno));
      packages_.clear();
      return;
    }
    packages_.push_back({file, ReadNumber(folder + "/max_energy_range_uj").value_or(0), 0});
  }
}

void EnergyMeter::Start() {
  for (Package& package : packages_) package.start_uj = ReadNumber(package.energy_file).value_or(0);
}

std::optional<double> EnergyMeter::Joules() const {
  if (packages_.empty()) return std::nullopt;
  double joules = 0;
  for (const Package& package : packages_) {
    const auto now = ReadNumber(package.energy_file);
    if (!now) return std::nullopt;
    double used = *now - package.start_uj;
    if (used < 0) used += package.range_uj;
    joules += used * 1e-6;
  }
  return joules;
}

}  // namespace whimbrel
