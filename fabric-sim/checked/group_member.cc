#include "fabric-sim/checked/group_member.h"

#include <algorithm>

#include "fabric-sim/checked/leader_config.h"
#include "fabric-sim/core/recorder.h"

namespace cepheus::sim {

using rnic::QpState;

namespace {

using namespace std::chrono_literals;

constexpr wire::Duration kLookEvery = 2ms;
constexpr mrp::Pace kPublishPace{400us, 2ms};

GroupProgram::Config program(Host& host, const GroupPlan& plan, const TransportPlan& transport) {
  const auto sends = 2 * static_cast<std::uint32_t>(plan.messages.size()) + 1;
  GroupProgram::Config config;
  config.qpn = create_qp(host, sends, transport.receive_slots + 1);
  config.control_port = plan.control_port();
  config.token = 0x5EC2E7;  // unknown to forgers
  config.is_sender_group = plan.has_one_sender;
  config.timers = {transport.timeout_code, transport.min_rnr_timer};
  config.receiver_time_limit = transport.silence();
  config.sender_lives = kSenderLives;
  config.requests_after = kLookEvery;
  config.presence = transport.presence;
  config.regions = mrp::Publisher(kPublishPace, plan.first_publication);
  return config;
}

}  // namespace

GroupMember::GroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
                         const TransportPlan& transport, std::uint64_t seed)
    : GroupProgram(simulator, host, program(host, ledger.plan(), transport)),
      ledger_(ledger),
      index_(index),
      transport_(transport),
      random_(seed),
      memory_(host, ledger, index, transport.receive_slots) {
  is_under_way_.resize(ledger_.plan().messages.size());
  host.attach(qpn(), *this);
  if (ledger_.plan().is_announced) {
    engine().regions().announce(now());
  } else if (has_regions()) {
    engine().regions().add(now(), memory_.former_region());
  }
  const std::uint32_t prompt = ledger_.plan().members[index_].receives_at_start;
  for (std::size_t slot = 0; slot < transport_.receive_slots; ++slot) {
    if (slot < prompt) {
      post_receive(slot);
    } else {
      simulator.schedule(now() + random_.between(Duration{0}, transport_.late_receive), *this,
                         kFirstReceive + slot);
    }
  }
}

// --- The group.

void GroupMember::lead(std::span<const wire::MrpMember> members) {
  if (is_dead_) return;
  const GroupPlan& plan = ledger_.plan();
  if (!plan.has_one_sender) {
    return GroupProgram::lead(leader_config(host(), plan, transport_), {plan.id, plan.epoch},
                              members);
  }
  std::vector<wire::MrpRegion::Record> regions;
  for (const wire::AnnouncedTarget& target : ledger_.targets()) {
    if (!has_regions() || target.host == host().address()) continue;
    regions.push_back(
        {target.host, {MemberMemory::kRegion, target.rkey, target.virtual_address, target.length}});
  }
  lead_as_sender(sender_config(host(), plan, transport_), members, regions);
}

void GroupMember::unregister() {
  if (is_dead_) return;
  ledger_.on_end();
  leave();
}

void GroupMember::die() {
  is_dead_ = true;
  close();
}

void GroupMember::close() {
  if (!is_open()) return;
  GroupProgram::close();
  host().nic().destroy_qp(qpn());
  memory_.deregister();
}

void GroupMember::on_change(Instant) {
  // The region moves after its first publication: late packets must not bring the first address
  // back.
  if (publish_due() && !ledger_.plan().is_announced && !std::exchange(has_moved_, true)) {
    engine().regions().add(now(), memory_.region());
    publish_due();
  }
  if (ledger_.plan().leader == index_ && is_active()) {
    ledger_.check_member_count(engine().role().member_count());
  }
  if (group().state() == seen_) return;
  const mcast_group_state_t was = std::exchange(seen_, group().state());
  if (was == MCAST_GROUP_WAITING) simulator().schedule(now() + kLookEvery, *this, kLook);
  if (seen_ == MCAST_GROUP_ACTIVE) post_turns();
  if (seen_ == MCAST_GROUP_FAILED) note_failure();
}

