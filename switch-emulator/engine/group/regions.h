// The memory regions that members behind this switch have published in a group, for multicast
// WRITEs (docs/protocol.md, "Multicast WRITE"). Not in the group's table, because groups without
// WRITEs have none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/announcements.h"
#include "switch-emulator/engine/group/write_refusal.h"
#include "wire/extension_headers.h"
#include "wire/publication.h"

namespace cepheus::fabric {

// Fields of one region in a hardware table.
struct Region {
  std::uint64_t virtual_address;
  std::uint64_t length;  // bytes
  std::uint32_t rkey;
  std::uint16_t number;
  PortId port;  // the member's

  // Neither sum can wrap: a region ends within the address space.
  bool holds(std::uint64_t offset, std::uint32_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
};
static_assert(sizeof(Region) == 24);

class Regions {
 public:
  enum class Taken : std::uint8_t { kYes, kAlready, kTooOld };

  // Rules that hold from the making of the group.
  struct Checks {
    bool newest_only;  // an older, late publication is ignored
    bool bounds;       // WRITEs end within their regions and targets
    bool by_place;     // a WRITE goes to the target in its own announcement

    explicit Checks(const net::Rules& rules = {})
        : newest_only(rules.newest_publication),
          bounds(rules.write_bounds),
          by_place(rules.announced_by_psn) {}
  };

  explicit Regions(const Checks& checks = Checks()) : checks_(checks) {}

  // Replaces all regions of the member at `port`; `serial` numbers its publication. Bound of
  // serials: mrp::Publisher::kMostUnconfirmed.
  Taken publish(PortId port, std::uint16_t serial, std::span<const wire::MrpRegion> regions);
  void remove(PortId port);
  // Null if the member there has none of that number.
  const Region* find(PortId port, std::uint32_t number) const;
  // Null also if it does not hold the WRITE.
  const Region* find_for(PortId port, const wire::Reth& write) const;
  std::span<const Region> of(PortId port) const;

  // For WRITEs that name no regions. The announcement to the member of the packet at that place in
  // the turn, null if there is none.
  const Announced* find_announced(PortId port, std::int64_t place) const {
    return checks_.by_place ? announcements_.find(port, place) : announcements_.newest(port);
  }
  Announcements& announcements() { return announcements_; }
  const Announcements& announcements() const { return announcements_; }

  // This switch or the member's NIC has refused a WRITE.
  void note_refusal(const WriteRefusal& refusal);
  const std::optional<WriteRefusal>& last_refusal() const { return refusal_; }
  // The turn's packets behind `first`, which was refused, belong to the same message, or are
  // useless without it. Bound: a refusal is fatal to its source's queue pair. So later packets were
  // already under way, within 2^22 of it (Turn::kMostUnderWay), or `first` is repeated.
  void refuse_from(Psn first) { refused_ = first; }
  void admit(Psn first);
  bool refuses(Psn psn) const { return refused_ && after(psn, *refused_); }
  // Another turn begins.
  void on_turn();

  std::size_t bytes() const;
  std::size_t size() const { return regions_.size(); }
  template <typename IsMember>
  bool is_consistent(IsMember&& is_member) const;

 private:
  struct Serial {
    PortId port;
    std::uint16_t serial;
  };
  std::size_t place_of(PortId port, std::uint32_t number) const;
  std::vector<Serial>::iterator serial_of(PortId port);

  const Checks checks_;
  std::vector<Region> regions_;  // by port, then number
  std::vector<Serial> serials_;  // by port
  Announcements announcements_;
  std::optional<Psn> refused_;  // a WRITE's first packet, of this turn
  std::optional<WriteRefusal> refusal_;
};

template <typename IsMember>
bool Regions::is_consistent(IsMember&& is_member) const {
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const Region& r = regions_[i];
    if (!is_member(r.port) || place_of(r.port, r.number) != i) return false;
  }
  return announcements_.is_consistent(is_member);
}

}  // namespace cepheus::fabric
