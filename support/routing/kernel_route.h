// The kernel's route to an address, as `ip route get` shows it, and the next hop's neighbour entry.
//
// Each call is a few system calls that never wait: for set-up, not for each packet.
#pragma once

#include <optional>
#include <string>

#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::routing {

struct KernelRoute {
  unsigned interface = 0;             // its index
  std::optional<wire::Ipv4> gateway;  // none: the destination is on the interface's own link
  wire::Ipv4 source;                  // the address that the kernel prefers
};

// For packets of the local address `from`, whose rules may differ (ip-rule(8)); unset: of any.
// Error: the kernel's reason.
wire::Result<KernelRoute> find_route(wire::Ipv4 to, wire::Ipv4 from = {});

// "ens1"; "interface 7" if it has gone.
std::string interface_name(unsigned interface);

// As ip(8) writes it: "REACHABLE", "FAILED", ...; "missing": there is no entry.
std::string neighbour_state(unsigned interface, wire::Ipv4 hop);

}  // namespace cepheus::routing
