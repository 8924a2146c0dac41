// Moves packets through a live fabric: rings -> links -> switches -> links -> rings, on one thread.
//
// A round (poll) takes a batch from every recently active port, delivers frames that links have
// finished, fires the switches' timers and publishes the results. It skips quiet ports: these are
// armed, and their doorbell makes them active again (wake). No clock, no waiting and no sockets
// here.
//
// Links with marks or pauses have the simulator's queues and pause frames (datapath_queues.cc).
// Events on them happen in the order of their times, however late a round comes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "net/egress_queue.h"
#include "net/flow_control.h"
#include "net/topology.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/live/datapath/bulk_run.h"
#include "switch-emulator/live/datapath/due_links.h"
#include "switch-emulator/live/datapath/held_payloads.h"
#include "switch-emulator/live/datapath/host_sight.h"
#include "switch-emulator/live/datapath/host_turn.h"
#include "switch-emulator/live/datapath/last_hop.h"
#include "switch-emulator/live/datapath/packet_recorder.h"
#include "switch-emulator/live/datapath/pcap_tap.h"
#include "switch-emulator/live/datapath/reporting.h"
#include "switch-emulator/live/datapath/transit.h"
#include "switch-emulator/live/datapath/unanswered_account.h"
#include "switch-emulator/ports/one_armed_interface.h"
#include "switch-emulator/ports/switch_port.h"
#include "switch-emulator/ports/wire_port.h"

namespace cepheus::live {

class Datapath final : Transit::Arrivals {
 public:
  // `plan` is the topology's.
  Datapath(const net::Topology& topology, net::Topology::Plan plan);
  Datapath(const Datapath&) = delete;
  Datapath& operator=(const Datapath&) = delete;

  // Captures every port into `directory`, which is created if necessary: <host>.pcap, and
  // <switch>-<neighbour>.pcap for trunks. `warn` is called for captures that end before the
  // datapath.
  wire::Result<void> capture(const std::string& directory,
                             const std::function<void(const std::string&)>& warn);
  void flush_captures();

  // Passes the switches' packets to the recorder until its lease ends; null: to none.
  void record(std::shared_ptr<PacketRecorder> recorder);
  std::size_t switch_count() const { return switches_.size(); }

  std::size_t host_count() const { return hosts_.size(); }
  const fabric::HostIdentity& identity(std::size_t host) const { return hosts_[host].identity; }
  // The host's port if its clients attach over shared memory, else null; if it is behind a network
  // interface, else null.
  fabric::SwitchPort* shared_port(std::size_t host) { return hosts_[host].shared; }
  fabric::WirePort* wire_port(std::size_t host) { return hosts_[host].wire; }
  bool is_behind_one_armed(std::size_t host) const { return hosts_[host].behind != nullptr; }
  const net::PortConfig& port_config(std::size_t host) const {
    const Port& port = ports_[hosts_[host].port];
    return switches_[port.of_switch].engine->config().ports[port.id.value()];
  }
  // The largest frame that the host's network interface takes now, from Ethernet header to ICRC.
  // True: its port took another one before.
  bool set_interface_frame(std::size_t host, std::uint32_t bytes);
  // The interface of all hosts that have no port of their own, else null.
  fabric::OneArmedInterface* one_armed() { return one_armed_.get(); }
  // The network interface that the host is behind; empty: none.
  std::string interface_of(std::size_t host) const;
  // What is known of the host's interface, for those that examine their way (host_sight.h).
  void set_box(std::size_t host, std::uint8_t doubts, std::uint8_t cores) {
    hosts_[host].sight->set_box(doubts, cores);
  }
  const fabric::PayloadPools& pools() const { return pools_; }

  // Trunks come up. Once, before the first poll.
  void start(wire::Instant now);
  // A client has opened the host's port, or must leave (the port is closed here, if it is open).
  void attach(wire::Instant now, std::size_t host);
  void detach(wire::Instant now, std::size_t host);
  // Opens the one-armed interface and attaches the hosts behind it.
  wire::Result<void> open_one_armed(wire::Instant now);
  void close_one_armed(wire::Instant now);
  // Hosts with clients that broke the rules of their rings, each once. The caller detaches them
  // before the next poll().
  std::vector<std::size_t> take_offenders() { return std::exchange(offenders_, {}); }

  // One round; true if it did anything.
  bool poll(wire::Instant now);
  // Whether hosts are sending long messages.
  bool is_amid_bulk(wire::Instant now) const { return bulk_run_.goes_on(now); }
  // When poll() has to run even if no client rings.
  wire::Instant deadline() const;
  // Requests that every active client rings. False if there is work already.
  bool arm();
  // The host's client has rung. False: it has rung repeatedly without a frame, so the caller should
  // ignore its doorbell. Its ring is then looked at from time to time.
  bool wake(std::size_t host);
  // A frame has arrived by the one-armed interface.
  void wake_one_armed() { one_armed_is_active_ = true; }

