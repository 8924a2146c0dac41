// All groups of a switch: tables by McstID, tombstones of freed ones, and their deadlines.
//
// An entry belongs to one leader, and has one table: pending, then active. Packets do not touch the
// order of deadlines: a due entry is checked again.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/group_order.h"
#include "switch-emulator/engine/group/mft.h"
#include "switch-emulator/engine/registration/roster.h"
#include "wire/share.h"

namespace cepheus::fabric {

// Identity of a leader process (wire/mrp.h), and its address for answers.
struct Leader {
  Ipv4 host;
  std::uint32_t instance = 0;
  std::uint16_t control_port = 0;
  std::uint8_t tos = 0;  // of its datagrams: those to it have the same
  friend bool operator==(const Leader& a, const Leader& b) {
    return a.host == b.host && a.instance == b.instance;
  }
};

// What REGISTER says about a group, in each part of the list.
struct GroupKind {
  bool loss_ends = false;
  std::optional<wire::MrpReduction> reduction;
  friend bool operator==(const GroupKind&, const GroupKind&) = default;
};

// A table, and state that only its registration needs.
struct GroupInstance {
  GroupInstance(McstId id, std::uint16_t epoch, std::size_t route_classes, Ipv4 leaders_host)
      : mft(id, epoch), chosen(route_classes), leader(leaders_host) {}

  Mft mft;
  std::vector<PortId> chosen;  // port that this group uses per class of routes; empty once active
  Roster roster;
  Ipv4 leader;  // the host whose quota it counts against
  GroupKind kind;
  Instant confirmed{};         // when CONNECT's last CONFIRM was sent,
  Instant activated{};         // and when ACTIVATE arrived first
  wire::MrpPath reported;      // as the leader's side knows it (shares.h)
  std::uint16_t path_mtu = 0;  // of the leader's CONNECT
  Instant too_long_again{};    // a REJECT(too long) may be sent from then on
};

struct GroupEntry {
  GroupEntry(const Leader& l, McstId id, std::uint16_t epoch, std::size_t route_classes)
      : leader(l), table(id, epoch, route_classes, l.host) {}

  Leader leader;
  GroupInstance table;
  bool is_active = false;  // data flows
  bool is_in_use = false;  // it had packets lately
  Instant last_seen;
  std::optional<Instant> orphaned;  // since when the port towards the leader has been down
  bool leaderless = false;  // the leader is evicted: messages in flight may end, then all is freed
  Instant due;              // key in the order of deadlines
  std::unique_ptr<GroupOrder> order;  // of the leader's PROBEs; null: none yet
};

struct Tombstone {
  Leader leader;
  std::uint16_t epoch = 0;
  PortId leader_port;         // none if the leader was gone
  std::vector<PortId> ports;  // to which repeats of UNREGISTER are passed on
  Roster roster;              // members that have confirmed it
  bool by_switch = false;     // this switch has ended the group, without its leader
};

bool leads_to(const Mft& mft, PortId port);  // to the leader
// The ports of a group's paths except the leader's.
void list_branches(const Mft& mft, std::vector<PortId>& out);

class GroupTable {
 public:
  GroupTable(const SwitchConfig& config, MakeBehaviour make);

  // Of one group, beside its GroupInstance.
  static constexpr std::size_t kEntryBytes =
      sizeof(GroupEntry) - sizeof(GroupInstance) +
      sizeof(std::pair<const McstId, std::unique_ptr<GroupEntry>>) +
      sizeof(std::pair<Instant, McstId>);

  GroupEntry* find(McstId id);
  Tombstone* find_tombstone(McstId id);

