// A request: the client draws its group, replica, size and kind; then the gap to its next one.
// Connections are made at the first message between two hosts for one purpose, and stay. The run
// ends when every request has ended, so those of an overloaded system count, too.
//
// A write ends when the primary knows that both others have it; its answer to the client is not
// simulated. Source: MC-RDMA VII-E.
#include "fabric-sim/experiments/storage_cluster.h"

#include <cassert>
#include <cmath>

namespace cepheus::sim {

constexpr std::uint32_t kRequestBytes = 64;  // bytes of a read request
constexpr std::size_t kReplicas = 3;
constexpr double kGigabits = 100;  // a second, of a client's link

class StorageCluster::Client final : public Actor {
 public:
  Client(StorageCluster& cluster, std::size_t number, double mean_gap_ns, std::uint64_t seed)
      : cluster_(cluster), number_(number), mean_gap_ns_(mean_gap_ns), random_(seed) {}

  void schedule_next(Instant now) {
    const double gap = -std::log(1 - random_.fraction()) * mean_gap_ns_;
    cluster_.testbed_.simulator().schedule(now + wire::Duration(std::llround(gap)), *this);
  }
  void on_event(Instant now, std::uint64_t) override {
    if (cluster_.issued_ == cluster_.plan_.requests) return;
    cluster_.issue(number_, random_);
    schedule_next(now);
  }

 private:
  StorageCluster& cluster_;
  const std::size_t number_;
  const double mean_gap_ns_;
  Random random_;
};

StorageCluster::StorageCluster(Testbed& testbed, ReplicationWay way, const StoragePlan& plan,
                               const MessageSizes& sizes, std::uint64_t seed)
    : testbed_(testbed), plan_(plan), sizes_(sizes) {
  add_groups(way, plan, seed);
  const double gap_ns = sizes.mean() * 8 / kGigabits / plan.load;
  Random seeds(seed);
  for (std::size_t c = 0; c < plan.clients; ++c) {
    clients_.push_back(std::make_unique<Client>(*this, c, gap_ns, seeds.next()));
  }
}

StorageCluster::~StorageCluster() = default;

// The two other replicas are in the two other storing pods.
void StorageCluster::add_groups(ReplicationWay way, const StoragePlan& plan, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::unique_ptr<Replication>> all;
  for (std::size_t primary = 0; primary < kReplicas * plan.pod; ++primary) {
    for (std::uint32_t number = 0; number < plan.groups_of_a_primary; ++number) {
      Group group;
      for (std::size_t i = 0; i < kReplicas; ++i) {
        const std::size_t pod = (primary / plan.pod + i) % kReplicas;
        const std::size_t place = i == 0 ? primary % plan.pod : random.below(plan.pod);
        group.hosts.push_back(plan.clients + pod * plan.pod + place);
      }
      all.push_back(make_replication(way, testbed_, group.hosts[0],
                                     {group.hosts[1], group.hosts[2]}, number));
      groups_.push_back(std::move(group));
    }
  }
  make_ready(testbed_, all);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].replicas = std::move(all[g]);
    groups_[g].replicas->on_acknowledged([this](Instant) { ++ended_; });
  }
}

void StorageCluster::send(Traffic traffic, std::size_t from, std::size_t to, std::uint32_t bytes,
                          std::function<void(Instant)> then) {
  std::unique_ptr<Way>& way = ways_[{traffic, from, to}];
  if (!way) {
    way = std::make_unique<Way>(testbed_, from, to);
    way->channel.sink.on_received([w = way.get()](Instant now) {
      const auto next = std::move(w->then.front());
      w->then.pop_front();
      next(now);
    });
  }
  way->then.push_back(std::move(then));
  way->channel.source.send(bytes);
}

void StorageCluster::issue(std::size_t client, Random& random) {
  const std::size_t number = issued_++;
  const Instant begin = testbed_.simulator().now();
  const std::size_t g = random.below(groups_.size());
  const std::size_t replica = groups_[g].hosts[random.below(kReplicas)];
  const std::uint32_t bytes = sizes_.draw(random);
  if (random.chance(0.5)) {
    send(Traffic::kRequest, client, replica, kRequestBytes, [=, this](Instant) {
      send(Traffic::kRead, replica, client, bytes, [=, this](Instant now) {
        reads_.push_back({number, microseconds(now - begin)});
        ++ended_;
      });
    });
  } else {
    send(Traffic::kWrite, client, groups_[g].hosts[0], bytes,
         [=, this](Instant) { groups_[g].replicas->send(bytes); });
  }
}

void StorageCluster::run(Testbed& testbed) {
  for (const auto& client : clients_) client->schedule_next(testbed.simulator().now());
  testbed.run_until([&] { return ended_ == plan_.requests; });
}

double StorageCluster::mean_read(std::size_t first, std::size_t last) const {
  double sum = 0;
  std::size_t count = 0;
  for (const Read& read : reads_) {
    if (read.number < first || read.number >= last) continue;
    sum += read.us;
    ++count;
  }
  assert(count > 0);
  return sum / static_cast<double>(count);
}

}  // namespace cepheus::sim
