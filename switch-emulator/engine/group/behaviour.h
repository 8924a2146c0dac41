// Handling of a group's packets: one object per group, created when the group is registered.
//
// Registration, ageing, eviction and views call these functions and know no more. Only
// make_behaviour() (switch.h) chooses the class, or refuses the group.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/group_packet.h"
#include "wire/publication.h"

namespace cepheus::fabric {

struct Call;

// A host's entry in a REPORT to the leader.
struct HostReport {
  std::uint8_t flags = 0;     // wire::kMemberDown and so on; 0: nothing
  std::uint32_t packets = 0;  // packets from it, modulo 2^24
};

class Behaviour {
 public:
  virtual ~Behaviour() = default;
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;

  // Takes a RoCE packet of an active group; its ICRC has been checked.
  virtual void on_packet(Call& call, const GroupPacket& packet) = 0;
  // on_timer() is called when deadline() has passed, and moves it. Only active groups have timers.
  Instant deadline() const { return deadline_; }
  virtual void on_timer(Call&) {}

  // Packets that the source should have under way at most, because packets are lost; 0: no limit.
  virtual std::uint32_t window() const { return 0; }
  // True, once, if it has changed since the last call.
  bool take_window_change() { return std::exchange(window_has_changed_, false); }

  // The tree. A path has been added, as the last one.
  virtual void on_path_added() = 0;
  // A path has left, and the last one has its number. The group may have waited for the path that
  // left.
  struct Removed {
    PathNo gone, last;
    PortId port;  // of the path that has left
    const Leader& leader;
  };
  virtual void on_path_removed(Call& call, const Removed& removed) = 0;
  virtual void on_port_down(PathNo path) = 0;
  virtual void on_port_up(PathNo path) = 0;

  // Frames that the group keeps. release_held() drops them all, because the group will be freed.
  virtual std::size_t held() const = 0;
  virtual void release_held(Call& call) = 0;

  // Registration has shown that a round trip over this path takes at most this time. `to_all`: to
  // all members behind it, else to some.
  virtual void on_round_trip(PathNo path, Duration most, bool to_all) = 0;

  // The members behind the paths, if packets depend on them. A record has come by the path; members
  // are placed until the group is active.
  virtual void on_tree(PathNo, const wire::MrpTree&) {}
  // Whether such records have named this number of members behind the path.
  virtual bool has_tree(PathNo, std::size_t) const { return true; }
  // The record for the node behind the path, about all other members; none: it needs none. For a
  // host, once the group is active: about all members.
  virtual std::optional<wire::MrpTree> tree_for(const Call&, PathNo) { return std::nullopt; }
  // All members are placed, and their trees known.
  virtual void on_active(const Call&) {}

  // Registration. Flags of REGISTER that tell the members how the group is served
  // (wire::MrpHeader).
  virtual std::uint16_t register_flags() const = 0;
  // The host at `path` publishes its regions.
  enum class Published : std::uint8_t { kYes, kTooOld, kNotServed };
  virtual Published on_publication(PathNo path, const wire::Publication& publication) = 0;
  // The host at `path` as it should appear in a REPORT; `is_up`: its port is up.
  virtual HostReport report(const Call& call, PathNo path, bool is_up) const = 0;
  // Whether messages in flight can still complete after the host at `path` has left.
  virtual bool may_outlive(PathNo path) const = 0;

  // Whether acknowledgements alone keep the table from ageing.
  virtual bool is_kept_by_acks() const { return true; }
  // The leader sends QUERY: some member waits.
  virtual void on_query(Call&) {}
  // Why the group can't go on, for a REJECT to its leader: none, or none that is due again yet.
  struct Failure {
    struct Member {
      PathNo path = kNoPath;
      std::uint8_t what = 0;  // operation and type (wire::ReductionImm::what)
      std::uint32_t bytes = 0;
    };
    wire::MrpReject reason = wire::MrpReject::kNone;
    std::array<Member, 2> members;  // without a path: none
  };
  virtual std::optional<Failure> take_failure(Instant) { return std::nullopt; }
  // That REJECT has been sent. The NAK that ends a member's connection follows it: if that member is
  // the leader, it knows the reason when its connection fails.
  virtual void on_failure_sent(Call&) {}

  // For administrators: fills in all fields except the tree's.
  virtual void show(const SwitchConfig& config, GroupView& view) const = 0;
  virtual TableBytes bytes() const = 0;
  // Of these, what counts against the switch's memory for reductions. It grows with paths, and stays
  // when one leaves.
  virtual std::size_t reserved() const { return 0; }
  // The same, with one more path.
  virtual std::size_t reserved_for_path() const { return reserved(); }
  // The egress ports of data from `ingress`.
  virtual void list_copies(PortId ingress, std::vector<PortId>& out) const = 0;
  // For simulation (Switch::jump).
  virtual bool jump(std::uint64_t packets) = 0;
  virtual void check_consistent(std::size_t max_held) const = 0;

 protected:
  Behaviour() = default;
  void set_deadline(Instant at) { deadline_ = at; }
  void note_window_change() { window_has_changed_ = true; }

 private:
  bool window_has_changed_ = false;
  Instant deadline_ = wire::kNever;
};

}  // namespace cepheus::fabric
