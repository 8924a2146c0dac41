#include "fabric-sim/checked/reductions/reduction_program.h"

#include <algorithm>

#include "fabric-sim/checked/leader_config.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kToken = 0x5EC2E7;
constexpr Duration kLookEvery = 2ms;

wire::MrpMember member_of(Host& host, const ReductionPlan& plan) {
  const std::uint32_t window = plan.reduction.window;
  const rnic::Qpn qpn = create_qp(host, mcast::ReductionUnits::most_sends(window) + 1, window + 1);
  return {host.address(), qpn, 0, plan.group.control_port(), kToken};
}

}  // namespace

ReductionProgram::ReductionProgram(Simulator& simulator, Host& host, ReductionLedger& ledger,
                                   std::size_t index, const TransportPlan& transport,
                                   std::uint64_t seed)
    : simulator_(simulator),
      host_(host),
      ledger_(ledger),
      index_(index),
      transport_(transport),
      random_(seed),
      memory_(std::size_t{2} * ledger.plan().reduction.window * ledger.plan().reduction.unit),
      keys_(open_memory(host, memory_)),
      membership_(member_of(host, ledger.plan()),
                  static_cast<std::uint16_t>(host.nic().config().max_mtu), true) {
  host.attach(member().qpn, *this);
  host.listen(*this, member().control_port);
}

void ReductionProgram::lead(std::span<const wire::MrpMember> members) {
  if (!is_open_) return;
  const ReductionPlan& plan = ledger_.plan();
  mrp::RegistrationConfig config = leader_config(host_, plan.group, transport_);
  config.path_mtu = static_cast<std::uint16_t>(host_.nic().config().max_mtu);
  config.reduction = plan.reduction;
  config.timeout = 400ms;
  registration_.emplace(config, plan.group.id, plan.group.epoch);
  registration_->hold("its queue pair is not connected");
  require(registration_->start(simulator_.now(), members, out_));
  carry_out();
}

void ReductionProgram::unregister() {
  if (is_gone()) return;
  is_leaving_ = true;
  registration_->unregister(simulator_.now(), out_);
  carry_out();
}

void ReductionProgram::close() {
  if (!std::exchange(is_open_, false)) return;
  host_.nic().destroy_qp(member().qpn);
  host_.nic().deregister_memory(keys_.lkey);
  while (!own_.empty()) close_own_memory();
}

void ReductionProgram::on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) {
  if (!is_open_) return;
  if (registration_) {
    registration_->on_message(now, from, message, out_);
    return carry_out();
  }
  using Task = mrp::Membership::Task;
  switch (membership_.on_message(now, from, message, out_)) {
    case Task::kConnect:
      connect(membership_.path().mtu);
      membership_.connected(now, !has_failed_, out_);
      break;
    case Task::kActivated:
      activate();
      break;
    case Task::kDissolved:
      if (ledger_.ended(index_) < ledger_.plan().operations.size()) fail("its group has ended");
      break;
    case Task::kWait:
    case Task::kStands:
      answered_ = now;
      break;
    default:
      break;
  }
  carry_out();
}

// Sends the messages, and requests a timer for the deadline.
void ReductionProgram::carry_out() {
  follow_registration();
  for (const wire::MrpMessage& m : out_.messages) host_.send_datagram(m, member().control_port);
  out_.clear();
  const Instant due = registration_ ? registration_->deadline() : membership_.deadline();
  if (due >= timer_at_) return;
  timer_at_ = due;
  simulator_.schedule(due, *this, kTimer);
}

// The leader connects and becomes active when its registration does.
void ReductionProgram::follow_registration() {
  using State = mrp::Registration::State;
  if (!registration_) return;
  if (registration_->state() == State::kConnecting && !units_) {
    connect(registration_->path().mtu);
    registration_->release(simulator_.now(), out_);
  }
  if (registration_->state() == State::kActive && !is_active_) activate();
  if (registration_->state() == State::kFailed && !is_leaving_) fail(registration_->error().text);
}

void ReductionProgram::connect(std::uint16_t path_mtu) {
  const GroupPlan& group = ledger_.plan().group;
  const wire::MrpReduction& reduction = ledger_.plan().reduction;
  const wire::MrpReduction& registered = membership_.reduction();
  const bool is_planned = registered.kind == reduction.kind && registered.unit == reduction.unit &&
                          registered.window == reduction.window;
  if (!registration_ && !is_planned) {
    return fail("REGISTER had another record", &ReductionLedger::on_wrong);
  }
  sim::connect(host_, member().qpn, mcast::group_end(group.id, group.epoch, path_mtu),
               {transport_.timeout_code, transport_.min_rnr_timer});
  path_mtu_ = path_mtu;
  units_.emplace(group.epoch, std::min(reduction.unit, path_mtu), reduction.window);
}

