#include "fabric-sim/checked/group_member.h"

#include <algorithm>
#include <stdexcept>

#include "fabric-sim/core/recorder.h"

namespace cepheus::sim {

using rnic::QpAttr;
using rnic::QpState;

namespace {

// A refusal here is an error of the simulator, not of what it simulates.
template <typename T>
T require(wire::Result<T> result) {
  if (!result) throw std::logic_error("fabric-sim: " + result.error().text);
  if constexpr (!std::is_void_v<T>) return *result;
}

constexpr wire::Duration kPatience = std::chrono::milliseconds(2);
constexpr mrp::Pace kPublishPace{std::chrono::microseconds(400), std::chrono::milliseconds(2)};
constexpr std::size_t kGuard = 8192;       // bytes on each side of a region
constexpr std::uint8_t kUntouched = 0xEE;  // receive buffers, before data

}  // namespace

GroupMember::GroupMember(Simulator& simulator, Host& host, GroupLedger& ledger, std::size_t index,
                         const TransportPlan& transport, std::uint64_t seed)
    : simulator_(simulator),
      host_(host),
      ledger_(ledger),
      index_(index),
      transport_(transport),
      random_(seed),
      membership_({}),
      publisher_(kPublishPace, ledger.plan().first_publication) {
  create_queue_pair();
  membership_ = mrp::Membership(identity());
  allocate_memory();
  if (has_regions()) allocate_region();
  host_.attach(qpn_, *this);
  host_.listen(*this, ledger_.plan().control_port());
  const std::uint32_t prompt = ledger_.plan().members[index_].receives_at_start;
  for (std::size_t slot = 0; slot < transport_.receive_slots; ++slot) {
    if (slot < prompt) {
      post_receive(slot);
    } else {
      simulator_.schedule(simulator_.now() + random_.between(Duration{0}, transport_.late_receive),
                          *this, kFirstReceive + slot);
    }
  }
}

void GroupMember::create_queue_pair() {
  rnic::QpInit init;
  init.pd = 1;
  init.send_cq = 1;
  init.recv_cq = 2;
  init.cap.max_send_wr = 2 * static_cast<std::uint32_t>(ledger_.plan().messages.size()) + 1;
  init.cap.max_recv_wr = transport_.receive_slots + 1;
  qpn_ = require(host_.create_qp(init));
  initialise();
}

void GroupMember::initialise() {
  QpAttr attr;
  attr.state = QpState::kInit;
  attr.access = rnic::kLocalWrite | rnic::kRemoteWrite;
  require(host_.modify_qp(qpn_, attr, rnic::kAttrState | rnic::kAttrAccess));
}

void GroupMember::allocate_memory() {
  const GroupPlan& plan = ledger_.plan();
  for (const MessagePlan& m : plan.messages)
    slot_size_ = std::max<std::size_t>(slot_size_, m.bytes);
  std::size_t size = slot_size_ * transport_.receive_slots;
  for (const MessagePlan& m : plan.messages) {
    message_at_.push_back(size);
    if (m.source == index_) size += m.bytes;
    list_at_.push_back(size);
    if (m.source == index_ && plan.is_announced) {
      size += wire::Announcement::size_of(plan.members.size());
    }
  }
  memory_.assign(size + 1, kUntouched);  // a region is never empty
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    if (plan.messages[m].source != index_) continue;
    ledger_.fill(m, std::span(memory_).subspan(message_at_[m], plan.messages[m].bytes));
  }
  // The region's own address space starts at 0: nothing that the trace sees depends on the
  // allocator.
  const auto keys =
      require(host_.nic().register_memory(1, memory_.data(), memory_.size(), 0, rnic::kLocalWrite));
  lkey_ = keys.lkey;
}

// The NIC lets others write to all of it: only switches know where the region ends.
void GroupMember::allocate_region() {
  region_memory_.assign(2 * kGuard + ledger_.plan().region_bytes, RegionBooks::kUntouched);
  // Elsewhere on every member.
  const std::uint64_t address = 0x100000 * (index_ + 1) + 0x10 * index_;
  const auto keys =
      require(host_.nic().register_memory(1, region_memory_.data(), region_memory_.size(), address,
                                          rnic::kLocalWrite | rnic::kRemoteWrite));
  region_key_ = keys.rkey;
  ledger_.regions().attach(index_, region_memory_, kGuard);
  ledger_.targets()[index_] = {host_.address(), keys.rkey, address + kGuard,
                               ledger_.plan().region_bytes};
}

