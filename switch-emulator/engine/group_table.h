// All groups of a switch: tables by McstID, tombstones of those that were freed, and their
// deadlines.
//
// An entry belongs to one leader. It has a current table, a pending one that a newer epoch is
// building beside it, or both. Packets do not touch the order of deadlines: an entry that is due is
// looked at again.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "switch-emulator/engine/mft.h"
#include "switch-emulator/engine/roster.h"

namespace cepheus::fabric {

// Identity of a leader process (wire/mrp.h), and where it listens.
struct Leader {
  Ipv4 host;
  std::uint32_t instance = 0;
  std::uint16_t control_port = 0;
  friend bool operator==(const Leader& a, const Leader& b) {
    return a.host == b.host && a.instance == b.instance;
  }
};

// A table and what only its registration needs.
struct GroupInstance {
  GroupInstance(McstId id, std::uint16_t epoch, MakeBehaviour make, const SwitchConfig& config,
                std::size_t route_classes, Ipv4 leaders_host)
      : group(id, epoch, make, config), chosen(route_classes), leader(leaders_host) {}

  Group group;
  std::vector<PortId> chosen;  // port that this group takes per class of routes; empty once active
  Roster roster;
  Ipv4 leader;             // the host whose quota it counts against
  bool loss_ends = false;  // wire::MrpHeader::kLossEnds of its REGISTER
};

struct GroupEntry {
  Leader leader;
  std::unique_ptr<GroupInstance> current;  // active: data flows
  std::unique_ptr<GroupInstance> pending;  // not yet activated
  Instant last_seen;
  std::optional<Instant> orphaned;  // since when the port towards the leader is down
  bool leaderless = false;  // the leader is out: what is in flight may end, then all is freed
  Instant due;              // key in the order of deadlines

  const Group& newest() const { return pending ? pending->group : current->group; }
};

struct Tombstone {
  Leader leader;
  std::uint16_t epoch = 0;
  PortId leader_port;         // none if the leader was gone
  std::vector<PortId> ports;  // where repeats of UNREGISTER are passed on to
  Roster roster;              // who has confirmed it
  bool by_switch = false;     // this switch has ended the group: its leader was gone
};

bool leads_to(const Group& group, PortId port);  // to the leader
// The ports of a group's paths but that towards the leader.
void list_branches(const Group& group, std::vector<PortId>& out);

class GroupTable {
 public:
  GroupTable(const SwitchConfig& config, MakeBehaviour make);

  // Of one group, beside its GroupInstances.
  static constexpr std::size_t kEntryBytes =
      sizeof(GroupEntry) + sizeof(std::pair<const McstId, std::unique_ptr<GroupEntry>>) +
      sizeof(std::pair<Instant, McstId>);

  GroupEntry* find(McstId id);
  Tombstone* find_tombstone(McstId id);

  // Tables, pending ones included; what max_groups bounds.
  std::size_t size() const { return tables_; }
  std::size_t tombstone_count() const { return tombstones_.size(); }
  // ... of which groups led from `host`; what max_groups_per_host bounds.
  std::uint32_t led_by(Ipv4 host) const;
  // How many tables have a path over `port`.
  std::uint32_t groups_over(PortId port) const { return over_port_[port.value()]; }

  GroupEntry& add_entry(McstId id, const Leader& leader, Instant now);
  Group& add_pending(McstId id, GroupEntry& entry, std::uint16_t epoch, std::size_t route_classes);
  PathNo add_path(Group& group, PortId port, bool is_host);
  // Takes a member out of a table.
  void remove_path(Call& call, Group& group, PathNo path);
  // Frees a table. The entry may be left without any.
  void drop(Call& call, std::unique_ptr<GroupInstance>& table);
  // Takes away an entry without tables. No tombstone: nothing of it was ever active.
  void erase(McstId id);
  // Buries an entry: frees its tables and rests the id until now + rest.
  void bury(Call& call, McstId id, std::uint16_t epoch);

  // Deadlines: of ages, and of active groups' timers. `next_due` names an entry whose time has come;
  // the caller ages it, or runs its timer and reschedules it.
  Instant deadline() const;
  std::optional<McstId> next_due(Instant now) const;
  void reschedule(McstId id, GroupEntry& entry);
  // The group has moved its timer, perhaps.
  void note_timer(McstId id, GroupEntry& entry) {
    if (entry.current->group.behaviour->deadline() < entry.due) reschedule(id, entry);
  }
  Instant expires(const GroupEntry& entry) const;
  void expire_tombstones(Instant now);
  void set_orphaned(PortId port, std::optional<Instant> since);
  // The configuration has changed: other ages, another limit. What is there stays.
  void on_settings();

  // Frames that groups hold, all together.
  std::size_t held() const;

  template <typename F>
  void for_each(F&& f) const {
    for (const auto& [id, entry] : entries_) f(id, *entry);
  }
  void check_consistent() const;

 private:
  Instant due(const GroupEntry& entry) const;

  const SwitchConfig& config_;
  const MakeBehaviour make_;
  std::unordered_map<McstId, std::unique_ptr<GroupEntry>> entries_;
  std::set<std::pair<Instant, McstId>> order_;
  std::unordered_map<McstId, Tombstone> tombstones_;
  std::deque<std::pair<Instant, McstId>> burials_;  // all rest equally long: in order of their ends
  std::vector<std::uint32_t> over_port_;
  std::size_t tables_ = 0;
  std::size_t kept_ = 0;  // tables when the limit changed last
  std::unordered_map<Ipv4, std::uint32_t> led_by_;
};

}  // namespace cepheus::fabric