void ReductionProgram::activate() {
  is_active_ = true;
  ledger_.on_active(index_, registration_ ? registration_->is_flat() : membership_.is_flat());
  answered_ = simulator_.now();
  simulator_.schedule(simulator_.now() + look_every(), *this, kLook);
  begin_soon();
}

bool ReductionProgram::begin(std::uint64_t units) {
  if (units > 0 && (!is_active() || !host_.nic().jump(member().qpn, units, units))) return false;
  if (units > 0) units_->jump(units);
  arrived_ += units;
  may_begin_ = true;
  if (is_active()) begin_soon();
  return true;
}

void ReductionProgram::begin_soon() {
  const ReductionPlan& plan = ledger_.plan();
  const std::size_t begun = ledger_.begun(index_);
  const bool may_begin = begun < ledger_.ended(index_) + plan.most_begun;
  if (!may_begin_ || begins_soon_ || has_failed_ || !may_begin || begun == plan.operations.size())
    return;
  begins_soon_ = true;
  const bool is_late = index_ == plan.late_member && begun == plan.late_operation;
  const Duration pause =
      random_.between(Duration{0}, plan.longest_pause) + (is_late ? plan.late_by : Duration{0});
  simulator_.schedule(simulator_.now() + pause, *this, kBegin);
}

void ReductionProgram::on_event(Instant now, std::uint64_t what) {
  if (!is_open_) return;
  if (host_.programs_awake_at() > now) {
    return simulator_.schedule(host_.programs_awake_at(), *this, what);
  }
  if (what == kBegin) {
    begin_next();
  } else if (what == kLook) {
    look();
  } else {
    if (timer_at_ <= now) timer_at_ = wire::kNever;
    registration_ ? registration_->on_timer(now, out_) : membership_.on_timer(now, out_);
  }
  carry_out();
}

void ReductionProgram::begin_next() {
  if (has_failed_) return;
  begins_soon_ = false;
  const std::size_t next = ledger_.begun(index_);
  const ReductionOperation& one = ledger_.plan().operations[next];
  ledger_.on_begun(index_);
  units_->start(next, one.kind, one.bytes, one.place);
  if (one.place != mcast::ReductionUnits::Place::kSlots) open_own_memory(next);
  pump();
  begin_soon();
}

// As libmcast's Presence, up to a quarter earlier, by member: requests of all members at one moment
// would be too many for a queue, each time for the same ones.
Duration ReductionProgram::look_every() const {
  constexpr int kPlaces = 16;
  return kLookEvery - kLookEvery * static_cast<int>(index_ % kPlaces) / (4 * kPlaces);
}

// A waiting member requests an answer about its group, and fails if none comes.
void ReductionProgram::look() {
  if (has_failed_ || is_leaving_) return;
  const Instant now = simulator_.now();
  if (registration_) answered_ = std::max(answered_, registration_->last_message_at());
  if (units_->operations() == 0) {
    answered_ = now;
  } else if (now - answered_ > transport_.silence()) {
    fail("its requests get no answer", &ReductionLedger::on_gave_up);
  } else if (registration_) {
    registration_->send_request(now, out_);
  } else {
    membership_.send_request(out_);
  }
  simulator_.schedule(now + look_every(), *this, kLook);
}

rnic::Sge ReductionProgram::sent_slot(std::uint32_t slot, std::uint32_t bytes) const {
  return {std::uint64_t{slot} * ledger_.plan().reduction.unit, bytes, keys_.lkey};
}

rnic::Sge ReductionProgram::result_slot(std::uint32_t slot) const {
  const wire::MrpReduction& reduction = ledger_.plan().reduction;
  return {(std::uint64_t{reduction.window} + slot) * reduction.unit, reduction.unit, keys_.lkey};
}

void ReductionProgram::pump() {
  if (units_->are_receives_due()) post_receives();
  post_sends();
}

void ReductionProgram::post_receives() {
  while (const auto next = units_->next_receive()) {
    rnic::Sge place = result_slot(next->slot);
    if (next->is_direct) {
      place = {next->offset, next->bytes, own_memory(next->operation)->result_keys.lkey};
    }
    post_receive(host_, member().qpn, place, next->slot);
    units_->on_receive_posted();
  }
}

// In lists, of which the last request alone is signaled.
void ReductionProgram::post_sends() {
  auto part = units_->next_contribution();
  for (std::uint32_t listed = 1; part; ++listed) {
    units_->on_contributed();
    const auto next = units_->next_contribution();
    rnic::SendWr wr;
    wr.wr_id = part->send;
    wr.op = rnic::SendOp::kSendImm;
    wr.signaled = !next || listed == units_->most_listed();
    wr.imm = part->imm;
    if (wr.signaled) listed = 0;
    ledger_.on_contributed(index_);
    post_send(host_, member().qpn, contribution_of(*part), wr);
    part = next;
  }
}