// Where it lies at first is not where it is in the end: what is late must not bring that back.
void GroupMember::publish(const wire::MrpHeader& group) {
  const Instant now = simulator_.now();
  const std::uint64_t address = 0x100000 * (index_ + 1) + 0x10 * index_;
  const std::uint32_t bytes = ledger_.plan().region_bytes;
  publisher_.begin(now, group, identity());
  if (ledger_.plan().is_announced) {
    publisher_.announce(now);
    return send_publication();
  }
  publisher_.add(now, {kRegion, region_key_, address, bytes});
  send_publication();
  publisher_.add(now, {kRegion, region_key_, address + kGuard, bytes});
  send_publication();
}

void GroupMember::send_publication() {
  const auto publication = publisher_.take_due(simulator_.now());
  if (!publication) return;
  host_.send_datagram(*publication, ledger_.plan().control_port());
  simulator_.schedule(publisher_.deadline(), *this, kPublish);
}

void GroupMember::on_regions_confirmed(Instant now) {
  if (ready_) return ready_();
  membership_.connected(now, true, answers_);
  send(answers_);
  answers_.clear();
}

void GroupMember::lead(std::uint32_t instance) {
  membership_.lead(ledger_.plan().id, ledger_.plan().epoch, instance);
  connect();
}

void GroupMember::publish_as_leader(std::uint32_t instance) {
  if (!has_regions()) return;
  wire::MrpHeader group;
  group.epoch = ledger_.plan().epoch;
  group.mcst_id = ledger_.plan().id;
  group.instance = instance;
  publish(group);
}

void GroupMember::connect() {
  bring_up(membership_.id(), wire::kVirtualQpn,
           wire::group_start_psn(membership_.id(), membership_.epoch()));
}

void GroupMember::bring_up(wire::Ipv4 remote, rnic::Qpn remote_qpn, wire::Psn psn) {
  QpAttr attr;
  attr.state = QpState::kRtr;
  attr.remote_ip = remote;
  attr.remote_qpn = remote_qpn;
  attr.path_mtu = transport_.path_mtu;
  attr.rq_psn = psn;
  attr.min_rnr_timer = transport_.min_rnr_timer;
  require(host_.modify_qp(qpn_, attr,
                          rnic::kAttrState | rnic::kAttrAddress | rnic::kAttrRemoteQpn |
                              rnic::kAttrPathMtu | rnic::kAttrRqPsn | rnic::kAttrMinRnrTimer));
  attr.state = QpState::kRts;
  attr.sq_psn = psn;
  attr.timeout_code = transport_.timeout_code;
  attr.retry_count = 7;
  attr.rnr_retry = 7;
  require(host_.modify_qp(qpn_, attr,
                          rnic::kAttrState | rnic::kAttrSqPsn | rnic::kAttrTimeout |
                              rnic::kAttrRetryCount | rnic::kAttrRnrRetry));
}

void GroupMember::activate(bool host_sync) {
  if (active_) return;
  active_ = true;
  if (host_sync) sync_.enable();
  post_turns();
}

// What libmcast does in groups whose switches leave PSNs to hosts: once all that was sent is
// acknowledged, or before this member sends again.
void GroupMember::synchronise() {
  if (!active_) return;
  switch (sync_.due(outstanding_)) {
    case mrp::PsnSync::Step::kNone:
      break;
    case mrp::PsnSync::Step::kStop:
      stop();
      break;
    case mrp::PsnSync::Step::kReceivePsn:
      restart(require(host_.nic().query_qp(qpn_)).sq_psn);
      break;
    case mrp::PsnSync::Step::kSendPsn:
      restart(require(host_.nic().query_qp(qpn_)).rq_psn);
      break;
  }
}

// The queue pair has done with everything once what is posted has come back, the marker last.
void GroupMember::stop() {
  sync_.stopped();
  rnic::RecvWr marker;
  marker.wr_id = kMarker;
  require(host_.post_recv(qpn_, marker));
  QpAttr attr;
  attr.state = QpState::kErr;
  require(host_.modify_qp(qpn_, attr, rnic::kAttrState));
}

