// The papers' second application: a client writes blocks to three replicas, by multicast WRITE or
// by a connection to each. Requests go one by one for latency, and sixteen at a time for rates. The
// time of the client's software is fitted to published numbers, so the rows with these check
// nothing.
//
// Announced WRITEs need payload that moves, because the switch reads it. A request is complete when
// the last of its WRITEs is.
#include <algorithm>
#include <memory>

#include "fabric-sim/core/connection.h"
#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/testbed.h"
#include "fabric-sim/experiments/unicast_run.h"

namespace cepheus::sim {
namespace storage {

using namespace std::chrono_literals;

constexpr std::size_t kReplicas = 3, kHosts = 1 + kReplicas;
constexpr std::uint32_t kKiB = 1024;
constexpr std::uint32_t kBlock = 8 * kKiB;  // of the papers' IOPS
constexpr std::uint32_t kLargest = 4096 * kKiB;
constexpr std::uint32_t kKey = 1;         // of the replicas' memory, at address 0
constexpr std::uint8_t kTimeoutCode = 7;  // 0.5 ms

// Time of the client's software. For one request at a time: fitted to the two published latencies
// of Cepheus fig. 10 (unicast_run.h). For back-to-back requests: to the published rates of one and
// of three unicasts.
struct Software {
  wire::Duration path;     // of a request's way through the host, independent of the load
  wire::Duration request;  // processor time of a request
  wire::Duration post;     // ... and for each WRITE of it; the NIC gets all of them at once
};
constexpr Software kOneByOne{kHostPath, 0ns, kHostPost}, kPipelined{0ns, 52ns, 790ns}, kNone{};

enum class Way { kMulticast, kAnnounced, kOneUnicast, kThreeUnicasts };

Testbed bed(Way way) {
  net::Topology topology = net::Topology::star(kHosts, paper_link(100, 0ns));
  for (net::SwitchSpec& one : topology.switches) {
    one.config.rules.write_mode =
        way == Way::kAnnounced ? net::WriteMode::kPerRequest : net::WriteMode::kSameKey;
  }
  return {std::move(topology), {.memory = kLargest, .moves_payload = way == Way::kAnnounced}};
}

// Target of WRITEs: a group, or a replica.
class Target {
 public:
  virtual ~Target() = default;
  virtual void post(std::uint32_t bytes) = 0;
};

class GroupTarget final : public Target {
 public:
  GroupTarget(Testbed& testbed, bool announces, std::function<void(Instant)> done)
      : group_(testbed, first_hosts(kHosts)) {
    if (announces) {
      group_.announce_writes(std::move(done));
    } else {
      group_.accept_writes(kKey, std::move(done));
    }
  }
  void post(std::uint32_t bytes) override { group_.write(0, bytes); }

 private:
  MulticastGroup group_;
};

class ReplicaTarget final : public Target, public CompletionClient {
 public:
  ReplicaTarget(Testbed& testbed, std::size_t replica, std::function<void(Instant)> done)
      : client_(testbed.network().host(0)), done_(std::move(done)) {
    Host& host = testbed.network().host(replica);
    lkey_ = open_memory(client_, testbed.memory()).lkey;
    rkey_ = open_memory(host, testbed.memory(), rnic::kLocalWrite | rnic::kRemoteWrite).rkey;
    const rnic::Qpn there = create_qp(host, kPosted, kPosted);
    qpn_ = create_qp(client_, kPosted, kPosted);
    sim::connect(client_, qpn_, {host.address(), there, kFirstPsn}, {kTimeoutCode});
    sim::connect(host, there, {client_.address(), qpn_, kFirstPsn}, {kTimeoutCode});
    client_.attach(qpn_, *this);
  }
  void post(std::uint32_t bytes) override {
    post_send(client_, qpn_, {0, bytes, lkey_},
              {.op = rnic::SendOp::kWrite, .signaled = true, .rkey = rkey_});
  }
  void on_completion(Instant now, const rnic::Completion& completion) override {
    require_success(completion);
    done_(now);
  }

