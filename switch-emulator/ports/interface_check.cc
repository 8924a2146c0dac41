// Each check reads files under /sys, one ioctl or one netlink answer, and works without privilege.
// Only switching merging off needs CAP_NET_ADMIN; without it the check is doubtful. A RoCE device
// also counts if it serves an interface below this one (VLAN, bond, macvlan). What can't be read
// counts as good.
#include "switch-emulator/ports/interface_check.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "switch-emulator/ports/offloads.h"
#include "switch-emulator/ports/unique_fd.h"
#include "wire/mrp.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

using std::filesystem::path;
using Names = std::set<std::string>;
using enum InterfaceCheck::Verdict;

// Empty if it can't be read, as an unused GID's attributes.
std::string line_of(const path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

Names entries_of(const path& directory) {
  Names names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string target_of(const path& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).filename().string();
}

// The interface, and those that its packets pass below it (VLAN, bond, macvlan).
Names with_lower(const path& sys, const std::string& interface) {
  constexpr std::string_view kLower = "lower_";
  Names found{interface};
  for (const std::string& entry : entries_of(sys / "class/net" / interface)) {
    if (entry.starts_with(kLower)) found.merge(with_lower(sys, entry.substr(kLower.size())));
  }
  return found;
}

// Interfaces of a RoCE v2 device; none if it has no GID.
Names served_by(const path& device) {
  Names found;
  for (const std::string& port : entries_of(device / "ports")) {
    const path attributes = device / "ports" / port / "gid_attrs";
    for (const std::string& index : entries_of(attributes / "types")) {
      if (line_of(attributes / "types" / index) != "RoCE v2") continue;
      found.insert(line_of(attributes / "ndevs" / index));
    }
  }
  if (!found.empty()) found.merge(entries_of(device / "device/net"));
  return found;
}

std::string command_without_roce(const std::string& driver, const std::string& bus) {
  const auto set = [&bus](const std::string& mode) {
    return "devlink dev param set pci/" + bus + " name enable_roce value false cmode " + mode;
  };
  if (driver == "mlx5_core") return set("driverinit") + " && devlink dev reload pci/" + bus;
  if (driver == "ice") return set("runtime");
  if (driver == "bnxt_en") return "modprobe -r bnxt_re";
  if (driver == "mlx4_core") return "modprobe -r mlx4_ib";
  if (driver == "qede") return "modprobe -r qedr";
  if (driver == "hns3") return "modprobe -r hns_roce_hw_v2";
  return "unload its RDMA driver, which `rdma dev` and `lsmod` show";
}

InterfaceCheck check_roce(const std::string& interface, const path& sys) {
  const Names ours = with_lower(sys, interface);
  for (const std::string& name : entries_of(sys / "class/infiniband")) {
    const path device = sys / "class/infiniband" / name;
    const std::string driver = target_of(device / "device/driver");
    if (driver.empty()) continue;  // software: rdma_rxe, siw
    const Names served = served_by(device);
    const auto shared = std::ranges::find_if(
        ours, [&served](const std::string& each) { return served.contains(each); });
    if (shared == ours.end()) continue;
    return {"roce", kUnusable,
            "RoCE device " + name + " (driver " + driver + ") takes UDP port 4791 from " + *shared +
                ", so the switch would see no data",
            command_without_roce(driver, target_of(device / "device"))};
  }
  return {"roce", kGood, "no RoCE hardware takes its packets", ""};
}

// Plain GRO joins UDP packets only for sockets that request it; these two join all.
InterfaceCheck check_merging(const std::string& interface, bool may_set) {
  const Offloads offloads(interface);
  std::string joining, off;
  for (const char* name : {"rx-udp-gro-forwarding", "rx-gro-list"}) {
    if (!offloads.is_on("rx-gro") || !offloads.is_on(name)) continue;
    std::string& list = may_set && offloads.set(name, false) ? off : joining;
    list += std::string(list.empty() ? "" : " ") + name;
  }
  if (joining.empty()) {
    return {"merging", kGood, off.empty() ? "no offload joins UDP packets" : "switched off: " + off,
            ""};
  }
  return {"merging", kDoubtful,
          "offloads join UDP packets (" + joining + "), and the switch drops joined ones",
          "ethtool -K " + interface + " gro off"};
}

InterfaceCheck check_queues(const std::string& interface, const Machine& machine) {
  const path queues = machine.sys / "class/net" / interface / "queues";
  unsigned chosen_by_core = 0;
  for (const std::string& queue : entries_of(queues)) {
    if (!queue.starts_with("tx-")) continue;
    const std::string cores = line_of(queues / queue / "xps_cpus");
    chosen_by_core += cores.find_first_not_of("0,") != std::string::npos ? 1 : 0;
  }
  const unsigned cores = machine.cores != 0 ? machine.cores : cores_of_thread();
  if (chosen_by_core < 2 || cores < 2) {
    return {"queues", kGood, "copies leave in their order", ""};
  }
  return {"queues", kDoubtful,
          std::to_string(chosen_by_core) + " transmit queues are chosen by core (XPS), and the " +
              "switch's thread may run on " + std::to_string(cores) +
              ": copies overtake each other when it moves",
          "for q in /sys/class/net/" + interface + "/queues/tx-*/xps_cpus; do echo 0 > $q; done; " +
              "or start the switch on one core: taskset -c CORE cepheus-switch"};
}

// Of the interface, as `ip link` shows it; empty if the kernel does not say.
std::string queue_discipline_of(const std::string& interface) {
  const UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  struct {
    nlmsghdr header{};
    ifinfomsg link{};
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.link.ifi_index = static_cast<int>(if_nametoindex(interface.c_str()));
  alignas(nlmsghdr) std::array<char, 16384> answer;
  if (send(fd.get(), &request, sizeof request, 0) < 0) return "";
  auto left = static_cast<int>(recv(fd.get(), answer.data(), answer.size(), 0));
  auto* const header = reinterpret_cast<nlmsghdr*>(answer.data());
  if (left < 0 || !NLMSG_OK(header, static_cast<unsigned>(left)) ||
      header->nlmsg_type != RTM_NEWLINK) {
    return "";
  }
  left = static_cast<int>(IFLA_PAYLOAD(header));
  auto* const link = static_cast<ifinfomsg*>(NLMSG_DATA(header));
  for (rtattr* each = IFLA_RTA(link); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
    if (each->rta_type == IFLA_QDISC) return static_cast<const char*>(RTA_DATA(each));
  }
  return "";
}

// The queues of "mq" and "mqprio" have the kernel's default.
InterfaceCheck check_dropping(const std::string& interface, const Machine& machine) {
  const std::string root = queue_discipline_of(interface);
  const bool has_default = root == "mq" || root == "mqprio";
  return check_discipline(interface, has_default ? line_of(machine.default_qdisc) : root);
}

std::optional<std::uint32_t> mtu_of(const std::string& interface) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (ioctl(fd.get(), SIOCGIFMTU, &request) != 0) return std::nullopt;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

}  // namespace

unsigned cores_of_thread() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? static_cast<unsigned>(CPU_COUNT(&cores))
                                                         : 1;
}

