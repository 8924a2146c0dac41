// Block storage in a fat-tree: clients that read from and write to three replicas of what they
// store (MC-RDMA VII-E).
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
  std::size_t pod = 9;                   // hosts of one; a group's replicas are in three
  std::size_t groups_of_a_primary = 10;  // of each storing host
  double load = 0.5;            // reads and writes that clients ask for, of their links of 100 Gb/s
  std::size_t requests = 1000;  // of all clients; every second one reads, at random
};

// Each client's requests come as a Poisson process. A write goes to the group's primary, which
// sends it to the two other replicas when it has it; a read asks any of the three, which sends the
// data.
class StorageCluster {
 public:
  // The same seed makes the same requests, whatever the way. The network has clients + three pods
  // of hosts.
  StorageCluster(Testbed& testbed, ReplicationWay way, const StoragePlan& plan,
                 const MessageSizes& sizes, std::uint64_t seed);
  ~StorageCluster();

  // All requests, from the first to the last one's end.
  void run(Testbed& testbed);
  // Mean time in us of the reads among the requests [first, last), numbered as they were issued.
  // Preconditions: run() has returned, and one of them is a read.
  double mean_read(std::size_t first, std::size_t last) const;

 private:
  class Client;
  struct Group {
    std::vector<std::size_t> hosts;  // the primary first
    std::unique_ptr<Replication> replicas;
  };
  // Messages from one host to another; each has something to be done when it has come.
  struct Way {
    Way(Testbed& testbed, std::size_t from, std::size_t to) : channel(testbed, from, to) {}
    Channel channel;
    std::deque<std::function<void(Instant)>> then;
  };
  enum class Traffic { kRequest, kRead, kWrite };  // each has connections of its own

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