 private:
  static constexpr std::uint32_t kPosted = 128;

  Host& client_;
  std::function<void(Instant)> done_;
  std::uint32_t lkey_ = 0, rkey_ = 0;
  rnic::Qpn qpn_;
};

// A client with this number of requests of one size, at most `depth` at a time. Each is a WRITE to
// every target, and is complete when the last of them is.
class Client final : public Actor {
 public:
  Client(Testbed& testbed, Way way, const Software& software, std::uint32_t bytes)
      : simulator_(testbed.simulator()), software_(software), bytes_(bytes) {
    const std::size_t count = way == Way::kThreeUnicasts ? kReplicas : 1;
    counts_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto done = [this, i](Instant now) { on_done(now, i); };
      if (way == Way::kMulticast || way == Way::kAnnounced) {
        targets_.push_back(std::make_unique<GroupTarget>(testbed, way == Way::kAnnounced, done));
      } else {
        targets_.push_back(std::make_unique<ReplicaTarget>(testbed, 1 + i, done));
      }
    }
  }

  // Time of all of them.
  wire::Duration run(Testbed& testbed, std::size_t requests, std::size_t depth) {
    requests_ = requests;
    depth_ = depth;
    const Instant begin = simulator_.now();
    post_next(begin);
    testbed.run_until([this] { return completed_ == requests_; });
    return completed_at_ - begin + software_.path;
  }

  // The processor has finished a request: its WRITEs go to the NIC.
  void on_event(Instant now, std::uint64_t) override {
    is_posting_ = false;
    for (const auto& target : targets_) target->post(bytes_);
    ++posted_;
    post_next(now);
  }

 private:
  void post_next(Instant now) {
    if (is_posting_ || posted_ == requests_ || posted_ == completed_ + depth_) return;
    is_posting_ = true;
    const auto writes = static_cast<std::int64_t>(targets_.size());
    simulator_.schedule(now + software_.request + writes * software_.post, *this);
  }
  void on_done(Instant now, std::size_t target) {
    ++counts_[target];
    const std::size_t all = *std::min_element(counts_.begin(), counts_.end());
    if (all == completed_) return;
    completed_ = all;
    completed_at_ = now;
    post_next(now);
  }

