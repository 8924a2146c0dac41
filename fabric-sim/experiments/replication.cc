// Fan-out: a message counts as acknowledged when the slowest connection has acknowledged as many.
// Chain: each receiver passes a message on when it has all of it; the last one's empty answer goes
// back over connections of its own. Connections are ready at once; only the sender group takes time
// to set up.
#include "fabric-sim/experiments/replication.h"

#include <algorithm>
#include <deque>

#include "fabric-sim/experiments/message_ends.h"
#include "fabric-sim/experiments/sender_group.h"

namespace cepheus::sim {
namespace {

class FanOut final : public Replication {
 public:
  FanOut(Testbed& testbed, std::size_t sender, const std::vector<std::size_t>& receivers)
      : acknowledged_by_(receivers.size()) {
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      channels_.push_back(std::make_unique<Channel>(testbed, sender, receivers[i]));
      channels_.back()->sink.on_received([this, i](Instant now) { note_received(i, now); });
      channels_.back()->source.on_acknowledged([this, i](Instant now) { take(i, now); });
    }
  }
  void send(std::uint32_t bytes) override {
    for (const auto& channel : channels_) channel->source.send(bytes);
  }

 private:
  void take(std::size_t receiver, Instant now) {
    ++acknowledged_by_[receiver];
    if (*std::ranges::min_element(acknowledged_by_) == by_all_) return;
    ++by_all_;
    note_acknowledged(now);
  }

  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::uint64_t> acknowledged_by_;  // messages, by receiver
  std::uint64_t by_all_ = 0;
};

class ChainReplication final : public Replication {
 public:
  ChainReplication(Testbed& testbed, std::size_t sender,
                   const std::vector<std::size_t>& receivers) {
    std::size_t from = sender;
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      links_.push_back(std::make_unique<Link>(testbed, from, receivers[i]));
      links_[i]->down.sink.on_received([this, i](Instant now) { take(i, now); });
      links_[i]->up.sink.on_received([this, i](Instant now) { answer(i, now); });
      from = receivers[i];
    }
  }
  void send(std::uint32_t bytes) override { pass(0, bytes); }

 private:
  struct Link {
    Link(Testbed& testbed, std::size_t from, std::size_t to)
        : down(testbed, from, to), up(testbed, to, from) {}
    Channel down, up;
    std::deque<std::uint32_t> under_way;  // bytes of each message
  };

  void pass(std::size_t link, std::uint32_t bytes) {
    links_[link]->under_way.push_back(bytes);
    links_[link]->down.source.send(bytes);
  }
  void take(std::size_t receiver, Instant now) {
    const std::uint32_t bytes = links_[receiver]->under_way.front();
    links_[receiver]->under_way.pop_front();
    note_received(receiver, now);
    if (receiver + 1 < links_.size()) {
      pass(receiver + 1, bytes);
    } else {
      links_[receiver]->up.source.send(0);
    }
  }
  void answer(std::size_t link, Instant now) {
    if (link == 0) return note_acknowledged(now);
    links_[link - 1]->up.source.send(0);
  }

  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace

const char* name_of(ReplicationWay way) {
  if (way == ReplicationWay::kMcRdma) return "mc-rdma";
  return way == ReplicationWay::kFanOut ? "fan-out" : "chain replication";
}

std::unique_ptr<Replication> make_replication(ReplicationWay way, Testbed& testbed,
                                              std::size_t sender,
                                              const std::vector<std::size_t>& receivers,
                                              std::uint32_t number) {
  if (way == ReplicationWay::kMcRdma) {
    return std::make_unique<SenderGroup>(testbed, sender, receivers, number);
  }
  if (way == ReplicationWay::kFanOut) return std::make_unique<FanOut>(testbed, sender, receivers);
  return std::make_unique<ChainReplication>(testbed, sender, receivers);
}

void make_ready(Testbed& testbed, const std::vector<std::unique_ptr<Replication>>& all) {
  for (const auto& one : all) one->begin();
  testbed.run_until(
      [&] { return std::ranges::all_of(all, [](const auto& one) { return one->is_ready(); }); });
}

}  // namespace cepheus::sim
