// The next hop of a host's packets on the link behind an interface, as this machine's kernel would
// send them: the host itself, or the gateway of the route to it (rtnetlink(7), RFC 1122 3.3.1).
//
// The kernel keeps routes and neighbours and handles ARP; this class reads them. The kernel
// resolves only neighbours to which it sends itself, so ask_for() gives it an empty datagram to
// send. No capability is needed. Each call is a few system calls that never wait: for occasional
// use, not for each packet. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::fabric {

class NextHops {
 public:
  struct Hop {
    wire::Ipv4 address;
    bool is_gateway = false;       // otherwise it is the host
    std::optional<wire::Mac> mac;  // none: the kernel does not know it (yet)
    bool is_fresh = false;         // confirmed recently, or permanent
  };

  // Errors: there is no such interface, or it is not Ethernet.
  static wire::Result<std::unique_ptr<NextHops>> open(const std::string& interface);

  // Reads the interface's own MAC address again. False: it is gone, or another interface has its
  // name.
  bool refresh();
  // The interface's own MAC address, as read last.
  const wire::Mac& own_mac() const { return own_mac_; }
  // Errors: the reason why packets to the host do not leave by the interface, and the remedy.
  wire::Result<Hop> find(wire::Ipv4 host);
  // Makes the kernel resolve the hop's MAC address, or confirm it. find() has the result later.
  void request_hop(wire::Ipv4 hop);
  // Whether the kernel would also route packets that arrive by the interface to addresses of
  // `block`. It may miss routes to less than a sixteenth of the block.
  bool forwards(const wire::Ipv4Prefix& block);

 private:
  explicit NextHops(std::string interface) : interface_(std::move(interface)) {}
  unsigned index_now() const;  // 0: there is no interface of that name
  bool is_forwarding();
  bool has_route(wire::Ipv4 destination);

  const std::string interface_;
  unsigned index_ = 0;
  wire::Mac own_mac_;
  UniqueFd netlink_, datagrams_;
};

}  // namespace cepheus::fabric
