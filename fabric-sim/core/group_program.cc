// Each call of the engine ends in carry_out(): perform its actions, send its datagrams, request a
// timer for its deadline, and tell the derived class. Connecting and steps take no virtual time,
// and a failure throws. While programs are stalled, the timer waits for them. A program whose PSNs
// would have to move must override take_step().
#include "fabric-sim/core/group_program.h"

namespace cepheus::sim {
namespace {

void require_led(const mcast::Expected<void>& led) {
  if (!led) throw std::logic_error("a simulated leader: " + led.error().text);
}

}  // namespace

GroupProgram::GroupProgram(Simulator& simulator, Host& host, const Config& config)
    : simulator_(simulator),
      host_(host),
      timers_(config.timers),
      engine_({.self = {host.address(), config.qpn, 0, config.control_port, config.token},
               .path_mtu = static_cast<std::uint16_t>(host.nic().config().max_mtu),
               .is_sender_group = config.is_sender_group,
               .reduction = config.reduction,
               .sender_time_limit = wire::times::kSenderGivesUp,
               .receiver_time_limit = config.receiver_time_limit,
               .sender_lives = config.sender_lives,
               .requests_after = config.requests_after,
               .presence = config.presence},
              config.regions) {
  host_.listen(*this, config.control_port);
}

void GroupProgram::lead(const mrp::RegistrationConfig& config,
                        const mrp::McstAllocator::Lease& lease,
                        std::span<const mrp::MrpMember> members) {
  require_led(engine_.lead(now(), config, lease, members, out_));
  carry_out();
}

void GroupProgram::lead_as_sender(const mrp::SenderConfig& config,
                                  std::span<const mrp::MrpMember> members,
                                  std::span<const wire::MrpRegion::Record> regions) {
  require_led(engine_.lead_as_sender(now(), config, members, regions, out_));
  carry_out();
}

void GroupProgram::leave() {
  is_leaving_ = true;
  engine_.leave(now(), out_);
  carry_out();
}

void GroupProgram::on_event(Instant now, std::uint64_t) {
  if (!is_open_) return;
  if (host_.programs_awake_at() > now) {
    return simulator_.schedule(host_.programs_awake_at(), *this, kGroupTimer);
  }
  if (timer_at_ <= now) timer_at_ = wire::kNever;
  engine_.on_timer(now, out_);
  carry_out();
}

void GroupProgram::on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) {
  if (!is_open_) return;
  engine_.on_message(now, from, message, out_);
  carry_out();
}

void GroupProgram::on_sender_group(Instant now, wire::Ipv4 from,
                                   const wire::SenderGroupMessage& message) {
  if (!is_open_) return;
  engine_.on_sender_group_message(now, from, message, out_);
  carry_out();
}

void GroupProgram::carry_out() {
  perform();
  const std::uint16_t port = member().control_port;
  for (const wire::MrpMessage& m : out_.messages) host_.send_datagram(m, port);
  for (const wire::SenderGroupMessage& m : out_.of_sender_groups) {
    host_.send_datagram(mrp::destination(m), m, port);
  }
  out_.clear();
  if (const Instant due = engine_.role().deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this, kGroupTimer);
  }
  on_change(now());
}

void GroupProgram::perform() {
  using Kind = mcast::GroupAction::Kind;
  while (const auto action = out_.take_action()) {
    switch (action->kind) {
      case Kind::kConnect:
        connect(action->remote);
        engine_.connected(now(), {}, out_);
        break;
      case Kind::kStep:
        take_step(action->step);
        engine_.stepped(now(), {}, out_);
        break;
      case Kind::kPostReceives:
        post_kept();
        break;
      case Kind::kStop:  // all posted requests complete as flushed
        static_cast<void>(set_state(host_, qpn(), rnic::QpState::kErr));
        break;
      case Kind::kCheckHostSync:
        break;
    }
  }
}

void GroupProgram::connect(const mcast::RemoteEnd& remote) {
  sim::connect(host_, qpn(), remote, timers_);
}

void GroupProgram::read_psns_if_wanted() {
  if (!sync().wants_psns()) return;
  const rnic::QpAttr pair = require(host_.nic().query_qp(qpn()));
  engine_.on_psns(now(), mcast::PairSync::Psns{pair.sq_psn, pair.rq_psn}, out_);
  perform();
}

void GroupProgram::take_step(mcast::PairSync::Step) {
  throw std::logic_error("this simulated program can't move its queue pair's PSNs");
}

}  // namespace cepheus::sim
