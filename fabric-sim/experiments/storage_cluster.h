// Block storage in a fat-tree: clients read from and write to three replicas of their data (MC-RDMA
// VII-E).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "fabric-sim/experiments/message_ends.h"
#include "fabric-sim/experiments/message_sizes.h"
#include "fabric-sim/experiments/replication.h"

namespace cepheus::sim {

struct StoragePlan {
  std::size_t clients = 27;              // the first hosts; the others store
  std::size_t pod = 9;                   // hosts of a pod; a group's replicas are in three pods
  std::size_t groups_of_a_primary = 10;  // of each storing host
  double load = 0.5;  // requested reads and writes, as a share of the clients' links of 100 Gb/s
  std::size_t requests = 1000;  // of all clients; half of them reads, at random
};

// Each client's requests come as a Poisson process. A write goes to the group's primary, which
// sends it on to the two other replicas. A read goes to any of the three, which sends the data.
class StorageCluster {
 public:
  // Equal seeds give equal requests with all methods. The network has the clients and three pods of
  // hosts.
  StorageCluster(Testbed& testbed, ReplicationWay way, const StoragePlan& plan,
                 const MessageSizes& sizes, std::uint64_t seed);
  ~StorageCluster();

  // Runs all requests, until the last one ends.
  void run(Testbed& testbed);
  // Mean time in us of the reads among the requests [first, last), numbered by time of issue.
  // Preconditions: run() has returned, and one of them is a read.
  double mean_read(std::size_t first, std::size_t last) const;

 private:
  class Client;
  struct Group {
    std::vector<std::size_t> hosts;  // the primary first
    std::unique_ptr<Replication> replicas;
  };
  // Messages from one host to another; each has an action on arrival.
  struct Way {
    Way(Testbed& testbed, std::size_t from, std::size_t to) : channel(testbed, from, to) {}
    Channel channel;
    std::deque<std::function<void(Instant)>> then;
  };
  enum class Traffic { kRequest, kRead, kWrite };  // each has its own connections

  void add_groups(ReplicationWay way, const StoragePlan& plan, std::uint64_t seed);
  void send(Traffic traffic, std::size_t from, std::size_t to, std::uint32_t bytes,
            std::function<void(Instant)> then);
  void issue(std::size_t client, Random& random);

  Testbed& testbed_;
  const StoragePlan plan_;
  const MessageSizes sizes_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::tuple<Traffic, std::size_t, std::size_t>, std::unique_ptr<Way>> ways_;
  std::size_t issued_ = 0, ended_ = 0;
  struct Read {
    std::size_t number;  // of the request
    double us;
  };
  std::vector<Read> reads_;
};

}  // namespace cepheus::sim
