#include "switch-emulator/engine/switch.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/check.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/mcrdma/sender_groups.h"
#include "switch-emulator/engine/registration/probes.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "switch-emulator/engine/registration/registration.h"
#include "switch-emulator/engine/registration/shares.h"
#include "switch-emulator/engine/registration/trunks.h"
#include "switch-emulator/engine/routes.h"
#include "switch-emulator/engine/views.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::fabric {

struct Switch::State {
  State(SwitchConfig c, PayloadStore& store, MakeBehaviour make)
      : config(std::move(c)),
        payloads(store),
        counters(config.ports.size()),
        pauses(config.ports.size()),
        sights(config.ports.size()),
        held(config.ports.size()),
        routes(config),
        trunks(config, routes),
        groups(config, make),
        registrar(config, routes, groups),
        probes(config, groups, sights),
        senders(config, routes) {}

  // `port`, `icrc`: of the received frame. Packets of the switch itself have an ICRC.
  Call begin(Instant now, SwitchOutput& out, PortId port = PortId(),
             wire::Icrc icrc = wire::Icrc::kPresent) {
    scratch.reset();
    senders.on_call(now);
    return {config, counters, pauses, scratch, payloads, held, now, out, port, icrc};
  }
  void on_frame(Call& call, const Frame& frame);
  void on_group_packet(Call& call, McstId id, const Frame& frame, const wire::UdpHeaders& outer);
  bool take_by_order(Call& call, const Mft& mft, const wire::RoceHeaders& headers);
  void take_trunks(Call& call);

  SwitchConfig config;
  PayloadStore& payloads;
  Counters counters;
  Pauses pauses;
  PortSights sights;
  HeldFrames held;
  Scratch scratch;
  Routes routes;
  Trunks trunks;
  GroupTable groups;
  Registrar registrar;
  Probes probes;
  SenderGroups senders;
};

namespace {

// kForged: a host's datagram from the registration port, from which only switches send.
enum class Kind { kRegistration, kForged, kOther, kMalformed };

// The kind of frame, as a receiver would see it. The frame's creator states where headers end. If
// engine and codecs disagreed on that, registration might pass unread as payload. Hosts and
// switches send to the registration port of a group; messages to a process come from that port.
// Fills in `headers.udp`, if there is one.
Kind kind_of(const Call& call, bool is_host, const Frame& frame, wire::UdpHeaders& headers) {
  if (headers.ip.protocol != wire::Ipv4Header::kUdp) return Kind::kOther;
  if (frame.header_len < wire::kBthOffset) return Kind::kMalformed;
  const wire::Udp& udp = headers.udp;
  if (!headers.udp.read(frame.header().subspan(wire::kUdpOffset))) return Kind::kMalformed;
  const bool is_roce = udp.destination_port == wire::kRoceUdpPort;
  if (is_host && !is_roce && udp.source_port == call.config.mrp_port) return Kind::kForged;
  if (udp.destination_port == call.config.mrp_port) {
    const bool is_whole =
        frame.header_len == wire::kBthOffset && frame.icrc_state == wire::Icrc::kNone;
    return is_whole ? Kind::kRegistration : Kind::kMalformed;
  }
  return Kind::kOther;
}

}  // namespace

