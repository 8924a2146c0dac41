// A device is Soft-RoCE if sysfs names the interface below it, irdma by Intel's vendor number, and
// otherwise hardware. Emulated NICs do not come here. contradiction() reports one contradiction,
// first that of the link outage, with the value that would be right.
#include "libmcast/nic_timing.h"

#include <filesystem>
#include <system_error>

namespace cepheus::mcast {
namespace {

constexpr std::uint32_t kIntel = 0x8086;

std::string milliseconds(wire::Duration d) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

}  // namespace

NicMake make_of(const std::string& device, std::uint32_t vendor_id, const std::string& sysfs) {
  std::error_code error;
  // Only drivers in software name the interface below them.
  if (std::filesystem::exists(sysfs + "/" + device + "/parent", error)) return NicMake::kSoftRoce;
  return vendor_id == kIntel ? NicMake::kIrdma : NicMake::kHardware;
}

std::string contradiction(const NicTiming& timing, std::optional<wire::Duration> outage,
                          std::optional<wire::Duration> progress_timeout) {
  if (outage && timing.ignores_code()) {
    return "link_outage_ms has no effect: this NIC ignores the time-outs of queue pairs, as irdma "
           "does; leave it out";
  }
  const wire::Duration limit = timing.sender_time_limit(progress_timeout);
  if (progress_timeout && limit > *progress_timeout) {
    return "progress_timeout_ms " + milliseconds(*progress_timeout) + " becomes " +
           milliseconds(limit) + ": the NIC may repeat a packet as late as that; set " +
           milliseconds(limit) + " or more";
  }
  return "";
}

}  // namespace cepheus::mcast
