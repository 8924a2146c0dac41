// One member of a reduction group as a program of a simulated host: its part in the registration,
// its queue pair, and its planned operations. Each event, datagram and completion ends in
// carry_out().
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "controller/membership.h"
#include "controller/registration.h"
#include "fabric-sim/checked/reductions/reduction_ledger.h"
#include "fabric-sim/core/connection.h"
#include "fabric-sim/core/random.h"
#include "libmcast/engine/reduction.h"

namespace cepheus::sim {

class ReductionProgram final : public Actor, public DatagramClient, public CompletionClient {
 public:
  ReductionProgram(Simulator& simulator, Host& host, ReductionLedger& ledger, std::size_t index,
                   const TransportPlan& transport, std::uint64_t seed);

  const wire::MrpMember& member() const { return membership_.self(); }
  // Makes it the leader of the group of these members, which include it.
  void lead(std::span<const wire::MrpMember> members);
  // Ends the group that it leads.
  void unregister();
  // It has ended the group, or can't any more.
  bool is_gone() const {
    return !is_open_ || !registration_ || registration_->state() == mrp::Registration::State::kGone;
  }
  bool is_active() const { return is_open_ && is_active_ && !has_failed_ && !is_leaving_; }
  bool takes_part() const { return is_active(); }
  // Its operations may begin from now on, after it has skipped this number of units. False: it is
  // not active, or has work under way.
  bool begin(std::uint64_t units);
  // 0: its queue pair is not connected.
  std::uint16_t path_mtu() const { return path_mtu_; }
  // Destroys the queue pair: the group has ended, or the member's host is gone.
  void close();

  void on_event(Instant now, std::uint64_t what) override;
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override;
  void on_completion(Instant now, const rnic::Completion& completion) override;
  void on_arrival(const rnic::Completion& completion) override {
    if (completion.opcode == rnic::WcOpcode::kRecv) ++arrived_;
  }

 private:
  enum What : std::uint64_t { kTimer, kBegin, kLook };

  void carry_out();
  void follow_registration();
  void connect(std::uint16_t path_mtu);
  void activate();
  void begin_soon();
  void begin_next();
  void pump();
  void post_receives();
  void post_sends();
  rnic::Sge contribution_of(const mcast::ReductionUnits::Part& part);
  void take(const rnic::Completion& completion);
  using Report = void (ReductionLedger::*)(std::size_t member, const std::string& what);
  void fail(const std::string& why, Report report = &ReductionLedger::on_failed);
  void look();
  wire::Duration look_every() const;
  rnic::Sge sent_slot(std::uint32_t slot, std::uint32_t bytes) const;
  rnic::Sge result_slot(std::uint32_t slot) const;

  // An operation's own memory. Its program leaves it alone while the operation is under way, and
  // then uses it for other things.
  struct OwnMemory {
    std::size_t operation;
    std::uint64_t end;  // behind its last unit
    bool has_result = false;
    std::vector<std::uint8_t> contribution, result;  // in place, there is no result
    rnic::MemoryKeys contribution_keys, result_keys;

    std::vector<std::uint8_t>& results() { return result.empty() ? contribution : result; }
  };
  void open_own_memory(std::size_t operation);
  OwnMemory* own_memory(std::size_t operation);
  void end_own_memories();
  void check_kept(OwnMemory& own);
  void close_own_memory();

  Simulator& simulator_;
  Host& host_;
  ReductionLedger& ledger_;
  const std::size_t index_;
  const TransportPlan& transport_;
  Random random_;
  std::vector<std::uint8_t> memory_;  // slots of sent copies, then of results
  rnic::MemoryKeys keys_;
  std::deque<OwnMemory> own_;  // of operations under way
  std::uint64_t arrived_ = 0;  // results that the device has placed
  mrp::Membership membership_;
  std::optional<mrp::Registration> registration_;
  std::optional<mcast::ReductionUnits> units_;  // from CONNECT on
  mrp::Outbox out_;
  Instant timer_at_ = wire::kNever;
  Instant answered_{};  // when the leader or a switch last answered a waiting member
  bool is_active_ = false, is_leaving_ = false, has_failed_ = false, is_open_ = true;
  bool may_begin_ = false, begins_soon_ = false;
  std::uint16_t path_mtu_ = 0;
};

}  // namespace cepheus::sim