// Classifies a frame by source and destination: for a group, for a group's source (feedback between
// switches), or unicast.
void Switch::State::on_frame(Call& call, const Frame& frame) {
  const auto drop = [&](Counter reason) { call.count(reason); };
  const auto bytes = frame.header();
  wire::UdpHeaders headers;
  if (!headers.ethernet.read(bytes)) return drop(Counter::kDropMalformed);
  if (headers.ethernet.ether_type != wire::Ethernet::kIpv4) return drop(Counter::kDropOther);
  const wire::Ipv4Header& ip = headers.ip;
  if (!headers.ip.read(bytes.subspan(wire::kIpOffset))) return drop(Counter::kDropMalformed);
  const PortConfig& port = call.port(call.ingress());
  const bool is_host = port.kind == PortKind::kHost;
  const Kind kind = kind_of(call, is_host, frame, headers);
  const bool from_group = config.mcst_pool.contains(ip.source);
  if (is_host && ip.source != port.host && config.rules.port_binding) {
    return drop(Counter::kDropSpoofedSource);
  }
  if (kind == Kind::kMalformed) return drop(Counter::kDropMalformed);
  if (kind == Kind::kForged) return drop(Counter::kDropMrpForged);
  if (config.mcst_pool.contains(ip.destination)) {
    if (from_group) return drop(Counter::kDropMalformed);
    if (probes.on_frame(call, frame, headers)) return;
    if (kind != Kind::kRegistration) return on_group_packet(call, ip.destination, frame, headers);
    registrar.on_datagram(call, frame, headers);
    report_share_changes(call, groups);
    if (call.fates == 0) call.count(Counter::kMrpTaken);
  } else if (from_group) {
    return on_group_packet(call, ip.source, frame, headers);
  } else if (ip.destination == config.address && kind == Kind::kRegistration) {
    if (is_host) return drop(Counter::kDropMrpForged);
    trunks.on_datagram(call, frame, headers);
  } else {
    const bool is_taken = kind == Kind::kRegistration ? senders.on_datagram(call, frame, headers)
                                                      : senders.on_packet(call, frame, headers);
    if (!is_taken && !senders.on_passing(call, frame, headers)) routes.forward(call, frame, ip);
  }
}

// Groups learn of trunks that went dark or came back, sender groups also of routes of neighbours.
void Switch::State::take_trunks(Call& call) {
  Trunks::TrunkChange change;
  bool has_change = trunks.take(change);
  if (!trunks.take_withdrawals() && !has_change) return;
  const auto own = Handling::none(call);
  for (; has_change; has_change = trunks.take(change)) {
    groups.set_orphaned(change.port, change.up ? std::nullopt : std::optional(call.now));
    if (change.up) {
      registrar.on_port_up(change.port);
    } else {
      registrar.on_port_down(call, change.port);
    }
  }
  senders.on_routes_changed(call);
}

// Counts the packet for the leader's report, and samples the members' rings. True: the leader has
// ordered its drop. Precondition: call.order.
bool Switch::State::take_by_order(Call& call, const Mft& mft, const wire::RoceHeaders& headers) {
  const wire::OpcodeInfo& info = wire::opcode_info(headers.bth.opcode);
  if (headers.bth.opcode == wire::Opcode::kRcAcknowledge) {
    if (headers.aeth.is_sequence_nak()) call.order->on_nak(call.now);
    if (headers.aeth.kind == wire::AckKind::kRnrNak) call.order->on_rnr_nak();
  }
  if (!info.multicastable() || call.port(call.ingress()).kind != PortKind::kHost) return false;
  for (const Path& path : mft.paths) {
    const PortSight* sight = sights[path.port.value()];
    if (sight != nullptr && path.port != call.ingress()) call.order->note_fill(sight->fill());
  }
  return call.order->takes_data(call.now, call.ingress(), headers.ip.tos, headers.bth.psn,
                                info.last);
}

