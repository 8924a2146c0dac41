// One member of a group: its queue pair, its buffers, and a program that sends and receives as the
// plan says.
#pragma once

#include <functional>
#include <vector>

#include "controller/membership.h"
#include "controller/psn_sync.h"
#include "controller/publisher.h"
#include "fabric-sim/checked/group_ledger.h"
#include "fabric-sim/core/host.h"
#include "fabric-sim/core/random.h"
#include "support/recording/sighting.h"

namespace cepheus::sim {

class GroupMember : public Actor, public CompletionClient, public DatagramClient {
 public:
  GroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
              const TransportPlan& transport, std::uint64_t seed);

  wire::MrpMember identity() const {
    return {host_.address(), qpn_, 0, ledger_.plan().control_port(), kToken};
  }
  // This member's host leads the group: it connects without being asked.
  void lead(std::uint32_t instance);
  // Its regions, once the group is being registered.
  void publish_as_leader(std::uint32_t instance);
  // What a leader does when its own sends do not end.
  void set_ask(std::function<void()> ask) { ask_ = std::move(ask); }
  // What a leader does once its own regions are in force; before lead().
  void set_ready(std::function<void()> ready) { ready_ = std::move(ready); }
  // How its program tells all others of a WRITE without immediate that has completed.
  void set_tell(std::function<void()> tell) { tell_ = std::move(tell); }
  void on_told() { simulator_.schedule(simulator_.now(), *this, kTold); }
  bool has_regions() const { return ledger_.plan().region_bytes > 0; }
  // Data may flow. `host_sync`: the queue pair's PSNs have to be moved on.
  void activate(bool host_sync);
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
  void die() { close(); }
  // Destroys the queue pair.
  void close();
  // A send has neither completed nor failed.
  bool is_waiting() const { return open_ && !has_failed_ && outstanding_ > 0; }

  void on_event(Instant now, std::uint64_t what) override;
  void on_completion(Instant now, const rnic::Completion& completion) override;
  void on_arrival(const rnic::Completion& completion) override;
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override;

 protected:
  // The queue pair, towards what is its peer.
  void bring_up(wire::Ipv4 remote, rnic::Qpn remote_qpn, wire::Psn psn);
  // Sends do not end, and somebody else is to look why.
  virtual void complain();
  Host& host() { return host_; }
  Instant now() const { return simulator_.now(); }
  rnic::Qpn qpn() const { return qpn_; }
  GroupLedger& ledger() { return ledger_; }
  bool leads() const { return ledger_.plan().leader == index_; }
  bool is_open() const { return open_; }
  std::size_t index() const { return index_; }
  void stop_sending() { active_ = false; }
  // WRITEs name it so.
  static constexpr std::uint16_t kRegion = 7;

 private:
  enum What : std::uint64_t {
    kStartTurn,
    kWatch,  // do sends end?
    kSynchronise,
    kPublish,
    kTold,
    kFirstReceive
  };  // kFirstReceive + slot: post that receive
  // Forgers do not know it.
  static constexpr std::uint32_t kToken = 0x5EC2E7;
  // Work request numbers: receives are slots, sends lie above.
  static constexpr std::uint64_t kFirstSend = 1u << 20;
  static constexpr std::uint64_t kMarker = kFirstSend - 1;  // the last receive of a stopped pair

  void create_queue_pair();
  void allocate_memory();
  void allocate_region();
  void publish(const wire::MrpHeader& group);
  void send_publication();
  void on_regions_confirmed(Instant now);
  void connect();
  void initialise();
  bool may_post(const MessagePlan& message);
  void synchronise();
  void synchronise_soon();
  void stop();
  void restart(wire::Psn psn);
  bool is_flushed(Instant now, const rnic::Completion& completion);
  void post_receive(std::size_t slot);
  void post_turns();
  void post_send(std::size_t message);
  std::uint64_t packets_of(const MessagePlan& message) const;
  void post_announcement(std::size_t message);
  void watch();
  std::span<std::uint8_t> slot_bytes(std::size_t slot);
  rnic::SendWr as_write(rnic::SendWr wr, const MessagePlan& message);
  void record(recording::Event event, std::size_t message);
  void on_receive(Instant now, const rnic::Completion& completion);
  void send(const mrp::Outbox& actions);

  Simulator& simulator_;
  Host& host_;
  GroupLedger& ledger_;
  const std::size_t index_;
  const TransportPlan& transport_;
  Random random_;
  rnic::Qpn qpn_;
  mrp::Membership membership_;
  mrp::Outbox answers_;

  std::vector<std::uint8_t> memory_;     // receive slots, then this member's messages, announced
  std::vector<std::size_t> message_at_;  // offset of each message of ours
  std::vector<std::size_t> list_at_;     // ... and of its announcement
  std::size_t slot_size_ = 0;
  std::uint32_t lkey_ = 0;
  std::vector<std::uint8_t> region_memory_;  // a region between two stretches of the same memory
  std::uint32_t region_key_ = 0;
  mrp::Publisher publisher_;
  std::function<void()> ready_;
  std::function<void()> tell_;
  std::size_t next_message_ = 0;   // of the group: the next that may be ours to post
  std::size_t paused_before_ = 0;  // message + 1 before which we have paused already
  std::function<void()> ask_;
  mrp::PsnSync sync_;
  std::vector<std::size_t> unposted_;  // slots that wait for a stopped queue pair's return
  unsigned outstanding_ = 0;           // sends
  bool watching_ = false;
  bool pausing_ = false;
  bool active_ = false;
  bool has_failed_ = false;  // a work request has ended with an error
  bool open_ = true;
};

}  // namespace cepheus::sim
