// Whether a network interface can serve a box, before the switch opens it: checks with names, for
// the switch's start and for diagnosis.
//
//   roce      a hardware RoCE device takes UDP port 4791 from the interface (Linux, mlx5.rst:
//             "enable_roce"), so that no packet socket sees data
//   mtu       registration fits; groups have smaller packets if the fabric's largest one does not
//   merging   the kernel joins UDP packets (GRO), and a joined frame fits into no slot. Switched off
//             here, if this process may do that
//   queues    a thread that changes its core changes the transmit queue (XPS, scaling.rst), and
//             copies overtake each other
//   dropping  a queue discipline that limits delay drops copies after replication
//
// rdma_rxe is not hardware: the kernel gives its packets to packet sockets as well. Nothing has to
// be set for checksums: frames are sent complete, and those left to hardware are completed on
// arrival (received_frames.h). Reads files and asks the kernel: for occasional use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "wire/result.h"

namespace cepheus::fabric {

struct InterfaceCheck {
  enum class Verdict : std::uint8_t {
    kGood,
    kDoubtful,  // the switch serves, but may lose packets or their order
    kUnusable,  // the switch can't serve
  };
  std::string name;
  Verdict verdict = Verdict::kGood;
  std::string seen;
  std::string todo;  // a command; empty if it is good
  // "interface ens1: ...; ..."
  std::string to_text(const std::string& interface) const;
};

// The machine as these checks see it; tests have others.
struct Machine {
  std::filesystem::path sys = "/sys";
  std::filesystem::path default_qdisc = "/proc/sys/net/core/default_qdisc";
  unsigned cores = 0;   // that the calling thread may run on; 0: the kernel knows
  bool may_set = true;  // offloads; otherwise checks leave the interface as it is
};

// All checks, in the order above, for packets of `largest_frame` bytes from Ethernet header to ICRC.
// An interface that does not exist has no findings: opening it says so.
std::vector<InterfaceCheck> check_interface(const std::string& interface,
                                            std::uint32_t largest_frame,
                                            const Machine& machine = {});

// RoCE devices of this machine, software included: a driver may come while the switch serves.
std::set<std::string> roce_devices(const Machine& machine = {});
// Cores that the calling thread may run on.
unsigned cores_of_thread();
// The largest frame that the interface takes, at most `largest_frame`; that if there is none.
std::uint32_t frame_at(const std::string& interface, std::uint32_t largest_frame);

// The MTU of an interface that the fabric's packets need.
InterfaceCheck check_mtu(const std::string& interface, std::uint32_t mtu,
                         std::uint32_t largest_frame);
// The name of its queue discipline; empty: unknown.
InterfaceCheck check_discipline(const std::string& interface, const std::string& discipline);

}  // namespace cepheus::fabric