void Switch::State::on_group_packet(Call& call, McstId id, const Frame& frame,
                                    const wire::UdpHeaders& outer) {
  const auto headers = wire::RoceHeaders::parse(frame, outer);
  if (!headers) return call.count(Counter::kDropMalformed);
  if (config.check_icrc && !wire::check_icrc(frame)) return call.count(Counter::kDropCorrupt);
  GroupEntry* const entry = groups.find(id);
  if (entry == nullptr) {
    const bool has_ended = groups.find_tombstone(id) != nullptr;
    return call.count(has_ended ? Counter::kDropTombstone : Counter::kDropUnknownGroup);
  }
  if (!entry->is_active) return call.count(Counter::kDropNotActive);
  Mft& mft = entry->table.mft;
  const PathNo path = mft.find(call.ingress());
  if (path == kNoPath) return call.count(Counter::kDropNotMember);
  const bool is_ack = headers->bth.opcode == wire::Opcode::kRcAcknowledge;
  if (!is_ack || mft.behaviour->is_kept_by_acks()) groups.note_use(call.now, *entry);
  call.order = entry->order.get();
  if (call.order != nullptr && take_by_order(call, mft, *headers)) {
    return call.count(Counter::kDropDataOnRequest);
  }
  // Accepted packets show that the leader only lost its link for a moment. Packets of a link that
  // is down were under way before.
  const bool was_lost = entry->orphaned && path == mft.leader && routes.is_up(call.ingress());
  const auto accepted = [&] { return mft.behaviour->report(call, path, true).packets; };
  const std::uint32_t before = was_lost ? accepted() : 0;
  mft.behaviour->on_packet(call, {frame, *headers, path, entry->leader, entry->table.path_mtu});
  if (const auto port = call.take_too_long()) report_too_long(call, *entry, *port);
  if (const auto failure = mft.behaviour->take_failure(call.now)) {
    report_failure(call, *entry, *failure);
    mft.behaviour->on_failure_sent(call);
  }
  if (was_lost && accepted() != before) {
    entry->orphaned.reset();
    groups.reschedule(id, *entry);
  }
  groups.note_timer(id, *entry);
  if (mft.behaviour->take_window_change()) {
    const auto own = Handling::none(call);
    report_path_change(call, groups, *entry);
  }
  report_share_changes(call, groups);
}

Switch::Switch(SwitchConfig config, PayloadStore& payloads, MakeBehaviour make)
    : state_(std::make_unique<State>(std::move(config), payloads, make)) {}
Switch::~Switch() = default;

void Switch::on_packet(Instant now, PortId port, const Frame& frame, SwitchOutput& out) {
  assert(port.value() < state_->config.ports.size());
  Call call = state_->begin(now, out, port, frame.icrc_state);
  call.count(Counter::kRxPackets);
  state_->counters.add(port, Counter::kRxBytes, frame.size());
  state_->groups.expire_tombstones(now);
  state_->trunks.on_frame(port);
  state_->on_frame(call, frame);
  state_->take_trunks(call);
}

void Switch::on_timer(Instant now, SwitchOutput& out) {
  Call call = state_->begin(now, out);
  GroupTable& groups = state_->groups;
  state_->registrar.on_timer(call);
  state_->senders.on_timer(call);
  state_->trunks.on_timer(call);
  state_->take_trunks(call);
  groups.expire_tombstones(now);
  while (const auto id = groups.next_due(now)) {
    GroupEntry& entry = *groups.find(*id);
    if (groups.expires(entry) <= now) {
      state_->registrar.age(call, *id);
      continue;
    }
    if (entry.is_active && entry.table.mft.behaviour->deadline() <= now) {
      call.order = entry.order.get();
      entry.table.mft.behaviour->on_timer(call);
      if (const auto port = call.take_too_long()) report_too_long(call, entry, *port);
      call.order = nullptr;
      assert(entry.table.mft.behaviour->deadline() > now);
    }
    groups.reschedule(*id, entry);
  }
  report_share_changes(call, groups);
}

Instant Switch::deadline() const {
  return std::min({state_->groups.deadline(), state_->registrar.deadline(),
                   state_->trunks.deadline(), state_->senders.deadline()});
}

void Switch::on_port_up(Instant now, PortId port, SwitchOutput& out) {
  Call call = state_->begin(now, out);
  if (state_->config.ports[port.value()].kind == PortKind::kSwitch) {
    state_->trunks.on_port(call, port, true);
    return state_->take_trunks(call);
  }
  // A new program may begin behind a host's port. A leader that only lost its link is known by its
  // next packet.
  state_->routes.set_up(port, true);
  state_->registrar.on_port_up(port);
  state_->senders.on_port_up(now, port);
}