void GroupMember::restart(wire::Psn psn) {
  QpAttr attr;
  attr.state = QpState::kReset;
  require(host_.modify_qp(qpn_, attr, rnic::kAttrState));
  initialise();
  sync_.done();
  for (const std::size_t slot : unposted_) post_receive(slot);
  unposted_.clear();
  bring_up(membership_.id(), wire::kVirtualQpn, psn);
  simulator_.trace().note(simulator_.now(), host_.name(), "goes on at PSN", psn.value());
  post_turns();
}

bool GroupMember::is_flushed(Instant now, const rnic::Completion& completion) {
  if (!sync_.is_stopped() || completion.status != rnic::WcStatus::kFlush) return false;
  if (completion.wr_id != kMarker) {
    unposted_.push_back(static_cast<std::size_t>(completion.wr_id));
  } else {
    sync_.drained();
    simulator_.schedule(now + random_.between(Duration{0}, transport_.sync_pause), *this,
                        kSynchronise);
  }
  return true;
}

void GroupMember::close() {
  if (!open_) return;
  open_ = active_ = false;
  host_.nic().destroy_qp(qpn_);
  host_.nic().deregister_memory(lkey_);
  if (region_key_ != 0) host_.nic().deregister_memory(region_key_);
}

std::span<std::uint8_t> GroupMember::slot_bytes(std::size_t slot) {
  return std::span(memory_).subspan(slot * slot_size_, slot_size_);
}

void GroupMember::post_receive(std::size_t slot) {
  if (sync_.is_stopped()) return unposted_.push_back(slot);
  const auto bytes = slot_bytes(slot);
  std::fill(bytes.begin(), bytes.end(), kUntouched);
  const rnic::Sge sge{slot * slot_size_, static_cast<std::uint32_t>(slot_size_), lkey_};
  rnic::RecvWr wr;
  wr.wr_id = slot;
  wr.sges = {&sge, 1};
  require(host_.post_recv(qpn_, wr));
}

// Posts what may be sent now. A turn begins after a pause, its other messages follow at once.
void GroupMember::post_turns() {
  const GroupPlan& plan = ledger_.plan();
  for (; active_ && !pausing_ && next_message_ < plan.messages.size(); ++next_message_) {
    const std::size_t m = next_message_;
    if (plan.messages[m].source != index_) continue;
    if (!ledger_.may_send(index_, m)) return;
    const bool turn_begins = m > 0 && plan.messages[m - 1].source != index_;
    if (turn_begins && paused_before_ != m + 1 && random_.chance(0.5)) {
      pausing_ = true;
      simulator_.schedule(simulator_.now() + random_.between(Duration{0}, transport_.turn_pause),
                          *this, kStartTurn);
      return;
    }
    if (!may_post(plan.messages[m])) {
      sync_.want_to_send();
      return synchronise();
    }
    post_send(m);
  }
}

// As libmcast decides it (Group::check_may_send).
bool GroupMember::may_post(const MessagePlan& message) {
  if (sync_.has_to_look()) {
    const auto pair = require(host_.nic().query_qp(qpn_));
    if (pair.sq_psn != pair.rq_psn) sync_.received();
  }
  return sync_.may_send(packets_of(message));
}

rnic::SendWr GroupMember::as_write(rnic::SendWr wr, const MessagePlan& message) {
  wr.op = message.is_told() ? rnic::SendOp::kWriteImm : rnic::SendOp::kWrite;
  const bool is_announced = ledger_.plan().is_announced;
  wr.remote_address = is_announced ? 0 : message.offset;
  wr.rkey = is_announced ? wire::Announcement::kNoKey : kRegion;
  if (message.outside) ledger_.on_disaster();  // it ends the group
  return wr;
}

