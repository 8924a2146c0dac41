// Cepheus's behaviour: one source at a time, whose data is replicated and whose feedback is merged
// (paper III-B, III-D).
//
// This is the state; claim.h, replication.h, feedback.h and refusals.h use it. All PSNs here are
// group PSNs unless a name contains "host".
#pragma once

#include "switch-emulator/engine/group/behaviour.h"
#include "switch-emulator/engine/group/cnp_selector.h"
#include "switch-emulator/engine/group/evidence.h"
#include "switch-emulator/engine/group/feedback_timer.h"
#include "switch-emulator/engine/group/last_acks.h"
#include "switch-emulator/engine/group/loss_window.h"
#include "switch-emulator/engine/group/mft.h"
#include "switch-emulator/engine/group/regions.h"
#include "switch-emulator/engine/group/turn.h"

namespace cepheus::fabric {

class Numbering;

class Group final : public Behaviour {
 public:
  // Rules that are one condition each; all hold but in experiments (net/rules.h).
  struct Conditions {
    explicit Conditions(const net::Rules& rules)
        : answers_old_duplicates(rules.old_duplicate_answer),
          answers_needless_repeats(rules.lost_aggregate_answer),
          counts_stale_feedback(rules.every_drop_counted),
          lagging_is_silence(rules.lagging_is_silence) {}
    bool answers_old_duplicates, answers_needless_repeats;
    bool counts_stale_feedback;
    bool lagging_is_silence;
  };
  struct Stats {
    std::uint64_t data_packets = 0, data_bytes = 0, copies = 0;
  };

  Group(const Mft& mft, const SwitchConfig& config);

  void on_packet(Call& call, const GroupPacket& packet) override;
  void on_timer(Call& call) override;
  std::uint32_t window() const override { return loss_window.packets(); }
  void on_round_trip(PathNo path, Duration most, bool to_all) override {
    feedback_timer->guess(path, most, to_all);
  }
  void on_path_added() override;
  void on_path_removed(Call& call, const Removed& removed) override;
  void on_port_down(PathNo path) override;
  void on_port_up(PathNo path) override;
  std::size_t held() const override { return turn.gate().size(); }
  void release_held(Call& call) override;
  std::uint16_t register_flags() const override;
  Published on_publication(PathNo path, const wire::Publication& publication) override;
  HostReport report(const Call& call, PathNo path, bool is_up) const override;
  bool may_outlive(PathNo path) const override { return path != turn.source(); }
  void show(const SwitchConfig& config, GroupView& view) const override;
  TableBytes bytes() const override;
  void list_copies(PortId ingress, std::vector<PortId>& out) const override;
  bool jump(std::uint64_t packets) override;
  void check_consistent(std::size_t max_held) const override;

  // Checks for overdue feedback, and for a lost last ACK, from now on, if there may be some.
  void arm(const Call& call);
  // Ends the turn, with packets up to the newcomer's first, and begins the newcomer's.
  void begin_turn(const Turn::Newcomer& newcomer);
  Regions& own_regions();  // creates them if there are none
  void note_loss();        // the source is sent a NAK for a lost packet
  using Behaviour::note_window_change;

  const Mft& tree;
  const Numbering& numbering;   // numbering of hosts' PSNs
  const net::WriteMode writes;  // handling of RDMA WRITEs
  const Regions::Checks checks;
  const Conditions conditions;
  const Psn start;  // S
  Turn turn;
  std::uint8_t traffic_class = 0;  // TOS of the turn's data without ECN; feedback has the same
  const std::unique_ptr<CnpSelector> cnps;  // filter of congestion notifications to the source
  Stats stats;
  LossWindow loss_window;
  std::unique_ptr<Regions> regions;  // null: no member here has published any
  std::vector<Evidence> evidence;    // by path
  // Beside the table.
  const std::unique_ptr<FeedbackTimer> feedback_timer;
  const std::unique_ptr<LastAcks> last_acks;
};

}  // namespace cepheus::fabric
