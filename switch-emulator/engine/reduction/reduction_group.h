// Reductions in the switch: every member contributes to each unit, every member gets the result
// (docs/protocol.md, "Reductions").
//
//        children: all other hosts and trunks         parent: the trunk towards the root
//   contributions, partials -> Responder |  slots  | Requester -> partials
//          results <- Requester          |         | Responder <- results
//
// The root is in the middle of the tree (tree_sides.h), wherever the leader is. A switch answers for
// what it stores: no acknowledgement goes from end to end. A unit is complete at a member when its result has come.
//
//   newest_     some child has contributed to all units below
//   complete_   all children have: their sums are the partial results
//   results_    the results are known; results_ <= complete_ <= newest_ <= results_ + W
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "switch-emulator/engine/group/behaviour.h"
#include "switch-emulator/engine/group/evidence.h"
#include "switch-emulator/engine/group/mft.h"
#include "switch-emulator/engine/reduction/requester.h"
#include "switch-emulator/engine/reduction/responder.h"
#include "switch-emulator/engine/reduction/tree_sides.h"
#include "switch-emulator/engine/reduction/unit_slots.h"

namespace cepheus::fabric {

class HopPackets;

class ReductionGroup final : public Behaviour {
 public:
  // A late acknowledgement waits no longer.
  static constexpr Duration kAckWait = std::chrono::milliseconds(1);
  // Unanswered probes or repeats after which a member owes, once the next one is sent.
  static constexpr int kSilent = 2;
  // The leader's QUERY shows that members elsewhere wait: for this number of times between probes.
  static constexpr int kQueried = 3;
  // Repeats come later over a lossless link: it loses only what is damaged.
  static constexpr Duration kLongestSilence = std::chrono::milliseconds(32);
  // REGISTER comes before its list has been read.
  static constexpr std::size_t kFewestPaths = 2;

  // kNone: the group can be served.
  static wire::MrpReject refusal(const GroupRequest& request);
  // Precondition: no refusal.
  ReductionGroup(const Mft& mft, const SwitchConfig& config, const wire::MrpReduction& reduction);

  void on_packet(Call& call, const GroupPacket& packet) override;
  void on_timer(Call& call) override;
  void on_query(Call& call) override;
  std::optional<Failure> take_failure(Instant now) override;
  void on_failure_sent(Call& call) override;
  void on_path_added() override;
  void on_path_removed(Call& call, const Removed& removed) override;
  void on_port_down(PathNo path) override;
  void on_port_up(PathNo path) override;
  std::size_t held() const override { return 0; }
  void release_held(Call&) override {}
  void on_round_trip(PathNo path, Duration most, bool to_all) override;
  void on_tree(PathNo path, const wire::MrpTree& tree) override { sides_.set(path, tree); }
  bool has_tree(PathNo path, std::size_t members) const override;
  std::optional<wire::MrpTree> tree_for(const Call& call, PathNo path) override;
  void on_active(const Call& call) override;
  std::uint16_t register_flags() const override { return 0; }
  Published on_publication(PathNo, const wire::Publication&) override {
    return Published::kNotServed;
  }
  HostReport report(const Call& call, PathNo path, bool is_up) const override;
  bool may_outlive(PathNo) const override { return false; }
  // Devices acknowledge probes long after their group's end.
  bool is_kept_by_acks() const override { return false; }
  void show(const SwitchConfig& config, GroupView& view) const override;
  TableBytes bytes() const override;
  std::size_t reserved() const override { return slots_.bytes(most_paths_); }
  std::size_t reserved_for_path() const override {
    return slots_.bytes(std::max(kFewestPaths, hops_.size() + 1));
  }
  // A contribution has no copies: results are the switch's own frames.
  void list_copies(PortId, std::vector<PortId>&) const override {}
  bool jump(std::uint64_t packets) override;
  void check_consistent(std::size_t max_held) const override;

 private:
  struct Hop {
    Responder in;
    Requester out;
    Evidence evidence;
    Instant probed{};
    Instant slowed_until{};  // of congestion again
    std::uint8_t silent_probes = 0;
  };

  // The path towards the root; kNoPath: the root is here. Of active groups.
  PathNo parent() const { return parent_; }
  std::size_t children() const { return hops_.size() - (parent() == kNoPath ? 0 : 1); }
  void take_unit(Call& call, HopPackets& packets, const GroupPacket& packet,
                 std::span<const std::uint8_t> payload);
  void take_contribution(Call& call, HopPackets& packets, const GroupPacket& packet,
                         const UnitSlots::Content& content);
  void take_result(Call& call, HopPackets& packets, const GroupPacket& packet,
                   const UnitSlots::Content& content);
  void take_answer(Call& call, HopPackets& packets, const GroupPacket& packet);
  void note_life(const Call& call, PathNo path);
  void take_class(const GroupPacket& packet);
  void take_marks(Call& call, HopPackets& packets, const GroupPacket& packet);
  void slow(Call& call, HopPackets& packets, PathNo path);
  bool may_take(Call& call, const GroupPacket& packet, const UnitShape& shape);
  void refuse(const Call& call, HopPackets& packets, const GroupPacket& packet);
  void complete(Call& call, HopPackets& packets);
  void publish(Call& call, HopPackets& packets);
  void send_due(Call& call, HopPackets& packets, PathNo path);
  Duration floor_of(const Call& call, PathNo path) const;
  Instant repeat_due(const Call& call, PathNo path) const;
  void add_again(const GroupPacket& packet, const UnitShape& shape, Unit unit, Instant now);
  void acknowledge(HopPackets& packets, PathNo path);
  void acknowledge_soon(Call& call, HopPackets& packets, const GroupPacket& packet);
  void schedule(Instant at) { set_deadline(std::min(deadline(), at)); }
  // Since when others have waited for the host at `path`; none: they don't.
  std::optional<Instant> late_since(Instant now, PathNo path) const;
  bool is_requested(Instant now) const;
  Instant probe_due(Instant now, PathNo path) const;
  void take_hosts(const Call& call);
  void set_order(const Call& call);
  void fail(const Failure& why);

  const Mft& tree_;
  const Psn start_;
  const Duration probe_wait_;
  UnitSlots slots_;
  std::vector<Hop> hops_;  // by path
  std::size_t most_paths_ = kFewestPaths;
  TreeSides sides_;
  wire::MrpTree members_;  // all, from here; of active groups
  PathNo parent_ = kNoPath;
  Unit newest_ = 0, complete_ = 0, results_ = 0;
  PathNo latest_ = kNoPath;  // completed the newest of the complete units
  Instant ack_due_ = wire::kNever;
  Instant requested_at_{};  // by the leader
  // The same while nobody waits here: the last one, and the first since newest_ has changed.
  Instant queried_{}, queried_first_{};
  std::uint8_t traffic_class_ = 0;  // TOS of the contributions, without marks
  bool has_failed_ = false;         // nothing more is taken
  std::optional<Failure> failure_;  // the leader has to end the group
  Instant failure_again_{};
  PathNo refused_ = kNoPath;  // its NAK follows the REJECT
  struct Stats {
    std::uint64_t contributions = 0, bytes = 0, sent = 0;
  } stats_;
};

}  // namespace cepheus::fabric