// Each WRITE goes to an address of its own at every member.
void GroupMember::post_announcement(std::size_t message) {
  const MessagePlan& plan = ledger_.plan().messages[message];
  std::vector<wire::AnnouncedTarget> targets = ledger_.targets();
  for (wire::AnnouncedTarget& target : targets) {
    target.virtual_address += plan.offset;
    target.length -= plan.offset;
  }
  const std::size_t bytes =
      wire::Announcement::emit(targets, std::span(memory_).subspan(list_at_[message]));
  const rnic::Sge sge{list_at_[message], static_cast<std::uint32_t>(bytes), lkey_};
  rnic::SendWr wr;
  wr.wr_id = kFirstSend + message;
  wr.op = rnic::SendOp::kWrite;
  wr.rkey = wire::Announcement::kKey;
  wr.sges = {&sge, 1};
  require(host_.post_send(qpn_, wr));
}

std::uint64_t GroupMember::room_to_jump(std::uint64_t wanted) {
  // Some room is left for the messages around it.
  constexpr std::uint64_t kAtOnce = mrp::PsnSync::kMostSent - 512;
  const std::uint64_t packets = sync_.is_enabled() ? std::min(wanted, kAtOnce) : wanted;
  if (sync_.may_send(packets)) return packets;
  sync_.want_to_send();
  if (sync_.due(outstanding_) == mrp::PsnSync::Step::kStop) synchronise();
  return 0;
}

bool GroupMember::jump(std::size_t source, std::uint64_t packets) {
  const bool is_source = index_ == source;
  const Instant awake_at = std::max(host_.programs_awake_at(), host_.nic_awake_at());
  const bool is_awake = awake_at < simulator_.now() && !host_.nic().wants_to_transmit();
  if (!active_ || !is_awake) return false;
  if (!host_.nic().jump(qpn_, is_source ? packets : 0, is_source ? 0 : packets)) return false;
  if (packets == 0) return true;
  if (is_source) {
    sync_.sent(packets);
    synchronise_soon();
  } else {
    sync_.received();
  }
  return true;
}

// Not at once: a program may be elsewhere.
void GroupMember::synchronise_soon() {
  if (sync_.due(outstanding_) != mrp::PsnSync::Step::kStop) return;
  simulator_.schedule(simulator_.now() + random_.between(Duration{0}, transport_.late_sync), *this,
                      kSynchronise);
}

std::uint64_t GroupMember::packets_of(const MessagePlan& message) const {
  const std::uint64_t announcements = message.is_write() && ledger_.plan().is_announced ? 1 : 0;
  const std::uint64_t mtu = transport_.path_mtu;
  return announcements + std::max<std::uint64_t>(1, (message.bytes + mtu - 1) / mtu);
}

void GroupMember::post_send(std::size_t message) {
  const MessagePlan& plan = ledger_.plan().messages[message];
  const std::uint32_t bytes = plan.bytes;
  const rnic::Sge sge{message_at_[message], bytes, lkey_};
  rnic::SendWr wr;
  wr.wr_id = kFirstSend + message;
  wr.op = rnic::SendOp::kSendImm;
  wr.imm = static_cast<std::uint32_t>(message);
  wr.signaled = true;
  if (bytes > 0) wr.sges = {&sge, 1};
  if (plan.is_write()) wr = as_write(wr, plan);
  simulator_.trace().note(simulator_.now(), host_.name(), "sends message", message);
  if (plan.is_write() && ledger_.plan().is_announced) post_announcement(message);
  record(recording::Event::kPosted, message);
  require(host_.post_send(qpn_, wr));
  ledger_.on_posted(message);
  sync_.sent(packets_of(plan));
  ++outstanding_;
  watch();
}

// `message` is what a packet says: it may be wrong.
void GroupMember::record(recording::Event event, std::size_t message) {
  Recorder* const recorder = simulator_.trace().recorder();
  const GroupPlan& plan = ledger_.plan();
  if (recorder == nullptr || message >= plan.messages.size()) return;
  const MessagePlan& sent = plan.messages[message];
  recorder->message(simulator_.now(), event,
                    {host_.number(), static_cast<std::uint16_t>(plan.members[sent.source].host),
                     plan.id, static_cast<std::uint32_t>(message), sent.bytes});
}

void GroupMember::complain() {
  membership_.complain(answers_);
  send(answers_);
  answers_.clear();
}

// Sends that do not end are complained of to the leader, who may be this host.
void GroupMember::watch() {
  if (watching_) return;
  watching_ = true;
  simulator_.schedule(simulator_.now() + kPatience, *this, kWatch);
}