  Simulator& simulator_;
  const Software software_;
  const std::uint32_t bytes_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<std::size_t> counts_;  // completed WRITEs of each target
  std::size_t requests_ = 0, depth_ = 0, posted_ = 0, completed_ = 0;
  bool is_posting_ = false;
  Instant completed_at_{};
};

wire::Duration time_of(Way way, const Software& software, std::uint32_t bytes,
                       std::size_t requests = 1, std::size_t depth = 1) {
  Testbed testbed = bed(way);
  Client client(testbed, way, software, bytes);
  return client.run(testbed, requests, depth);
}

void run_latency(const ExperimentOptions&, Report& report) {
  const struct {
    std::uint32_t bytes;
    std::optional<double> paper;
  } sizes[] = {{512, {}},        {4 * kKiB, {}},    {8 * kKiB, -23},  {64 * kKiB, {}},
               {256 * kKiB, {}}, {512 * kKiB, -60}, {1024 * kKiB, {}}};
  for (const auto& [bytes, paper] : sizes) {
    report.progress(std::to_string(bytes) + " bytes");
    const auto x = static_cast<double>(bytes);
    const double ours = microseconds(time_of(Way::kMulticast, kOneByOne, bytes));
    const double one = microseconds(time_of(Way::kOneUnicast, kOneByOne, bytes));
    const double three = microseconds(time_of(Way::kThreeUnicasts, kOneByOne, bytes));
    report.add("cepheus", x, ours, "us");
    report.add("1 unicast", x, one, "us");
    report.add("3 unicasts", x, three, "us");
    report.add("against 3 unicasts", x, 100 * (ours / three - 1), "%",
               {.paper = paper, .note = paper ? "fitted" : ""});
  }
}

// Gleam's latencies end with the NIC's completion. Its client announces every WRITE.
void run_gleam(const ExperimentOptions&, Report& report) {
  const struct {
    std::uint32_t bytes;
    std::optional<double> paper;
  } sizes[] = {{8 * kKiB, {}},    {64 * kKiB, -40},  {256 * kKiB, {}},
               {512 * kKiB, -60}, {1024 * kKiB, {}}, {kLargest, -65}};
  Software by_two_calls = kOneByOne;
  by_two_calls.post *= 2;
  for (const auto& [bytes, paper] : sizes) {
    report.progress(std::to_string(bytes) + " bytes");
    const auto x = static_cast<double>(bytes);
    const double three = microseconds(time_of(Way::kThreeUnicasts, kOneByOne, bytes));
    const auto against = [&](Way way, const Software& software) {
      return 100 * (microseconds(time_of(way, software, bytes)) / three - 1);
    };
    report.add("gleam", x, microseconds(time_of(Way::kAnnounced, kOneByOne, bytes)), "us");
    report.add("3 unicasts", x, three, "us");
    report.add("against 3 unicasts", x, against(Way::kAnnounced, kOneByOne), "%", {.paper = paper});
    report.add("... announced by a call of its own", x, against(Way::kAnnounced, by_two_calls),
               "%");
    report.add("... nothing announced", x, against(Way::kMulticast, kOneByOne), "%");
  }
}

double million_iops(Way way, const Software& software, std::size_t requests) {
  constexpr std::size_t kDepth = 16;
  return static_cast<double>(requests) /
         microseconds(time_of(way, software, kBlock, requests, kDepth));
}

void run_iops(const ExperimentOptions& options, Report& report) {
  const std::size_t requests = options.quick ? 2000 : 20000;
  const auto compare = [&](const std::string& note, const Software& software,
                           std::optional<double> ours_paper, std::optional<double> one_paper,
                           std::optional<double> three_paper) {
    const auto x = static_cast<double>(kBlock);
    const double ours = million_iops(Way::kMulticast, software, requests);
    const double one = million_iops(Way::kOneUnicast, software, requests);
    const double three = million_iops(Way::kThreeUnicasts, software, requests);
    report.add("cepheus" + note, x, ours, "M/s", {.paper = ours_paper});
    report.add("announced" + note, x, million_iops(Way::kAnnounced, software, requests), "M/s");
    report.add("1 unicast" + note, x, one, "M/s", {.paper = one_paper});
    report.add("3 unicasts" + note, x, three, "M/s", {.paper = three_paper});
    std::optional<double> ratio;
    if (ours_paper && three_paper) ratio = *ours_paper / *three_paper;
    report.add("over 3 unicasts" + note, x, ours / three, "times", {.paper = ratio});
  };
  compare("", kPipelined, 1.167, 1.188, 0.413);
  compare(", links alone", kNone, {}, {}, {});
}

}  // namespace storage

const Experiment kStorageLatency = {
    "storage-latency",
    "one request of a client to three replicas: multicast WRITE against unicasts",
    "Cepheus fig. 10",
    "seconds",
    "bytes",
    "against 3 unicasts",
    "fitted to these two: checks nothing",
    storage::run_latency};

const Experiment kGleamFig13 = {
    "gleam-fig13",
    "one request of a client that writes to three replicas, each WRITE announced: beside unicasts",
    "Gleam fig. 13",
    "seconds",
    "bytes",
    "against 3 unicasts",
    "-40 within a point; -65 at the size that we chose",
    storage::run_gleam};

const Experiment kStorageIops = {
    "storage-iops",
    "requests of 8 KiB that a client writes to three replicas without pause: multicast WRITE "
    "beside unicasts",
    "Cepheus table I",
    "seconds",
    "bytes",
    "over 3 unicasts",
    "a quotient of two fitted rates: checks nothing",
    storage::run_iops};

}  // namespace cepheus::sim
