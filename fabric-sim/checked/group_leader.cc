#include "fabric-sim/checked/group_leader.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kInstance = 1;

mrp::RegistrationConfig make_config(const Host& host, const GroupPlan& plan,
                                    const TransportPlan& transport) {
  mrp::RegistrationConfig config;
  config.lost_member = plan.loss_ends ? mrp::LostMember::kEndsGroup : mrp::LostMember::kEvicted;
  config.host = host.address();
  config.instance = kInstance;
  config.repeats.set_up = {400us, 2ms};
  config.repeats.refresh = {3ms, 3ms};
  config.repeats.evict = {400us, 2ms, 20};
  config.repeats.farewell = {400us, 2ms, 6};
  config.refresh_pending = 10ms;  // several within the switches' pending_age
  config.ask_again = 500us;
  config.evict_after = transport.silence();
  config.source_grace = 2ms;
  return config;
}

}  // namespace

McstLeader::McstLeader(Simulator& simulator, Host& host, GroupMember& own_member,
                       const GroupLedger& ledger, const TransportPlan& transport,
                       Findings& findings)
    : simulator_(simulator),
      host_(host),
      own_member_(own_member),
      ledger_(ledger),
      findings_(findings),
      registration_(make_config(host, ledger.plan(), transport), ledger.plan().id,
                    ledger.plan().epoch) {
  host_.listen(*this, ledger.plan().control_port());
  own_member_.set_ask([this] {
    registration_.ask(simulator_.now(), actions_);
    carry_out();
  });
}

void McstLeader::start(const std::vector<wire::MrpMember>& members) {
  if (is_dead()) return;
  own_member_.lead(kInstance);
  if (own_member_.has_regions()) {
    registration_.hold();
    own_member_.set_ready([this] {
      registration_.release(simulator_.now(), actions_);
      carry_out();
    });
  }
  const auto started = registration_.start(simulator_.now(), members, actions_);
  if (!started) findings_.report(Invariant::kLiveness, started.error().text);
  carry_out();
  own_member_.publish_as_leader(kInstance);
}

void McstLeader::unregister() {
  if (is_dead()) return;
  registration_.unregister(simulator_.now(), actions_);
  carry_out();
}

void McstLeader::on_event(Instant now, std::uint64_t) {
  if (is_dead()) return;
  if (host_.programs_awake_at() > now) return simulator_.schedule(host_.programs_awake_at(), *this);
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  if (registration_.deadline() <= now) registration_.on_timer(now, actions_);
  carry_out();
}

void McstLeader::on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) {
  if (is_dead()) return;
  registration_.on_message(now, from, message, actions_);
  carry_out();
}

void McstLeader::carry_out() {
  for (const wire::MrpMessage& m : actions_.messages) {
    host_.send_datagram(m, ledger_.plan().control_port());
  }
  actions_.clear();
  if (registration_.state() == mrp::Registration::State::kActive)
    own_member_.activate(registration_.host_sync());
  if (registration_.state() == mrp::Registration::State::kFailed && !ledger_.may_fail()) {
    findings_.report(Invariant::kLiveness, "registration: " + registration_.error().text);
  }
  if (const Instant due = registration_.deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this);
  }
}

}  // namespace cepheus::sim