void Switch::on_port_down(Instant now, PortId port, SwitchOutput& out) {
  Call call = state_->begin(now, out);
  if (state_->config.ports[port.value()].kind == PortKind::kSwitch) {
    state_->trunks.on_port(call, port, false);
    return state_->take_trunks(call);
  }
  if (!state_->routes.is_up(port)) return;
  state_->routes.set_up(port, false);
  state_->groups.set_orphaned(port, now);
  state_->registrar.on_port_down(call, port);
  state_->senders.on_port_down(call, port);
}

void Switch::watch(PortId port, const net::PauseState& state) {
  state_->pauses[port.value()] = &state;
}

void Switch::watch(PortId port, const PortSight& sight) { state_->sights[port.value()] = &sight; }

void Switch::set_mtu(PortId port, std::uint32_t bytes) {
  state_->config.ports[port.value()].mtu = bytes;
}

void Switch::take_settings(const SwitchConfig& next) {
  state_->config.take_settings(next);
  state_->groups.on_settings();
  state_->senders.on_settings();
}

std::optional<McstId> Switch::group_of_data(const Frame& frame) const {
  if (frame.icrc_state == wire::Icrc::kNone || frame.header_len <= wire::kBthOffset) return {};
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  if (!wire::opcode_info(opcode).multicastable()) return {};
  wire::Ipv4Header ip;
  if (!ip.read(frame.header().subspan(wire::kIpOffset))) return {};
  const GroupEntry* const entry = state_->groups.find(ip.destination);
  return entry != nullptr && entry->is_active ? std::optional(ip.destination) : std::nullopt;
}

void Switch::list_copies(McstId group, PortId ingress, std::vector<PortId>& out) const {
  out.clear();
  const GroupEntry* const entry = state_->groups.find(group);
  if (entry == nullptr || !entry->is_active) return;
  entry->table.mft.behaviour->list_copies(ingress, out);
  std::erase_if(out, [this](PortId port) { return !is_up(port); });
}

bool Switch::is_up(PortId port) const { return state_->routes.is_up(port); }

bool Switch::jump(McstId id, std::uint64_t packets) {
  GroupEntry* const entry = state_->groups.find(id);
  if (entry == nullptr || !entry->is_active) return false;
  return entry->table.mft.behaviour->jump(packets);
}

const SwitchConfig& Switch::config() const { return state_->config; }
const Counters& Switch::counters() const { return state_->counters; }

std::vector<GroupView> Switch::groups() const {
  std::vector<GroupView> views;
  views.reserve(state_->groups.size());
  for (const McstId id : group_ids()) views.push_back(*group(id));
  return views;
}

std::vector<McstId> Switch::group_ids() const {
  std::vector<McstId> ids;
  ids.reserve(state_->groups.size());
  state_->groups.for_each([&](McstId id, const GroupEntry&) { ids.push_back(id); });
  return ids;
}

std::optional<GroupView> Switch::group(McstId id) const {
  const GroupEntry* entry = state_->groups.find(id);
  return entry == nullptr ? std::nullopt
                          : std::optional(view_of(state_->config, state_->groups, *entry));
}

std::vector<SenderGroupView> Switch::sender_groups() const {
  std::vector<SenderGroupView> views;
  state_->senders.table().for_each(
      [&](const SenderGroup& group) { views.push_back(view_of(group)); });
  std::ranges::sort(views, {}, [](const SenderGroupView& v) {
    return std::tuple(v.sender, v.virtual_qpn, v.addressed);
  });
  return views;
}

std::size_t Switch::group_count() const { return state_->groups.size(); }
std::size_t Switch::tombstone_count() const { return state_->groups.tombstone_count(); }

std::size_t TableBytes::sum(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::size_t{0},
                         [](std::size_t all, const auto& row) { return all + row.second; });
}

TableBytes Switch::table_bytes(const TableShape& shape) { return bytes_of(shape); }

std::string Switch::imbalance() const { return state_->counters.imbalance(state_->groups.held()); }

void Switch::check_consistent() const {
  state_->groups.check_consistent();
  must(state_->groups.held() == state_->held.used(), "a held frame is of no gate");
  state_->senders.table().check_consistent();
}

}  // namespace cepheus::fabric
