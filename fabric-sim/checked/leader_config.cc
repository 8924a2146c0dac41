#include "fabric-sim/checked/leader_config.h"

#include "fabric-sim/checked/scenario_plan.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kInstance = 1;

mrp::LostMember loss_in(const GroupPlan& plan) {
  return plan.loss_ends ? mrp::LostMember::kEndsGroup : mrp::LostMember::kEvicted;
}

}  // namespace

mrp::RegistrationConfig leader_config(const Host& host, const GroupPlan& plan,
                                      const TransportPlan& transport) {
  mrp::RegistrationConfig config;
  config.lost_member = loss_in(plan);
  config.host = host.address();
  config.instance = kInstance;
  config.repeats.set_up = {400us, 2ms};
  config.repeats.refresh = {3ms, 3ms};
  config.repeats.evict = {400us, 2ms, 20};
  config.repeats.unregister = {400us, 2ms, 6};
  config.refresh_pending = 10ms;  // several of them within the switches' pending_age
  config.request_again = 500us;
  config.evict_after = transport.silence();
  config.asker_time_limit = transport.silence() / 5;  // the same proportion as live
  config.source_grace = 2ms;
  return config;
}

mrp::SenderConfig sender_config(const Host& host, const GroupPlan& plan,
                                const TransportPlan& transport) {
  mrp::SenderConfig config;
  config.lost_receiver = loss_in(plan);
  config.host = host.address();
  config.instance = kInstance;
  config.control_port = plan.control_port();
  config.virtual_qpn = virtual_qpn_of(plan);
  config.repeats.set_up = {400us, 2ms};
  config.repeats.install = {400us, 1ms};
  config.repeats.unregister = {400us, 2ms, 6};
  config.request_again = 500us;
  // A NAK may have used one of the sender's retries, and with it half of their time.
  config.evict_after = transport.silence() / 2;
  return config;
}

}  // namespace cepheus::sim
