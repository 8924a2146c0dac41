// For tests of the engine: a member of a group, whose queue pair only notes what is done to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/test_network.h"
#include "libmcast/engine/group_engine.h"

namespace cepheus::mcast {

struct Member {
  explicit Member(std::uint32_t number, bool of_sender_group = false, std::uint16_t path_mtu = 0,
                  bool can_receive = true, std::optional<wire::MrpReduction> reduction = {})
      : engine({.self = mrp::test::member(number),
                .path_mtu = path_mtu,
                .is_sender_group = of_sender_group,
                .reduction = reduction,
                .sender_time_limit = std::chrono::seconds(8),
                .receiver_time_limit = std::chrono::seconds(5),
                .can_receive = can_receive}) {}

  // An event, and the actions that come of it. Messages stay in `out`.
  template <typename Event, typename... Args>
  void handle(Event event, const Args&... args) {
    static_cast<void>((engine.*event)(args..., out));
    perform();
  }
  void fail(wire::Instant now, mcast_cause_t cause, const std::string& reason) {
    handle(&GroupEngine::fail, now, MCAST_ERR_FABRIC, cause, reason);
  }
  void perform() {
    while (const auto action = out.take_action()) perform(*action);
  }
  void perform(const GroupAction& action) {
    using Kind = GroupAction::Kind;
    switch (action.kind) {
      case Kind::kConnect:
        steps.push_back("connect " + action.remote.address.to_string());
        psns = {action.remote.start, action.remote.start};
        if (!is_slow) engine.connected(mrp::test::kStart, connects, out);
        return;
      case Kind::kCheckHostSync:
        steps.emplace_back("host-sync");
        return;
      case Kind::kStep:
        take_step(action.step);
        if (!is_slow) engine.stepped(mrp::test::kStart, {}, out);
        return;
      case Kind::kPostReceives:
        return post_kept();
      case Kind::kStop:
        steps.emplace_back("stop");
        return;
    }
  }
  void take_step(PairSync::Step step) {
    using Step = PairSync::Step;
    steps.emplace_back(step == Step::kStop         ? "halt"
                       : step == Step::kReceivePsn ? "receive at the send PSN"
                                                   : "send at the receive PSN");
    if (step == Step::kReceivePsn) psns.receive = psns.send;
    if (step == Step::kSendPsn) psns.send = psns.receive;
    if (step != Step::kStop) post_kept();
  }
  void post_kept() {
    for (const std::uint64_t receive : sync().take_kept()) {
      steps.push_back("post " + std::to_string(receive));
    }
  }
  Expected<void> check_send(std::uint64_t packets) {
    show_psns();
    if (const auto stands = group().check_active(); !stands) return stands;
    return sync().check_send(packets);
  }
  void end_send(std::uint64_t packets) {
    engine.work().on_send_ended(packets, true);
    show_psns();
  }
  void end_receive() {
    engine.work().on_receive_ended(true);
    show_psns();
  }
  void show_psns() {
    if (sync().wants_psns()) handle(&GroupEngine::on_psns, mrp::test::kStart, device_psns());
  }
  Expected<PairSync::Psns> device_psns() const {
    if (!has_device) return mcast::fail(MCAST_ERR_NO_DEVICE, "the device is gone");
    return psns;
  }
  const GroupState& group() const { return engine.group(); }
  PairSync& sync() { return engine.work().sync(); }

  Expected<void> connects;  // the outcome
  bool is_slow = false;     // connects and takes steps later: the test hands the outcome in
  bool has_device = true;
  PairSync::Psns psns;
  std::vector<std::string> steps;
  GroupEngine engine;
  GroupOutput out;
};

// Delivers the messages that `from` has sent.
inline void give(Member& from, Member& to, wire::Instant now) {
  const wire::Ipv4 host = from.group().member().host;
  for (const wire::MrpMessage& m : std::exchange(from.out.messages, {})) {
    to.handle(&GroupEngine::on_message, now, host, m);
  }
  for (const wire::SenderGroupMessage& m : std::exchange(from.out.of_sender_groups, {})) {
    to.handle(&GroupEngine::on_sender_group_message, now, host, m);
  }
}
// ... of both, and their answers.
inline void deliver(Member& a, Member& b, wire::Instant now) {
  const auto is_silent = [](const Member& member) {
    return member.out.messages.empty() && member.out.of_sender_groups.empty();
  };
  while (!is_silent(a) || !is_silent(b)) {
    give(a, b, now);
    give(b, a, now);
  }
}

}  // namespace cepheus::mcast
