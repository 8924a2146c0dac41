// Every kind of frame that a host may send without end.
#pragma once

#include <memory>

#include "tests/hostile/scenario.h"

namespace cepheus::hostile {

inline constexpr std::size_t kLarge = 4096;  // bytes of a packet
inline constexpr wire::McstId kNoGroup{198, 18, 200, 1};

using Made = std::unique_ptr<Attack>;

// RoCE packets of a connection that does not exist, to a host: SENDs, acknowledgements, CNPs.
Made flood_with_roce(const Scenario& scenario, wire::Ipv4 to, wire::Opcode opcode,
                     std::size_t bytes);
// SENDs in the name of another host.
Made flood_in_anothers_name(const Scenario& scenario);
// Data to a group that does not exist.
Made flood_unknown_group(const Scenario& scenario);
// UDP to a port without a listener; with the registration port: unreadable messages.
Made flood_with_datagrams(const Scenario& scenario, wire::Ipv4 to, std::uint16_t udp_port,
                          std::size_t bytes);
Made flood_with_arp(const Scenario& scenario);
// REGISTERs of always new groups with the victim in them.
Made flood_with_new_groups(const Scenario& scenario);
// One REGISTER, again and again, that names as many members as a datagram holds.
Made flood_with_repeats(const Scenario& scenario);
// One sender group with all other hosts as receivers (sender_floods.cc): INSTALLs that measure, or
// REMOVEs, again and again.
Made flood_with_installs(const Scenario& scenario);
Made flood_with_removes(const Scenario& scenario);
// PROBEs with orders of each kind about a group that is not its own.
Made flood_with_probes(const Scenario& scenario);
// Data to a group without its members' consent; the victim is one of them.
Made flood_own_group(const Scenario& scenario);
// To a reduction group of its own (reduction_floods.cc): contributions, good and bad ones; requests
// for results that it has; one contribution again and again.
Made flood_own_reduction(const Scenario& scenario);
Made request_results_by_nak(const Scenario& scenario);
Made request_results_by_rnr(const Scenario& scenario);
Made repeat_a_contribution(const Scenario& scenario);
// To a reduction group of it and its accomplice, which does the same: contributions as fast as
// results come; and requests for each result.
Made stream_by_a_reduction(const Scenario& scenario);
Made stream_results_twice(const Scenario& scenario);

}  // namespace cepheus::hostile