void GroupMember::on_event(Instant now, std::uint64_t what) {
  if (!open_) return;
  if (host_.programs_awake_at() > now)
    return simulator_.schedule(host_.programs_awake_at(), *this, what);
  if (what == kWatch) {
    watching_ = false;
    if (!active_ || outstanding_ == 0) return;
    watch();
    if (ledger_.plan().leader == index_) {
      if (ask_) ask_();
    } else {
      complain();
    }
  } else if (what == kSynchronise) {
    synchronise();
  } else if (what == kPublish) {
    send_publication();
  } else if (what == kTold) {
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
  if (!open_ || !is_receive || completion.status != rnic::WcStatus::kSuccess) return;
  const auto bytes = slot_bytes(static_cast<std::size_t>(completion.wr_id));
  const bool is_write = completion.opcode == rnic::WcOpcode::kRecvWriteImm;
  ledger_.on_arrived(index_, completion.imm,
                     is_write ? bytes.first(0) : bytes.first(completion.byte_len));
}

void GroupMember::on_completion(Instant now, const rnic::Completion& completion) {
  if (!open_ || is_flushed(now, completion)) return;
  if (completion.status != rnic::WcStatus::kSuccess) {
    active_ = false;
    has_failed_ = true;
    ledger_.on_failed(index_,
                      std::string("work request ended with ") + rnic::to_string(completion.status));
  } else if (completion.wr_id >= kFirstSend) {
    --outstanding_;
    simulator_.trace().note(now, host_.name(), "completes message", completion.wr_id - kFirstSend);
    record(recording::Event::kCompleted, static_cast<std::size_t>(completion.wr_id - kFirstSend));
    const auto message = static_cast<std::size_t>(completion.wr_id - kFirstSend);
    ledger_.on_completed(message);
    const std::vector<MessagePlan>& all = ledger_.plan().messages;
    const bool ends_turn = message + 1 < all.size() && all[message + 1].source != index_;
    if (ends_turn && !all[message].is_told()) tell_();
    synchronise_soon();
  } else {
    on_receive(now, completion);
  }
}

void GroupMember::on_receive(Instant now, const rnic::Completion& completion) {
  const auto slot = static_cast<std::size_t>(completion.wr_id);
  simulator_.trace().note(now, host_.name(), "receives bytes", completion.byte_len);
  record(recording::Event::kReceived, completion.imm);
  if (completion.opcode == rnic::WcOpcode::kRecvWriteImm) {
    ledger_.on_written(index_, completion.imm, completion.byte_len);
  } else {
    ledger_.on_delivered(index_, completion.imm, slot_bytes(slot).first(completion.byte_len));
  }
  sync_.received();
  const bool late = random_.chance(0.3);
  simulator_.schedule(
      now + (late ? random_.between(Duration{0}, transport_.late_receive) : Duration{0}), *this,
      kFirstReceive + slot);
  post_turns();
}

void GroupMember::on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) {
  if (!open_) return;
  const wire::MrpHeader& header = message.header;
  if (header.type == wire::MrpType::kConfirm && !publisher_.is_in_force()) {
    publisher_.on_confirm(now, header);
    if (publisher_.is_in_force()) return on_regions_confirmed(now);
  }
  switch (membership_.on_message(now, from, message, answers_)) {
    case mrp::Membership::Task::kConnect:
      connect();
      if (has_regions()) publish(header);
      if (publisher_.is_in_force()) membership_.connected(now, true, answers_);
      break;
    case mrp::Membership::Task::kActivated:
      activate(membership_.host_sync());
      break;
    case mrp::Membership::Task::kDissolved:
      active_ = false;
      publisher_.end();
      break;
    case mrp::Membership::Task::kWait:    // no watchdog here: the queue pair's own retries decide
    case mrp::Membership::Task::kStands:  // nobody asks here
    case mrp::Membership::Task::kNone:
      break;
  }
  send(answers_);
  answers_.clear();
}

void GroupMember::send(const mrp::Outbox& actions) {
  for (const wire::MrpMessage& m : actions.messages) {
    host_.send_datagram(m, ledger_.plan().control_port());
  }
}

}  // namespace cepheus::sim