  // A cable, from one of its ends.
  struct Cable {
    std::string near, far;  // "h1" and "s0"; "leaf0" and "spine0"
    std::string name;       // "h1"; "leaf0-spine0", or "leaf0-spine0#2" for the second between them
    std::uint32_t to_far = 0, to_near = 0;  // links
  };
  // The hosts' cables, in their order, then every trunk from either end.
  std::vector<Cable> cables() const;
  struct LinkState {
    double loss = 0;  // probability per frame
    bool up = true;
  };
  LinkState link_state(std::uint32_t link) const;
  // A trunk that is cut, even one way, is down for the switches at both ends, and they are
  // notified.
  void set_link_state(wire::Instant now, std::uint32_t link, const LinkState& state);

  // Each switch adopts the settings that may change while it runs (SwitchConfig::take_settings).
  void take_settings(const std::vector<net::SwitchSpec>& switches);

  // Pointers to the readings of its switches, links and ports.
  const Reporting& reporting() const { return reporting_; }

 private:
  // A frame that waits before a link; with a buffer's entry if it came by a lossless link.
  struct Waiting {
    Flight flight;
    net::IngressBooks::EntryId entry = net::IngressBooks::kNone;
  };
  using WaitingLine = net::EgressQueue<Waiting>;
  using FlowControl = net::FlowControl<Flight>;
  struct SwitchState {
    std::unique_ptr<fabric::Switch> engine;
    std::unique_ptr<FlowControl> flow;  // null: no link of the fabric has a queue
    std::size_t first_port = 0;         // index in ports_
    wire::Instant deadline = wire::kNever;
  };
  struct Port {  // of a switch
    std::size_t of_switch = 0;
    wire::PortId id;
    net::PortEnd end;
    std::uint32_t in = 0, out = 0;  // links
    bool is_up = true;              // its cable is whole, as its switch was last notified
    Traffic rx, tx;
    LinkSideDrops drops;
    std::unique_ptr<PcapTap> tap;
  };
  struct DirectedLink {
    std::size_t port = 0;  // the port at its far end; for a downlink: the port at its near end
    wire::Bytes backlog_limit = 0;  // uplinks: beyond this backlog the host's ring has to wait
    std::unique_ptr<WaitingLine> waiting;  // with marks, priorities and pauses, else null
    std::size_t from = 0;                  // if so: the port at its near end
  };
  struct Host {
    fabric::HostIdentity identity;
    std::size_t port = 0;  // index in ports_
    std::uint32_t uplink = 0, downlink = 0;
    std::unique_ptr<fabric::AccessPort> client;
    fabric::SwitchPort* shared = nullptr;  // `client` under its own type
    fabric::WirePort* wire = nullptr;
    fabric::OneArmedPort* behind = nullptr;  // if it is behind the one-armed interface
    std::unique_ptr<HostSight> sight;        // of `client`
    std::unique_ptr<LastHop> last_hop;       // null: its downlink is lossy
    wire::Fifo<wire::Frame> left_over;       // of clients that have ended; each has its reference
    bool is_leaving = false;                 // ... and the switch learns of their end after these
    bool is_active = false;                  // is in active_
    bool has_unread = false;                 // is in unread_
    HostTurn turn;
    net::PauseState pause;  // from its switch
  };

  std::vector<Reporting::SwitchSource> report_sources() const;
  QueueReading read_queue(const Port& port) const;

  void notify_if_cut(wire::Instant now, Port& port);
  void name_data_slots(const net::Topology& topology, net::Topology::Plan& plan) const;
  void build_switches(net::Topology::Plan& plan);
  void build_links(const net::Topology& topology);
  void add_host(const net::Topology& topology, std::size_t port);
  void add_client(const net::HostSpec& spec, const net::SwitchConfig& config, Host& host);
  std::uint32_t add_link(const net::LinkConfig& config, Transit::Kind kind, std::size_t port,
                         std::uint32_t mtu);

