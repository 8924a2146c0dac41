// The checks: cores, each interface of the topology once (interface_check.h), and for a one-armed
// box the kernel's routes. The report is usable unless one check finds it unusable. Offloads are
// left as they are. An interface that does not exist is one finding of its own.
#include "switch-emulator/tools/box_check.h"

#include <nlohmann/json.hpp>
#include <set>

#include "switch-emulator/ports/interface_check.h"
#include "switch-emulator/ports/next_hops.h"

namespace cepheus::tools {
namespace {

using fabric::InterfaceCheck;
using enum fabric::InterfaceCheck::Verdict;

const char* text_of(InterfaceCheck::Verdict verdict) {
  if (verdict == kGood) return "good";
  return verdict == kDoubtful ? "doubtful" : "unusable";
}

class Checks {
 public:
  void add(const std::string& interface, const InterfaceCheck& check) {
    checks_.push_back({{"name", check.name},
                       {"interface", interface},
                       {"verdict", text_of(check.verdict)},
                       {"seen", check.seen},
                       {"todo", check.todo}});
    is_usable_ = is_usable_ && check.verdict != kUnusable;
  }
  void add_interface(const std::string& interface, std::uint32_t largest_frame) {
    fabric::Machine machine;
    machine.may_set = false;
    const auto found = fabric::check_interface(interface, largest_frame, machine);
    if (found.empty()) {
      add(interface, {"interface", kUnusable, "there is no such interface",
                      "ip link lists the interfaces; name one of them in the topology"});
    }
    for (const InterfaceCheck& each : found) add(interface, each);
  }
  BoxReport report() const { return {checks_.dump(2), is_usable_}; }

 private:
  nlohmann::json checks_ = nlohmann::json::array();
  bool is_usable_ = true;
};

InterfaceCheck check_cores() {
  const unsigned cores = fabric::cores_of_thread();
  const std::string seen = std::to_string(cores) + (cores == 1 ? " core" : " cores");
  if (cores > 1) return {"cores", kGood, seen, ""};
  return {"cores", kDoubtful,
          seen + ": the switch's thread shares it with the kernel's work for the interface",
          "give the machine or the service more cores"};
}

// The kernel of a one-armed box must not send groups' packets on.
void check_routing(Checks& checks, const net::Topology& topology) {
  const auto hops = fabric::NextHops::open(topology.one_armed);
  if (!hops) return;  // the interface's own check names the reason
  const std::string block = topology.mcst_pool.to_string();
  if (!(*hops)->forwards(topology.mcst_pool)) {
    checks.add(topology.one_armed, {"routing", kGood, "the kernel does not route " + block, ""});
  } else {
    checks.add(topology.one_armed,
               {"routing", kUnusable, "the kernel routes groups' packets back into the network",
                "ip route add blackhole " + block + ", or sysctl net.ipv4.conf." +
                    topology.one_armed + ".forwarding=0"});
  }
}

}  // namespace

BoxReport check_box(const net::Topology& topology) {
  Checks checks;
  checks.add("", check_cores());
  std::set<std::string> interfaces;
  for (const net::HostSpec& host : topology.hosts) {
    if (!host.interface.empty()) interfaces.insert(host.interface);
  }
  if (!topology.one_armed.empty()) interfaces.insert(topology.one_armed);
  const std::uint32_t largest_frame = net::largest_frame(topology.mtu);
  for (const std::string& each : interfaces) checks.add_interface(each, largest_frame);
  if (!topology.one_armed.empty()) check_routing(checks, topology);
  return checks.report();
}

}  // namespace cepheus::tools
