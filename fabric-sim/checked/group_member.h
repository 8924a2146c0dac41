// One member of a group: its queue pair, its buffers, and a program that sends and receives
// according to the plan.
#pragma once

#include <functional>
#include <vector>

#include "fabric-sim/checked/member_memory.h"
#include "fabric-sim/core/group_program.h"
#include "fabric-sim/core/random.h"
#include "support/recording/sighting.h"

namespace cepheus::sim {

class GroupMember final : public GroupProgram, public CompletionClient {
 public:
  GroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
              const TransportPlan& transport, std::uint64_t seed);

  // Makes it the leader of the group of these members, which include it.
  void lead(std::span<const wire::MrpMember> members);
  // Ends the group that it leads.
  void unregister();
  // It has ended the group, or died.
  bool is_gone() const { return is_dead_ || has_left(); }
  // Called after a WRITE without immediate has completed: its program informs all others.
  void set_announce(std::function<void()> announce) { announce_ = std::move(announce); }
  void on_peer_write() { simulator().schedule(now(), *this, kPeerWrote); }
  // A member has died. This one may have waited for its messages.
  void on_death_of_another() { post_turns(); }
  // The number of packets that it may jump over at once in its turn, at most `wanted`. 0: it has to
  // move its PSNs on first.
  std::uint64_t possible_jump(std::uint64_t wanted);
  // As if `source` had sent that many packets and this member had received them. False, with no
  // change, if a packet is under way.
  bool jump(std::size_t source, std::uint64_t packets);
  // All members have jumped over all the packets.
  void on_jump() { post_turns(); }
  // Its host is gone, with all its state.
  void die();
  // Destroys the queue pair.
  void close();
  std::uint32_t path_mtu() const { return group().work().path_mtu(); }
  // Whether its part in the group has begun and has not ended.
  bool takes_part() const { return is_open() && group().state() == MCAST_GROUP_ACTIVE; }
  bool has_ended() const { return !is_open() || group().state() == MCAST_GROUP_FAILED; }
  // Whether it has ended because its question about the group got no answer.
  bool gave_up() const { return group().cause() == MCAST_CAUSE_WATCHDOG; }
  // Whether a send is open, neither completed nor failed, according to its queue pair.
  bool is_waiting() const { return is_open() && waits_for_ > 0; }

  void on_event(Instant now, std::uint64_t what) override;
  void on_completion(Instant now, const rnic::Completion& completion) override;
  void on_arrival(const rnic::Completion& completion) override;

 private:
  enum What : std::uint64_t {
    kStartTurn,
    kLook,  // whether sends complete, and whether the group still exists
    kSynchronise,
    kPublish,
    kPeerWrote,
    kFirstReceive
  };  // kFirstReceive + slot: post that receive
  // Work request numbers: receives are slots, sends have larger numbers.
  static constexpr std::uint64_t kFirstSend = 1u << 20;
  static constexpr std::uint64_t kMarker = kFirstSend - 1;  // the last receive of a stopped pair

  void take_step(mcast::PairSync::Step step) override;
  void post_kept() override;
  void on_change(Instant now) override;

  bool has_regions() const { return ledger_.plan().region_bytes > 0; }
  bool publish_due();
  void note_failure();
  void synchronise();
  void synchronise_soon();
  bool may_send(std::uint64_t packets);
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
  bool has_moved_ = false;  // its region, to the final address
  std::function<void()> announce_;
  std::vector<bool> is_under_way_;  // by message: posted, without a completion yet
  std::size_t waits_for_ = 0;       // messages under way
  std::size_t next_message_ = 0;    // of the group: the next one that may be this member's to post
  std::size_t paused_before_ = 0;   // message + 1 before which it has paused already
  mcast_group_state_t seen_ = MCAST_GROUP_WAITING;  // the engine's state
  bool pausing_ = false;
  bool is_dead_ = false;
};

}  // namespace cepheus::sim
