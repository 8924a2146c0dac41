// Two tables: limits of one setting by a time of the protocol, and pairs of which one must be
// shorter. They are checked in their order, and the first broken rule is reported with the default
// as remedy. A limit itself is not allowed: the value must be above or below it.
#include "net/time_settings.h"

#include "net/units.h"

namespace cepheus::net {
namespace {

namespace times = wire::times;
using namespace std::chrono_literals;

constexpr Duration kLeastHello = 100us;
// Instants are sums of ages, as 64-bit nanoseconds.
constexpr Duration kMost = 365 * 24h;

struct TimeLimit {
  const char* setting;
  Duration SwitchConfig::*value;
  enum { kAbove, kBelow } side;
  Duration limit;
  const char* why;  // the limit, and the failure beyond it
};

const TimeLimit kTimeLimits[] = {
    {"confirm_wait", &SwitchConfig::confirm_wait, TimeLimit::kBelow, times::kFirstRetry / 4,
     "over four switches a leader would repeat REGISTER before members' CONFIRMs arrive"},
    {"pending_age", &SwitchConfig::pending_age, TimeLimit::kAbove, times::kLeastPending,
     "a registration that a leader still refreshes every second would be forgotten"},
    {"orphan_age", &SwitchConfig::orphan_age, TimeLimit::kAbove, times::kSenderLives,
     "receivers with a younger INSTALL don't believe that their sender is gone"},
    {"orphan_age", &SwitchConfig::orphan_age, TimeLimit::kBelow, times::kSenderGivesUp / 2,
     "senders would give their group up before it ends without its leader"},
    {"gate_age", &SwitchConfig::gate_age, TimeLimit::kAbove, times::kLeaderEvicts,
     "a newcomer would be refused before the leader has evicted a silent member"},
    {"feedback_wait", &SwitchConfig::feedback_wait, TimeLimit::kBelow, times::kSourceRepeats,
     "sources time out before that"},
    {"rest", &SwitchConfig::rest, TimeLimit::kAbove, times::kLongestRetry,
     "a leader's repeats of UNREGISTER would not be answered"},
    {"rest", &SwitchConfig::rest, TimeLimit::kBelow, times::kAddressRest,
     "hosts would draw group addresses that the switch still refuses"},
    {"age", &SwitchConfig::age, TimeLimit::kAbove, 3 * times::kRefresh,
     "two lost REFRESHs of a leader would end its group"},
    {"age", &SwitchConfig::age, TimeLimit::kBelow, kMost, "it is more than a year"},
    {"cnp_window", &SwitchConfig::cnp_window, TimeLimit::kAbove, times::kCnpGap,
     "NICs send no two notifications of a connection within this time"},
    {"cnp_window", &SwitchConfig::cnp_window, TimeLimit::kBelow, kMost, "it is more than a year"},
};

struct Order {
  const char* shorter;
  Duration SwitchConfig::*first;
  const char* longer;
  Duration SwitchConfig::*second;
  const char* why;
};
const Order kOrders[] = {
    {"pending_age", &SwitchConfig::pending_age, "age", &SwitchConfig::age,
     "a group would be forgotten sooner once it is active"},
    {"gate_age", &SwitchConfig::gate_age, "age", &SwitchConfig::age,
     "the group would be deleted before its newcomer gets an error"},
};

std::string setting_text(const char* name, Duration value) {
  return std::string(name) + " = \"" + to_text(value) + "\"";
}

std::string advice(const char* name, Duration usual) {
  return "; write " + setting_text(name, usual) + ", or leave it out";
}

}  // namespace

std::optional<TimeProblem> find_time_problem(const SwitchConfig& config) {
  const SwitchConfig usual;
  for (const TimeLimit& rule : kTimeLimits) {
    const Duration value = config.*rule.value;
    const bool holds = rule.side == TimeLimit::kAbove ? value > rule.limit : value < rule.limit;
    if (holds) continue;
    return TimeProblem{rule.setting, setting_text(rule.setting, value) + " is not " +
                                         (rule.side == TimeLimit::kAbove ? "above " : "below ") +
                                         to_text(rule.limit) + ": " + rule.why +
                                         advice(rule.setting, usual.*rule.value)};
  }
  for (const Order& order : kOrders) {
    const Duration shorter = config.*order.first, longer = config.*order.second;
    if (shorter < longer) continue;
    return TimeProblem{order.shorter, setting_text(order.shorter, shorter) + " is not below " +
                                          setting_text(order.longer, longer) + ": " + order.why +
                                          advice(order.shorter, usual.*order.first)};
  }
  return std::nullopt;
}

std::string problem_of_hello(Duration hello) {
  constexpr Duration kMostHello = times::kSenderGivesUp / times::kHellosMissed;
  if (hello.count() == 0 || (hello >= kLeastHello && hello < kMostHello)) return {};
  const std::string limit = hello < kLeastHello
                                ? " is below " + to_text(kLeastHello) + ": no switch keeps that up"
                                : " is not below " + to_text(kMostHello) +
                                      ": senders would give their group up before " +
                                      std::to_string(times::kHellosMissed) +
                                      " unanswered HELLOs show that a trunk is silent";
  return setting_text("hello", hello) + limit + "; write " + setting_text("hello", times::kHello) +
         ", or \"0ns\" for none";
}

}  // namespace cepheus::net