void GroupMember::note_failure() {
  if (gave_up()) ledger_.on_gave_up(index_, group().reason());
  if (group().cause() == MCAST_CAUSE_REGISTRATION) {
    ledger_.on_not_registered(group().reason());
  } else {
    ledger_.on_failed(index_, group().reason());
  }
}

bool GroupMember::publish_due() {
  const auto publication = engine().regions().take_due(now());
  if (!publication) return false;
  host().send_datagram(*publication, member().control_port);
  simulator().schedule(group().regions().deadline(), *this, kPublish);
  return true;
}

// --- The source changes.

void GroupMember::synchronise() {
  const bool was_halted = sync().is_halted();
  engine().synchronise(out());
  perform();
  if (was_halted && !sync().is_halted()) post_turns();
}

// Not at once: the program may be busy.
void GroupMember::synchronise_soon() {
  if (sync().is_halted() || !group().work().is_sync_due()) return;
  simulator().schedule(now() + random_.between(Duration{0}, transport_.late_sync), *this,
                       kSynchronise);
}

// A halted queue pair is idle when all posted requests have completed, the marker last.
void GroupMember::take_step(mcast::PairSync::Step step) {
  using Step = mcast::PairSync::Step;
  if (step == Step::kStop) {
    sim::post_receive(host(), qpn(), {}, kMarker);
    return require(set_state(host(), qpn(), QpState::kErr));
  }
  const rnic::QpAttr pair = require(host().nic().query_qp(qpn()));
  require(set_state(host(), qpn(), QpState::kReset));
  initialise(host(), qpn());
  post_kept();
  mcast::RemoteEnd remote = mcast::group_end(ledger_.plan().id, ledger_.plan().epoch, path_mtu());
  remote.start = step == Step::kReceivePsn ? pair.sq_psn : pair.rq_psn;
  simulator().trace().note(now(), host().name(), "goes on at PSN", remote.start.value());
  connect(remote);
}

void GroupMember::post_kept() {
  for (const std::uint64_t slot : sync().take_kept()) give_receive(slot);
}

bool GroupMember::is_of_halt(Instant now, const rnic::Completion& completion) {
  if (completion.status != rnic::WcStatus::kFlush) return false;
  if (completion.wr_id != kMarker) {
    return completion.wr_id < kFirstSend && sync().keeps_flushed(completion.wr_id);
  }
  sync().drained();
  simulator().schedule(now + random_.between(Duration{0}, transport_.sync_pause), *this,
                       kSynchronise);
  return true;
}

bool GroupMember::may_send(std::uint64_t packets) {
  read_psns_if_wanted();
  return sync().check_send(packets).has_value();
}

std::uint64_t GroupMember::possible_jump(std::uint64_t wanted) {
  // Leaves some PSNs for the messages around the jump.
  constexpr std::uint64_t kAtOnce = mrp::PsnSync::kMostSent - 512;
  const std::uint64_t packets = sync().is_enabled() ? std::min(wanted, kAtOnce) : wanted;
  if (may_send(packets)) return packets;
  if (!sync().is_halted()) synchronise();
  return 0;
}

bool GroupMember::jump(std::size_t source, std::uint64_t packets) {
  const bool is_source = index_ == source;
  const Instant awake_at = std::max(host().programs_awake_at(), host().nic_awake_at());
  const bool is_awake = awake_at < now() && !host().nic().wants_to_transmit();
  if (!takes_part() || !is_awake) return false;
  if (!host().nic().jump(qpn(), is_source ? packets : 0, is_source ? 0 : packets)) return false;
  if (packets == 0) return true;
  if (is_source) {
    engine().work().on_send_posted(packets);
    engine().work().on_send_ended(packets, true);
    read_psns_if_wanted();
    synchronise_soon();
  } else {
    engine().work().on_receive_posted();
    engine().work().on_receive_ended(true);
    read_psns_if_wanted();
  }
  return true;
}