rnic::Sge ReductionProgram::contribution_of(const mcast::ReductionUnits::Part& part) {
  if (const OwnMemory* const own = own_memory(part.operation)) {
    return {part.offset, part.bytes, own->contribution_keys.lkey};
  }
  const rnic::Sge piece = sent_slot(part.slot, part.bytes);
  for (std::uint32_t i = 0; i < part.bytes; ++i) {
    memory_[piece.address + i] = ledger_.contribution(index_, part.operation, part.offset + i);
  }
  return piece;
}

void ReductionProgram::on_completion(Instant, const rnic::Completion& completion) {
  if (!is_open_ || has_failed_) return;
  if (completion.status != rnic::WcStatus::kSuccess) {
    fail("a work request ended with " + std::string(rnic::to_string(completion.status)));
  } else if (completion.opcode == rnic::WcOpcode::kRecv) {
    answered_ = simulator_.now();
    take(completion);
  } else {
    units_->on_sends_done(static_cast<std::uint32_t>(completion.wr_id));
  }
  if (!has_failed_) {
    end_own_memories();
    pump();
    begin_soon();
  }
  carry_out();
}

void ReductionProgram::take(const rnic::Completion& completion) {
  const std::uint64_t at = result_slot(static_cast<std::uint32_t>(completion.wr_id)).address;
  const auto part = units_->on_result(completion.imm, completion.byte_len);
  if (!part) return fail(part.error().text, &ReductionLedger::on_wrong);
  if (part->slot != completion.wr_id) {
    return fail("a result is in another unit's slot", &ReductionLedger::on_wrong);
  }
  std::span<std::uint8_t> data = std::span(memory_).subspan(at, part->bytes);
  if (OwnMemory* const own = own_memory(part->operation)) {
    const auto result = std::span(own->results()).subspan(part->offset, part->bytes);
    if (!part->is_direct) std::ranges::copy(data, result.begin());
    data = result;
    own->has_result = part->is_last;
  }
  ledger_.on_part(index_, part->operation, part->offset, data);
  if (part->is_last) ledger_.on_ended(index_, part->operation);
}

void ReductionProgram::open_own_memory(std::size_t operation) {
  const ReductionOperation& one = ledger_.plan().operations[operation];
  own_.push_back({operation, units_->end(), false, {}, {}, {}, {}});
  OwnMemory& own = own_.back();
  own.contribution.resize(one.bytes);
  for (std::uint32_t i = 0; i < one.bytes; ++i) {
    own.contribution[i] = ledger_.contribution(index_, operation, i);
  }
  if (one.place == mcast::ReductionUnits::Place::kApart) {
    own.result.resize(one.bytes);
    own.result_keys = open_memory(host_, own.result);
  }
  own.contribution_keys = open_memory(host_, own.contribution, 0);  // the device only reads it
}

ReductionProgram::OwnMemory* ReductionProgram::own_memory(std::size_t operation) {
  const auto own = std::ranges::find(own_, operation, &OwnMemory::operation);
  return own == own_.end() ? nullptr : &*own;
}

// A device that repeats a contribution from memory that is gone would fail.
void ReductionProgram::end_own_memories() {
  while (!own_.empty() && own_.front().has_result && units_->sends_done() >= own_.front().end) {
    check_kept(own_.front());
    close_own_memory();
  }
}

// The whole result is still there, and the last W results that have arrived are in the slots, too:
// other members may lack them after a failure.
void ReductionProgram::check_kept(OwnMemory& own) {
  ledger_.check_kept(index_, own.operation, 0, own.results(), "its memory");
  const std::uint64_t window = units_->window(), size = units_->unit_bytes();
  const std::uint64_t kept_from = arrived_ - std::min(window, arrived_);
  const std::uint64_t units = (own.results().size() + size - 1) / size;
  for (std::uint64_t i = 0; i < units; ++i) {
    const std::uint64_t unit = own.end - units + i;
    if (unit < kept_from) continue;
    const std::uint64_t bytes = std::min(size, own.results().size() - i * size);
    const rnic::Sge slot = result_slot(static_cast<std::uint32_t>(unit & (window - 1)));
    ledger_.check_kept(index_, own.operation, i * size,
                       std::span(memory_).subspan(slot.address, bytes), "its slot");
  }
}

void ReductionProgram::close_own_memory() {
  const OwnMemory& own = own_.front();
  if (!own.contribution.empty()) host_.nic().deregister_memory(own.contribution_keys.lkey);
  if (!own.result.empty()) host_.nic().deregister_memory(own.result_keys.lkey);
  own_.pop_front();
}

// The group ends with its first failure, so the other members must learn of it.
void ReductionProgram::fail(const std::string& why, Report report) {
  if (std::exchange(has_failed_, true)) return;
  (ledger_.*report)(index_, why);
  static_cast<void>(set_state(host_, member().qpn, rnic::QpState::kErr));
  if (registration_) {
    registration_->give_up(simulator_.now(), why, out_);
  } else {
    membership_.leave(simulator_.now(), out_);
  }
}

}  // namespace cepheus::sim
