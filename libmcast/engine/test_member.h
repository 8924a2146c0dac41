// For tests of the engine: a member of a group without a queue pair. The test is its port.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "controller/test_network.h"
#include "libmcast/engine/group_engine.h"

namespace cepheus::mcast {

// Stands in for a queue pair, a lane and regions.
struct FakePort final : GroupPort {
  bool has_receiver = true, connects = true, knows_regions = true, confirms_regions = false;
  bool is_slow = false;  // connects and takes steps later: the test tells the engine
  wire::Psn send_psn, receive_psn;
  bool has_device = true;
  int regions_begun = 0;
  std::vector<std::string> steps;

  bool can_receive() const override { return has_receiver; }
  Expected<bool> connect(const RemoteEnd& remote) override {
    steps.push_back("connect " + remote.address.to_string());
    if (!connects) return fail(MCAST_ERR_NO_DEVICE, "no route to host");
    send_psn = receive_psn = remote.start;
    return !is_slow;
  }
  void on_sync_due() override { steps.emplace_back("sync due"); }
  void on_host_sync() override { steps.emplace_back("host-sync"); }
  Expected<Psns> psns() override {
    if (!has_device) return fail(MCAST_ERR_NO_DEVICE, "the device is gone");
    return Psns{send_psn, receive_psn};
  }
  Expected<bool> take_step(mrp::PsnSync::Step step, KeptReceives& kept) override {
    steps.emplace_back(step == mrp::PsnSync::Step::kStop         ? "halt"
                       : step == mrp::PsnSync::Step::kReceivePsn ? "receive at the send PSN"
                                                                 : "send at the receive PSN");
    if (step == mrp::PsnSync::Step::kReceivePsn) receive_psn = send_psn;
    if (step == mrp::PsnSync::Step::kSendPsn) send_psn = receive_psn;
    if (step != mrp::PsnSync::Step::kStop) post_again(kept);
    return !is_slow;
  }
  bool post_again(KeptReceives& kept) override {
    for (const std::uint64_t receive : std::exchange(kept, {})) {
      steps.push_back("post " + std::to_string(receive));
    }
    return true;
  }
  void on_failed() override { steps.emplace_back("failed"); }
  void begin_regions(wire::Instant, const wire::MrpHeader&) override { ++regions_begun; }
  bool confirm_regions(wire::Instant, const wire::MrpHeader&) override { return confirms_regions; }
  bool are_regions_in_force() const override { return knows_regions; }
};

struct Member {
  explicit Member(std::uint32_t number, bool of_sender_group = false, std::uint16_t path_mtu = 0)
      : engine(port, {mrp::test::member(number), path_mtu, of_sender_group, std::chrono::seconds(8),
                      std::chrono::seconds(5)}) {}
  FakePort port;
  GroupEngine engine;
};
}  // namespace cepheus::mcast
