// Publishes a member's memory regions to its switch, without I/O (docs/protocol.md, "Multicast
// WRITE"): PUBLISH, repeated until the switch confirms it.
//
// Each change is a new publication of all regions, and the newest counts. PUBLISH starts when the
// group is known. A member without regions publishes only to revoke earlier ones.
#pragma once

#include <optional>
#include <vector>

#include "controller/backoff.h"
#include "wire/publication.h"

namespace cepheus::mrp {

class Publisher {
 public:
  // Publications have numbers on a circle of 16 bits, which begin behind `first`.
  explicit Publisher(Pace pace = Repeats().publish, std::uint16_t first = 0)
      : pace_(pace), serial_(first), confirmed_(first) {}

  // Adds a region, or moves the one of that number. False: there are as many as one datagram names.
  bool add(Instant now, const wire::MrpRegion& region);
  // The switch is to serve WRITEs to this member that are announced one by one; then without regions.
  void announce(Instant now);
  // False: there is none of that number.
  bool remove(Instant now, std::uint16_t number);
  const std::vector<wire::MrpRegion>& regions() const { return regions_; }  // by rising number

  // The group is known: any datagram of it, and this member's name.
  void begin(Instant now, const wire::MrpHeader& group, const wire::MrpMember& self);
  // A CONFIRM of this group.
  void on_confirm(Instant now, const wire::MrpHeader& header);
  // All that was changed is in force at the switch. Before begin(): nothing was published.
  bool is_in_force() const { return confirmed_ == serial_ && !is_overtaken_; }
  // The group has ended.
  void end() { repeat_.stop(); }

  Instant deadline() const { return repeat_.deadline(); }
  // The messages that are due; none before deadline().
  std::optional<wire::Publication> take_due(Instant now);

 private:
  // Bound: a switch compares numbers circularly. So fewer than 2^15 numbers may be used while the
  // switch knows only the confirmed one, and while an older datagram is under way. With at most 64
  // a datagram would have to outlive 512 round trips.
  static constexpr std::uint16_t kMostUnconfirmed = 64;

  void change(Instant now);

  Pace pace_;
  std::vector<wire::MrpRegion> regions_;
  bool is_announced_ = false;
  std::optional<wire::MrpHeader> group_;
  wire::MrpMember self_;
  std::uint16_t serial_, confirmed_;
  bool is_overtaken_ = false;  // by a change that gets the number behind `serial_`
  Backoff repeat_;
};

}  // namespace cepheus::mrp
