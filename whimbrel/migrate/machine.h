// machine: what Linux shows of this process and processor: peak memory and energy.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace whimbrel {

// Highest resident memory of this process since its start or the last reset (VmHWM); 0 when not
// shown.
uint64_t PeakMemoryBytes();
// Gives freed memory back, then starts the peak anew at what is resident now. False: the system
// does not allow it.
bool ResetPeakMemory();

// Energy of all processor packages together, from RAPL.
class EnergyMeter {
 public:
  // `root` holds intel-rapl:N folders.
  explicit EnergyMeter(const std::string& root = "/sys/class/powercap");
  // Empty when energy can be read; else why not.
  const std::string& reason() const { return reason_; }
  void Start();
  // Joules since Start; nullopt when not readable. Counters that wrapped once are put right.
  std::optional<double> Joules() const;

 private:
  struct Package {
    std::string energy_file;
    double range_uj = 0;  // counter's largest value
    double start_uj = 0;
  };
  std::vector<Package> packages_;
  std::string reason_;
};

}  // namespace whimbrel