// --- Data.

void GroupMember::post_receive(std::size_t slot) {
  if (group().state() == MCAST_GROUP_FAILED) return;
  if (!sync().keeps(slot)) give_receive(slot);
  engine().work().on_receive_posted();
}

void GroupMember::give_receive(std::size_t slot) {
  std::ranges::fill(memory_.slot(slot), MemberMemory::kUntouched);
  sim::post_receive(host(), qpn(), memory_.whole_slot(slot), slot);
}

// Posts the sends that are allowed now. A turn begins after a pause, its other messages follow at
// once.
void GroupMember::post_turns() {
  const GroupPlan& plan = ledger_.plan();
  for (; takes_part() && !pausing_ && next_message_ < plan.messages.size(); ++next_message_) {
    const std::size_t m = next_message_;
    if (plan.messages[m].source != index_) continue;
    if (!ledger_.may_send(index_, m)) return;
    const bool turn_begins = m > 0 && plan.messages[m - 1].source != index_;
    if (turn_begins && paused_before_ != m + 1 && random_.chance(0.5)) {
      pausing_ = true;
      simulator().schedule(now() + random_.between(Duration{0}, transport_.turn_pause), *this,
                           kStartTurn);
      return;
    }
    if (!may_send(packets_of(plan.messages[m]))) return synchronise();
    post_send(m);
  }
}

rnic::SendWr GroupMember::as_write(rnic::SendWr wr, const MessagePlan& message) {
  wr.op = message.has_completion() ? rnic::SendOp::kWriteImm : rnic::SendOp::kWrite;
  const bool is_announced = ledger_.plan().is_announced;
  wr.remote_address = is_announced ? 0 : message.offset;
  wr.rkey = is_announced ? wire::Announcement::kNoKey : MemberMemory::kRegion;
  if (message.outside) ledger_.on_disaster();  // it ends the group
  return wr;
}

void GroupMember::post_announcement(std::size_t message) {
  sim::post_send(host(), qpn(), memory_.announcement(message),
                 {.wr_id = kFirstSend + message,
                  .op = rnic::SendOp::kWrite,
                  .rkey = wire::Announcement::kKey});
}

std::uint64_t GroupMember::packets_of(const MessagePlan& message) const {
  const std::uint64_t announcements = message.is_write() && ledger_.plan().is_announced ? 1 : 0;
  const std::uint64_t mtu = path_mtu();
  return announcements + std::max<std::uint64_t>(1, (message.bytes + mtu - 1) / mtu);
}

void GroupMember::post_send(std::size_t message) {
  const MessagePlan& plan = ledger_.plan().messages[message];
  rnic::SendWr wr{.wr_id = kFirstSend + message,
                  .op = rnic::SendOp::kSendImm,
                  .signaled = true,
                  .imm = static_cast<std::uint32_t>(message)};
  if (plan.is_write()) wr = as_write(wr, plan);
  simulator().trace().note(now(), host().name(), "sends message", message);
  if (plan.is_write() && ledger_.plan().is_announced) post_announcement(message);
  record(recording::Event::kPosted, message);
  sim::post_send(host(), qpn(), memory_.message(message), wr);
  ledger_.on_posted(message);
  is_under_way_[message] = true;
  ++waits_for_;
  engine().work().on_send_posted(packets_of(plan));
}

// `message` comes from a packet: it may be wrong.
void GroupMember::record(recording::Event event, std::size_t message) {
  Recorder* const recorder = simulator().trace().recorder();
  const GroupPlan& plan = ledger_.plan();
  if (recorder == nullptr || message >= plan.messages.size()) return;
  const MessagePlan& sent = plan.messages[message];
  recorder->message(now(), event,
                    {host().number(), static_cast<std::uint16_t>(plan.members[sent.source].host),
                     plan.id, static_cast<std::uint32_t>(message), sent.bytes});
}

