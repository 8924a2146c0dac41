// One member of a group: its queue pair, its buffers, and a program that sends and receives as the
// plan says.
#pragma once

#include <functional>
#include <vector>

#include "controller/publisher.h"
#include "fabric-sim/checked/member_memory.h"
#include "fabric-sim/core/group_program.h"
#include "fabric-sim/core/random.h"
#include "support/recording/sighting.h"

namespace cepheus::sim {

class GroupMember final : public GroupProgram, public CompletionClient {
 public:
  GroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
              const TransportPlan& transport, std::uint64_t seed);

  // Leads the group of these members: all of it, itself among them.
  void lead(std::span<const wire::MrpMember> members);
  // Ends the group that it leads.
  void unregister();
  // It has ended the group, or died.
  bool is_gone() const { return is_dead_ || has_left(); }
  // How its program tells all others of a WRITE without immediate that has completed.
  void set_tell(std::function<void()> tell) { tell_ = std::move(tell); }
  void on_told() { simulator().schedule(now(), *this, kTold); }
  // Somebody died whose messages this member may have waited for.
  void on_death_of_another() { post_turns(); }
  // Of `wanted` packets that are to be jumped over in its turn, those that it may send at once. 0: its
  // PSNs have to be moved on before.
  std::uint64_t room_to_jump(std::uint64_t wanted);
  // As if `source` had sent that many packets and this member had received them. False, and nothing
  // changes: something is under way.
  bool jump(std::size_t source, std::uint64_t packets);
  // All have jumped as far as they should.
  void on_jump() { post_turns(); }
  // Its host is gone, and all that was in it.
  void die();
  // Destroys the queue pair.
  void close();
  // Its part in the group has begun, and has not ended.
  bool takes_part() const { return is_open() && engine().state() == MCAST_GROUP_ACTIVE; }
  bool has_ended() const { return !is_open() || engine().state() == MCAST_GROUP_FAILED; }
  // It has ended, since no answer came to the question whether the group stands.
  bool gave_up() const { return engine().cause() == MCAST_CAUSE_WATCHDOG; }
  // A send has neither completed nor failed, as its queue pair says.
  bool is_waiting() const { return is_open() && waits_for_ > 0; }

  void on_event(Instant now, std::uint64_t what) override;
  void on_completion(Instant now, const rnic::Completion& completion) override;
  void on_arrival(const rnic::Completion& completion) override;

 private:
  enum What : std::uint64_t {
    kStartTurn,
    kLook,  // do sends end, and does the group stand?
    kSynchronise,
    kPublish,
    kTold,
    kFirstReceive
  };  // kFirstReceive + slot: post that receive
  // Work request numbers: receives are slots, sends lie above.
  static constexpr std::uint64_t kFirstSend = 1u << 20;
  static constexpr std::uint64_t kMarker = kFirstSend - 1;  // the last receive of a stopped pair

  mcast::Expected<void> take_step(mrp::PsnSync::Step step, mcast::KeptReceives& kept) override;
  void begin_regions(Instant now, const wire::MrpHeader& header) override;
  bool confirm_regions(Instant now, const wire::MrpHeader& header) override;
  bool are_regions_in_force() const override { return publisher_.is_in_force(); }
  void on_failed() override;
  void on_change(Instant now) override;

  bool has_regions() const { return ledger_.plan().region_bytes > 0; }
  bool publish_due();
  void note_failure();
  void synchronise();
  void synchronise_soon();
  bool is_of_halt(Instant now, const rnic::Completion& completion);
  void post_receive(std::size_t slot);
  void give_receive(std::size_t slot);
  void post_turns();
  void post_send(std::size_t message);
  std::uint64_t packets_of(const MessagePlan& message) const;
  void post_announcement(std::size_t message);
  rnic::SendWr as_write(rnic::SendWr wr, const MessagePlan& message);
  void record(recording::Event event, std::size_t message);
  void on_sent(Instant now, std::size_t message);
  void on_received(Instant now, const rnic::Completion& completion);

  GroupLedger& ledger_;
  const std::size_t index_;
  const TransportPlan& transport_;
  Random random_;
  MemberMemory memory_;
  mrp::Publisher publisher_;
  bool has_moved_ = false;  // its region, to where it stays
  std::function<void()> tell_;
  std::vector<bool> is_under_way_;  // by message: it is posted, and no completion has come
  std::size_t waits_for_ = 0;       // messages under way
  std::size_t next_message_ = 0;    // of the group: the next that may be ours to post
  std::size_t paused_before_ = 0;   // message + 1 before which we have paused already
  mcast_group_state_t seen_ = MCAST_GROUP_WAITING;  // the engine's state
  bool pausing_ = false;
  bool is_dead_ = false;
};

}  // namespace cepheus::sim
