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
  bool psns_apart = false, has_device = true;
  int regions_begun = 0;
  std::vector<std::string> steps;

  bool can_receive() const override { return has_receiver; }
  Expected<void> connect(const RemoteEnd& remote) override {
    steps.push_back("connect " + remote.address.to_string());
    if (!connects) return fail(MCAST_ERR_NO_DEVICE, "no route to host");
    return {};
  }
  void on_sync_due() override { steps.emplace_back("sync due"); }
  Expected<bool> are_psns_apart() override {
    if (!has_device) return fail(MCAST_ERR_NO_DEVICE, "the device is gone");
    return psns_apart;
  }
  Expected<void> take_step(mrp::PsnSync::Step step, KeptReceives& kept) override {
    steps.emplace_back(step == mrp::PsnSync::Step::kStop         ? "halt"
                       : step == mrp::PsnSync::Step::kReceivePsn ? "receive at the send PSN"
                                                                 : "send at the receive PSN");
    for (const std::uint64_t receive : std::exchange(kept, {})) {
      steps.push_back("post " + std::to_string(receive));
    }
    return {};
  }
  void on_failed() override { steps.emplace_back("failed"); }
  void begin_regions(wire::Instant, const wire::MrpHeader&) override { ++regions_begun; }
  bool confirm_regions(wire::Instant, const wire::MrpHeader&) override { return confirms_regions; }
  bool are_regions_in_force() const override { return knows_regions; }
};

struct Member {
  explicit Member(std::uint32_t number, bool of_sender_group = false)
      : engine(port, {mrp::test::member(number), of_sender_group, std::chrono::seconds(8),
                      std::chrono::seconds(5)}) {}
  FakePort port;
  GroupEngine engine;
};
}  // namespace cepheus::mcast
