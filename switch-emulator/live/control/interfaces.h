// The network interfaces of hosts: opened with the fabric, watched by its poller, and opened again
// when they come back.
//
// An interface that can't serve is refused, and doubts about it are reported
// (ports/interface_check.h). Interfaces are checked when they are opened, and again when their MTU
// changes or the machine gets another RoCE device. Once a second each interface is looked for, and
// its MTU becomes its ports': hosts of a deleted one are detached until one of its name exists
// again. All hosts behind a one-armed interface are detached while the kernel would route the
// groups' packets as well. Runs on the datapath's thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "switch-emulator/live/control/poller.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/ports/interface_check.h"

namespace cepheus::live {

class Interfaces {
 public:
  static constexpr wire::Duration kBetweenLooks = std::chrono::seconds(1);
  // A new RoCE device gets its GIDs some time after its name.
  static constexpr int kChecksOfRoce = 5;

  // Both outlive it. `warn` is called with texts for operators.
  Interfaces(Datapath& datapath, Poller& poller, std::function<void(const std::string&)> warn,
             fabric::Machine machine = {})
      : datapath_(datapath),
        poller_(poller),
        warn_(std::move(warn)),
        machine_(std::move(machine)),
        roce_devices_(fabric::roce_devices(machine_)) {}

  // Opens all, or returns the reason why not.
  wire::Result<void> open(wire::Instant now);
  void look(wire::Instant now) {
    if (now >= next_look_) look_again(now);
  }
  // When look() has to run next.
  wire::Instant deadline() const { return next_look_; }

 private:
  void look_again(wire::Instant now);
  void look_at(fabric::WirePort& port, std::size_t host, wire::Instant now);
  void look_at_one_armed(wire::Instant now);
  wire::Result<void> open(fabric::WirePort& port, std::size_t host, wire::Instant now);
  wire::Result<void> open_one_armed(wire::Instant now);
  // ProbeSight::doubts of an interface that can serve.
  wire::Result<std::uint8_t> check(const std::string& interface, std::uint32_t largest_frame);
  void set_doubts_behind_one_armed(std::uint8_t doubts);
  std::uint8_t check_again(const std::string& interface, std::uint32_t largest_frame);
  void check_again(const fabric::WirePort& port, std::size_t host);
  void check_one_armed_again();
  void look_for_roce();
  // True: it has changed.
  bool adopt_mtu(const fabric::WirePort& port, std::size_t host);
  bool adopt_mtu_of_one_armed();
  static bool is_there(const std::string& interface);
  void report(std::size_t who, const wire::Result<void>& opened, const std::string& good);
  template <typename Interface, typename Wake>
  wire::Result<void> watch(Interface& port, Wake wake);

  Datapath& datapath_;
  Poller& poller_;
  const std::function<void(const std::string&)> warn_;
  // Reasons why hosts are not attached; the last: one-armed.
  std::map<std::size_t, std::string> reported_;
  std::set<std::string> doubts_;  // about interfaces, each reported once
  const fabric::Machine machine_;
  std::set<std::string> roce_devices_;
  int checks_left_ = 0;                     // after a change of these
  wire::Instant next_look_ = wire::kNever;  // never: there are no interfaces
};

}  // namespace cepheus::live