std::set<std::string> roce_devices(const Machine& machine) {
  return entries_of(machine.sys / "class/infiniband");
}

std::string InterfaceCheck::to_text(const std::string& interface) const {
  return "interface " + interface + ": " + seen + (todo.empty() ? "" : "; " + todo);
}

InterfaceCheck check_mtu(const std::string& interface, std::uint32_t mtu,
                         std::uint32_t largest_frame) {
  const std::uint32_t needed = largest_frame - wire::Ethernet::kSize;
  if (mtu >= needed) return {"mtu", kGood, "an MTU of " + std::to_string(mtu), ""};
  const bool serves = mtu >= wire::MrpMessage::kMaxDatagram + wire::kBthOffset - wire::kIpOffset;
  const std::uint32_t longest = serves ? mtu + wire::Ethernet::kSize - wire::kDataOverhead : 0;
  return {"mtu", serves ? kDoubtful : kUnusable,
          "it has an MTU of " + std::to_string(mtu) + ", and the fabric's packets need " +
              std::to_string(needed) +
              (serves ? ": groups over it have packets of " +
                            std::to_string(wire::path_mtu_within(longest)) + " bytes"
                      : ""),
          "ip link set " + interface + " mtu " + std::to_string(needed) +
              ", or a smaller mtu in the topology's [fabric]"};
}

InterfaceCheck check_discipline(const std::string& interface, const std::string& discipline) {
  const std::string seen = "queue discipline " + (discipline.empty() ? "unknown" : discipline);
  for (const char* by_delay : {"fq_codel", "codel", "cake", "pie", "fq_pie"}) {
    if (discipline != by_delay) continue;
    return {"dropping", kDoubtful, seen + " drops copies that wait for some milliseconds",
            "tc qdisc replace dev " + interface + " root pfifo"};
  }
  return {"dropping", kGood, seen, ""};
}

std::uint32_t frame_at(const std::string& interface, std::uint32_t largest_frame) {
  const auto mtu = mtu_of(interface);
  return mtu ? std::min<std::uint32_t>(*mtu + wire::Ethernet::kSize, largest_frame) : largest_frame;
}

std::vector<InterfaceCheck> check_interface(const std::string& interface,
                                            std::uint32_t largest_frame, const Machine& machine) {
  const auto mtu = mtu_of(interface);
  if (!mtu) return {};
  return {check_roce(interface, machine.sys), check_mtu(interface, *mtu, largest_frame),
          check_merging(interface, machine.may_set), check_queues(interface, machine),
          check_dropping(interface, machine)};
}

}  // namespace cepheus::fabric
