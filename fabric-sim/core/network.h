// Hosts, switches and cables of one topology, connected on one simulator.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "fabric-sim/core/host.h"
#include "fabric-sim/core/switch_node.h"
#include "net/topology.h"

namespace cepheus::sim {

class Network {
 public:
  // `nics[i]` configures the NIC of topology.hosts[i]; addresses and MACs come from the topology.
  // Precondition: topology.plan() succeeds.
  Network(Simulator& simulator, const net::Topology& topology,
          const std::vector<rnic::NicConfig>& nics);

  Host& host(std::size_t index) { return *hosts_[index]; }
  std::size_t host_count() const { return hosts_.size(); }
  const std::vector<std::unique_ptr<SwitchNode>>& switches() const { return switches_; }
  const std::vector<std::unique_ptr<Cable>>& cables() const { return cables_; }
  const BufferPool& buffers() const { return pool_; }

  // All switches become programs on boxes. Precondition: no link is lossless.
  void run_on_boxes(const BoxManners& manners, std::uint64_t seed);
  const SwitchNode& switch_of(std::size_t host) const { return *host_ports_[host].first; }
  // The switch at the other end of the trunk at this port.
  const SwitchNode& peer_of(const SwitchNode& node, wire::PortId port) const;
  // The port of a host's switch.
  void set_host_port(Instant now, std::size_t host, bool up);
  // Cuts or repairs a trunk of the topology: both ways, or from its first switch to its second
  // only. `noticed`: the switches at both ends see it.
  void set_trunk(Instant now, std::size_t trunk, bool whole, bool one_way, bool noticed);
  using TrunkEnd = std::pair<SwitchNode*, wire::PortId>;
  const std::array<TrunkEnd, 2>& ends_of(std::size_t trunk) const { return trunk_ends_[trunk]; }
  void set_faults(double loss, double duplicate, double reorder, double corrupt);
  std::size_t frames_in_flight() const;
  // Packets of queue pairs only, without registration and HELLOs.
  bool carries_roce() const;
  // Whether engines check themselves after every call, which takes longer than the call.
  void set_checked(bool checked);

 private:
  Cable& add_cable(const std::string& from, const std::string& to_name, const net::LinkConfig& link,
                   FrameSink& to, wire::PortId port);
  // The cable out of a port of switch `at`, with the queue that it needs.
  void connect(std::size_t at, wire::PortId port, Cable& cable);
  void wire_host(const net::Topology& topology, std::size_t at, wire::PortId port,
                 std::size_t host);
  void wire_trunk(const net::Topology& topology, std::size_t at, wire::PortId port,
                  const net::PortEnd& end);

  Simulator& simulator_;
  BufferPool pool_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::pair<SwitchNode*, wire::PortId>> host_ports_;  // by host
  std::vector<std::array<TrunkEnd, 2>> trunk_ends_;               // in the topology's order
  std::vector<std::array<Cable*, 2>> trunk_cables_;               // out of these ends
  std::vector<std::unique_ptr<SwitchNode>> switches_;
  std::vector<net::BufferPlan> buffers_;  // of the switches
  std::vector<std::unique_ptr<Cable>> cables_;
};

}  // namespace cepheus::sim
