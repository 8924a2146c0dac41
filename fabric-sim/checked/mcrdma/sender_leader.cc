#include "fabric-sim/checked/mcrdma/sender_leader.h"

#include <algorithm>

#include "fabric-sim/checked/mcrdma/sender_plan.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

mrp::SenderConfig make_config(const Host& host, rnic::Qpn qpn, const GroupPlan& plan,
                              const TransportPlan& transport) {
  mrp::SenderConfig config;
  config.lost_receiver = plan.loss_ends ? mrp::LostMember::kEndsGroup : mrp::LostMember::kEvicted;
  config.host = host.address();
  config.instance = 1;
  config.control_port = plan.control_port();
  config.qpn = qpn;
  config.virtual_qpn = virtual_qpn_of(plan);
  config.start = wire::group_start_psn(plan.id, plan.epoch);
  config.repeats.set_up = {400us, 2ms};
  config.repeats.install = {400us, 1ms};
  config.repeats.farewell = {400us, 2ms, 6};
  config.ask_again = 500us;
  // A NAK has perhaps spent one of the sender's retries, and with it half of the time that they take.
  config.evict_after = transport.silence() / 2;
  return config;
}

}  // namespace

SenderLeader::SenderLeader(Simulator& simulator, Host& host,
                           const std::vector<std::unique_ptr<GroupMember>>& members,
                           GroupLedger& ledger, const ScenarioPlan& plan, Findings& findings)
    : simulator_(simulator),
      host_(host),
      members_(members),
      ledger_(ledger),
      findings_(findings),
      registration_(make_config(host, members[ledger.plan().leader]->identity().qpn, ledger.plan(),
                                plan.transport)),
      is_out_(members.size()) {
  host_.listen(*this, ledger.plan().control_port());
  member(ledger.plan().leader).set_ask([this] {
    registration_.ask(simulator_.now(), actions_);
    carry_out();
  });
}

void SenderLeader::start(const std::vector<wire::MrpMember>& members) {
  if (is_dead()) return;
  std::vector<wire::MrpMember> receivers;
  std::vector<wire::SenderGroupMessage::Region> regions;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == ledger_.plan().leader) continue;
    const auto number = static_cast<std::uint8_t>(receivers.size());
    if (const auto region = member(i).region()) regions.push_back({number, *region});
    receivers.push_back(members[i]);
  }
  const auto started = registration_.start(simulator_.now(), receivers, regions, actions_);
  if (!started) findings_.report(Invariant::kLiveness, started.error().text);
  carry_out();
}

void SenderLeader::unregister() {
  if (is_dead()) return;
  registration_.remove(simulator_.now(), actions_);
  carry_out();
}

void SenderLeader::on_event(Instant now, std::uint64_t) {
  if (is_dead()) return;
  if (host_.programs_awake_at() > now) return simulator_.schedule(host_.programs_awake_at(), *this);
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  if (registration_.deadline() <= now) registration_.on_timer(now, actions_);
  carry_out();
}

void SenderLeader::on_sender_group(Instant now, wire::Ipv4 from,
                                   const wire::SenderGroupMessage& message) {
  if (is_dead()) return;
  registration_.on_message(now, from, message, actions_);
  carry_out();
}

// Whoever can't be heard is taken out. That is a mistake unless it has died: a cut leaves a way to each
// receiver (add_trunk_cut), which switches find long before the sender gives a receiver up.
void SenderLeader::note_evictions() {
  const auto left = registration_.receivers();
  for (std::size_t i = 0; i < members_.size() && registration_.is_active(); ++i) {
    if (i == ledger_.plan().leader || is_out_[i]) continue;
    const auto is_it = [&](const wire::MrpMember& m) {
      return m.host == member(i).identity().host;
    };
    if (std::ranges::any_of(left, is_it)) continue;
    is_out_[i] = true;
    if (!ledger_.is_dead(i)) {
      findings_.report(Invariant::kLiveness,
                       "receiver " + std::to_string(i) + " lives, and is out");
    }
    ledger_.on_death(i);
  }
}

void SenderLeader::carry_out() {
  note_evictions();
  for (const wire::SenderGroupMessage& m : actions_.of_sender_groups) {
    host_.send_datagram(mrp::destination(m), m, ledger_.plan().control_port());
  }
  actions_.clear();
  if (registration_.is_active()) member(ledger_.plan().leader).begin(registration_);
  const bool has_failed = registration_.state() == mrp::SenderRegistration::State::kFailed;
  if (has_failed && !ledger_.may_fail()) {
    findings_.report(Invariant::kLiveness, "registration: " + registration_.error().text);
  }
  if (const Instant due = registration_.deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this);
  }
}

}  // namespace cepheus::sim