  // Number of tables, including pending ones; max_groups limits it.
  std::size_t size() const { return entries_.size(); }
  std::size_t tombstone_count() const { return tombstones_.size(); }
  // ... of groups led from `host`; max_groups_per_host limits it.
  std::uint32_t led_by(Ipv4 host) const;
  // Number of tables with a path over `port`.
  std::uint32_t groups_over(PortId port) const { return over_port_[port.value()]; }
  // A packet of the group has come. Groups in use share the queues of their ports.
  void note_use(Instant now, GroupEntry& entry) {
    entry.last_seen = now;
    if (!entry.is_in_use) set_in_use(entry, true);
    if (now >= next_look_) look_for_idle_groups(now);
  }
  // Frames of the port's queue that a group may fill, if it is (not) in use; 0: no limit is known.
  std::uint32_t share_of(PortId port, bool is_in_use) const;
  // Limits of a group's ways over the port.
  wire::MrpPath path_over(PortId port, bool is_in_use) const {
    const std::uint16_t mtu =
        config_.rules.least_path_mtu ? config_.ports[port.value()].path_mtu() : std::uint16_t{0};
    return {mtu, share_of(port, is_in_use)};
  }
  // True, once, if shares have changed since the last call.
  bool take_share_changes() { return std::exchange(shares_have_changed_, false); }

  // Refused if this switch does not serve such a group, or has no memory for it.
  tl::expected<GroupEntry*, wire::MrpReject> add(McstId id, const Leader& leader,
                                                 std::uint16_t epoch, std::size_t route_classes,
                                                 GroupRequest request, Instant now);
  // False: the group's units with one more path need more memory than is left.
  bool has_memory_for_path(const GroupInstance& table) const;
  PathNo add_path(GroupInstance& table, PortId port, bool is_host);
  // Takes a member out of a table.
  void remove_path(Call& call, GroupEntry& entry, PathNo path);
  // Frees a group without a tombstone: a newer epoch replaces it, or it was refused.
  void erase(Call& call, McstId id);
  // Frees a group and leaves a tombstone until now + rest.
  void bury(Call& call, McstId id);

  // Deadlines: of ages, and of active groups' timers. `next_due` returns an entry that is due; the
  // caller ages it, or runs its timer and reschedules it.
  Instant deadline() const;
  std::optional<McstId> next_due(Instant now) const;
  void reschedule(McstId id, GroupEntry& entry);
  // The group may have moved its timer.
  void note_timer(McstId id, GroupEntry& entry) {
    if (entry.table.mft.behaviour->deadline() < entry.due) reschedule(id, entry);
  }
  Instant expires(const GroupEntry& entry) const;
  void expire_tombstones(Instant now);
  void set_orphaned(PortId port, std::optional<Instant> since);
  // The configuration has changed: other ages, another limit. Existing entries stay.
  void on_settings();

  // Number of frames that all groups hold.
  std::size_t held() const;

  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [id, entry] : entries_) f(id, *entry);
  }
  void check_consistent() const;

 private:
  std::size_t memory_left(Ipv4 leader) const;
  Instant due(const GroupEntry& entry) const;
  void set_in_use(GroupEntry& entry, bool is_in_use);
  void count_in_use(PortId port, int change);
  void look_for_idle_groups(Instant now);

  const SwitchConfig& config_;
  const MakeBehaviour make_;
  std::unordered_map<McstId, std::unique_ptr<GroupEntry>> entries_;
  std::set<std::pair<Instant, McstId>> order_;
  std::unordered_map<McstId, Tombstone> tombstones_;
  std::deque<std::pair<Instant, McstId>> burials_;  // all rest equally long, so they are in order
  std::vector<std::uint32_t> over_port_;
  std::vector<std::uint32_t> in_use_over_port_;
  bool shares_have_changed_ = false;
  Instant next_look_{};
  std::size_t kept_ = 0;  // number of tables when the limit last changed
  struct Led {
    std::uint32_t groups = 0;
    wire::Share<std::size_t> reserved;  // bytes
  };
  std::unordered_map<Ipv4, Led> led_by_;
  std::size_t reserved_ = 0;  // bytes of all behaviours
};

}  // namespace cepheus::fabric