void GroupMember::on_event(Instant now, std::uint64_t what) {
  if (what == kGroupTimer) return GroupProgram::on_event(now, what);
  if (!is_open()) return;
  if (host().programs_awake_at() > now)
    return simulator().schedule(host().programs_awake_at(), *this, what);
  if (what == kLook) {
    if (has_ended()) return;
    simulator().schedule(now + kLookEvery, *this, kLook);
    engine().look_for_lagging_members(now, out());
    engine().look(now, out());
    carry_out();
  } else if (what == kSynchronise) {
    synchronise();
  } else if (what == kPublish) {
    publish_due();
  } else if (what == kPeerWrote) {
    post_turns();
  } else if (what == kStartTurn) {
    pausing_ = false;
    paused_before_ = next_message_ + 1;
    post_turns();
  } else {
    post_receive(static_cast<std::size_t>(what - kFirstReceive));
  }
}

void GroupMember::on_arrival(const rnic::Completion& completion) {
  const bool is_receive = completion.wr_id < transport_.receive_slots;
  if (!is_open() || !is_receive || completion.status != rnic::WcStatus::kSuccess) return;
  const auto bytes = memory_.slot(static_cast<std::size_t>(completion.wr_id));
  const bool is_write = completion.opcode == rnic::WcOpcode::kRecvWriteImm;
  ledger_.on_arrived(index_, completion.imm,
                     is_write ? bytes.first(0) : bytes.first(completion.byte_len));
}

void GroupMember::on_completion(Instant now, const rnic::Completion& completion) {
  if (!is_open() || is_of_halt(now, completion)) return;
  if (completion.wr_id >= kFirstSend) {
    const auto message = static_cast<std::size_t>(completion.wr_id - kFirstSend);
    if (is_under_way_[message]) --waits_for_;  // an announcement has its message's number, too
    is_under_way_[message] = false;
  }
  if (completion.status != rnic::WcStatus::kSuccess) {
    engine().fail(now, MCAST_ERR_FABRIC, MCAST_CAUSE_WORK,
                  std::string("work request ended with ") + rnic::to_string(completion.status),
                  out());
    carry_out();
  } else if (completion.wr_id >= kFirstSend) {
    on_sent(now, static_cast<std::size_t>(completion.wr_id - kFirstSend));
  } else {
    on_received(now, completion);
  }
}

void GroupMember::on_sent(Instant now, std::size_t message) {
  engine().work().on_send_ended(packets_of(ledger_.plan().messages[message]), true);
  read_psns_if_wanted();
  simulator().trace().note(now, host().name(), "completes message", message);
  record(recording::Event::kCompleted, message);
  ledger_.on_completed(message);
  const std::vector<MessagePlan>& all = ledger_.plan().messages;
  const bool ends_turn = message + 1 < all.size() && all[message + 1].source != index_;
  if (ends_turn && !all[message].has_completion()) announce_();
  synchronise_soon();
}

void GroupMember::on_received(Instant now, const rnic::Completion& completion) {
  const auto slot = static_cast<std::size_t>(completion.wr_id);
  simulator().trace().note(now, host().name(), "receives bytes", completion.byte_len);
  record(recording::Event::kReceived, completion.imm);
  if (completion.opcode == rnic::WcOpcode::kRecvWriteImm) {
    ledger_.on_written(index_, completion.imm, completion.byte_len);
  } else {
    ledger_.on_delivered(index_, completion.imm, memory_.slot(slot).first(completion.byte_len));
  }
  engine().work().on_receive_ended(true);
  read_psns_if_wanted();
  const bool late = random_.chance(0.3);
  simulator().schedule(
      now + (late ? random_.between(Duration{0}, transport_.late_receive) : Duration{0}), *this,
      kFirstReceive + slot);
  post_turns();
}

}  // namespace cepheus::sim