  bool poll_one_armed(wire::Instant now);
  bool poll_hosts(wire::Instant now);
  bool take_from(Host& host, wire::Instant now);
  void charge_refused(const wire::Frame& frame, const Origin& origin);
  void charge_copies(fabric::SenderNo sender, wire::PortId ingress);
  void note_answer(Host& host, const wire::Frame& frame, const Origin& origin);
  void pace(Host& host, wire::Instant now);
  void set_aside(Host& host);
  bool drain(Host& host, wire::Instant now);
  void leave(Host& host, wire::Instant now);
  bool uplink_is_busy(Host& host, wire::Instant now);
  void reclaim_unread();
  bool land_flights(wire::Instant now);
  void add_queues(const net::Topology& topology);
  void add_flow_control(std::size_t at, net::BufferPlan& plan, std::uint32_t mtu);
  bool run_links(wire::Instant now);
  void arrange_transmission(std::uint32_t link, wire::Instant now);
  void join_queue(Port& port, const wire::Frame& frame, Origin origin, fabric::Space space,
                  wire::Instant now);
  void enqueue(std::uint32_t link, Waiting& item, wire::Instant now);
  void transmit(std::uint32_t link, wire::Instant now);
  void start_transmission(const Flight& flight, wire::Instant now);
  void control(Port& port, const wire::Frame& frame, const Hop& hop, wire::Instant now);
  void run_flow_control(SwitchState& state, wire::Instant now);
  void run_due_flow_control(wire::Instant now);
  void look_again(SwitchState& state, wire::Instant now);
  void send_pause(Port& port, bool pause, wire::Instant now);
  void on_pause(Host& host, const wire::Frame& frame, wire::Instant now);
  void look_at_rings(wire::Instant now);
  void pause_ring(Host& host, bool pause, wire::Instant now);
  void put_in(Port& port, const wire::Frame& frame, Origin origin, wire::Instant now);
  bool fire_timers(wire::Instant now);
  void publish();
  void activate(std::size_t host);
  void offend(std::size_t host);

  // References: the caller keeps those of the frames it passes.
  void arrive(const wire::Frame& frame, const Hop& hop, wire::Instant now) override;
  void hand_over(std::size_t host, const wire::Frame& frame, const Origin& origin,
                 wire::Instant now);
  void note_unread(std::size_t host);
  bool deliver_lossless(std::size_t host, const wire::Frame& frame, fabric::SenderNo sender,
                        wire::Instant now);
  void enter_switch(Port& port, const wire::Frame& frame, const Hop& hop, wire::Instant now);
  void pass_on(Port& port, const wire::Frame& frame, const Hop& hop, wire::Instant now);
  bool icrc_is_good(const Port& port, const wire::Frame& frame, bool is_corrupt) const;
  // `origin`: of the frame that arrived by `ingress`, if any.
  void dispatch(SwitchState& state, wire::Instant now, Origin origin = {},
                wire::PortId ingress = {});
  Origin origin_of(const SwitchState& state, wire::PortId from, Origin origin,
                   wire::PortId ingress) const;
  PacketRecorder::Place place_of(const Port& port) const {
    return {port.of_switch, port.id, port.end.kind == net::PortKind::kHost};
  }
  void leave_switch(Port& port, wire::Frame& frame, Origin origin, wire::Instant now,
                    fabric::Space space = fabric::Space::kIngress);
  void release(const wire::Frame& frame) {
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }

  const bool icrc_always_;
  Reporting reporting_;
  fabric::PayloadPools pools_;
  HeldPayloads held_;
  fabric::FlushList flush_list_;
  std::vector<SwitchState> switches_;
  std::vector<Port> ports_;
  Transit transit_;
  std::vector<DirectedLink> links_;
  std::unique_ptr<fabric::OneArmedInterface> one_armed_;  // mostly null
  bool one_armed_is_active_ = false;                      // it is polled
  std::uint32_t one_armed_idle_rounds_ = 0;
  std::vector<std::size_t> woken_;  // hosts, by poll_one_armed()
  std::vector<Host> hosts_;
  std::unordered_set<wire::Ipv4> neighbours_;  // addresses for which wire ports answer ARP
  std::vector<std::size_t> active_;            // hosts whose rings are polled
  std::vector<std::size_t> unread_;            // hosts with entries on their rx ring
  std::vector<std::size_t> full_;              // hosts whose full rings pause their links
  std::vector<std::size_t> offenders_;
  BulkRun bulk_run_;
  Contention contention_;
  wire::Instant earliest_timer_ = wire::kNever;
  bool has_queues_ = false;
  DueLinks due_links_;                     // links with a queue from which a frame may leave
  wire::Instant flow_due_ = wire::kNever;  // the first deadline of flow control in its switches
  wire::Instant clock_{};                  // time of the last event on links with queues
  fabric::SwitchOutput actions_;
  std::shared_ptr<PacketRecorder> recorder_;  // mostly null
  wire::Instant last_poll_{};
  std::vector<std::uint8_t> private_payload_;
};

}  // namespace cepheus::live
