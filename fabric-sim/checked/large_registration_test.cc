// Registration of groups of a thousand members and more, over leaves and spines: number of the
// leader's datagrams, and that all members end active.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "controller/membership.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSpines = 4;
constexpr std::size_t kHostsOfLeaf = 64;
constexpr wire::McstId kGroup{198, 18, 0, 1};
constexpr std::uint16_t kControlPort = 40000;
constexpr std::uint64_t kBudget = 50'000'000;

net::Topology leaves_and_spines(std::size_t hosts) {
  net::Topology t;
  const std::size_t leaves = (hosts + kHostsOfLeaf - 1) / kHostsOfLeaf;
  t.switches.resize(kSpines + leaves);
  for (std::size_t s = 0; s < kSpines; ++s) t.switches[s].name = "spine" + std::to_string(s);
  net::LinkConfig link;
  link.rate = wire::BitRate{25'000'000'000};
  link.delay = 2us;
  for (std::size_t l = 0; l < leaves; ++l) {
    t.switches[kSpines + l].name = "leaf" + std::to_string(l);
    for (std::size_t s = 0; s < kSpines; ++s) t.trunks.push_back({kSpines + l, s, link, link});
  }
  for (std::size_t h = 0; h < hosts; ++h) {
    net::HostSpec host;
    host.name = "h" + std::to_string(h);
    host.address = wire::Ipv4(wire::Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(h));
    host.switch_index = kSpines + h / kHostsOfLeaf;
    host.up = host.down = link;
    t.hosts.push_back(host);
  }
  t.assign_link_seeds();
  return t;
}

wire::MrpMember member_at(const Host& host) {
  return {host.address(), wire::Qpn(0x11), 0, kControlPort, host.address().value() ^ 0x5EC2E7};
}

// A member that needs some time to set up its queue pair.
class Joiner final : public Actor, public DatagramClient {
 public:
  Joiner(Simulator& simulator, Host& host, Duration connects_in)
      : simulator_(simulator),
        host_(host),
        connects_in_(connects_in),
        membership_(member_at(host)) {
    host.listen(*this, kControlPort);
  }
  const mrp::Membership& membership() const { return membership_; }

  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override {
    const auto task = membership_.on_message(now, from, message, actions_);
    if (task == mrp::Membership::Task::kConnect) simulator_.schedule(now + connects_in_, *this);
    report_progress();
  }
  void on_event(Instant now, std::uint64_t) override {
    membership_.connected(now, true, actions_);
    report_progress();
  }

 private:
  void report_progress() {
    for (const wire::MrpMessage& m : actions_.messages) {
      host_.send_datagram(m, kControlPort);
    }
    actions_.clear();
  }

  Simulator& simulator_;
  Host& host_;
  const Duration connects_in_;
  mrp::Membership membership_;
  mrp::Outbox actions_;
};

class Leader final : public Actor, public DatagramClient {
 public:
  Leader(Simulator& simulator, Host& host)
      : simulator_(simulator), host_(host), registration_(config(host), kGroup, 1) {
    host.listen(*this, kControlPort);
  }
  mrp::Registration& registration() { return registration_; }

  void start(const std::vector<wire::MrpMember>& members) {
    const auto started = registration_.start(simulator_.now(), members, actions_);
    ASSERT_TRUE(started) << started.error().text;
    go_on();
  }
  void unregister() {
    registration_.unregister(simulator_.now(), actions_);
    go_on();
  }
  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override {
    registration_.on_message(now, from, message, actions_);
    go_on();
  }
  void on_event(Instant now, std::uint64_t) override {
    if (registration_.deadline() <= now) registration_.on_timer(now, actions_);
    go_on();
  }

 private:
  static mrp::RegistrationConfig config(const Host& host) {
    mrp::RegistrationConfig c;
    c.host = host.address();
    c.instance = 7;
    return c;
  }
  void go_on() {
    for (const wire::MrpMessage& m : actions_.messages) {
      host_.send_datagram(m, kControlPort);
    }
    actions_.clear();
    const Instant due = registration_.deadline();
    if (due != wire::kNever) simulator_.schedule(due, *this);
  }

  Simulator& simulator_;
  Host& host_;
  mrp::Registration registration_;
  mrp::Outbox actions_;
};

class LargeGroup {
 public:
  LargeGroup(std::size_t hosts, const std::string& key_file, Duration slowest_connect)
      : simulator_(kBudget),
        network_(simulator_, with_key(leaves_and_spines(hosts), key_file),
                 std::vector<rnic::NicConfig>(hosts, small_nic())),
        leader_(simulator_, network_.host(0)) {
    Random random(hosts);
    members_.push_back(member_at(network_.host(0)));
    for (std::size_t h = 1; h < hosts; ++h) {
      joiners_.push_back(std::make_unique<Joiner>(simulator_, network_.host(h),
                                                  random.between(Duration{0}, slowest_connect)));
      members_.push_back(member_at(network_.host(h)));
    }
  }

  Network& network() { return network_; }
  mrp::Registration& registration() { return leader_.registration(); }
  // Datagrams that the leader received until the group was active.
  std::uint64_t set_up() {
    leader_.start(members_);
    simulator_.run(simulator_.now() + 1s);
    EXPECT_EQ(registration().state(), mrp::Registration::State::kActive)
        << registration().error().text;
    for (const auto& j : joiners_) {
      EXPECT_EQ(j->membership().state(), mrp::Membership::State::kActive);
    }
    return network_.host(0).datagrams();
  }
  std::uint64_t tear_down() {
    const std::uint64_t before = network_.host(0).datagrams();
    leader_.unregister();
    simulator_.run(simulator_.now() + 1s);
    EXPECT_EQ(registration().state(), mrp::Registration::State::kGone);
    for (const auto& j : joiners_) {
      EXPECT_EQ(j->membership().state(), mrp::Membership::State::kGone);
    }
    return network_.host(0).datagrams() - before;
  }

 private:
  static rnic::NicConfig small_nic() {
    rnic::NicConfig nic;
    nic.max_qps = 2;
    nic.max_regions = 2;
    return nic;
  }
  // One registration counts as one request, however many datagrams it needs.
  static net::Topology with_key(net::Topology t, const std::string& file) {
    t.key_file = file;
    for (net::SwitchSpec& spec : t.switches) spec.config.register_rate = 1;
    return t;
  }

  Simulator simulator_;
  Network network_;
  std::vector<std::unique_ptr<Joiner>> joiners_;
  Leader leader_;
  std::vector<wire::MrpMember> members_;
};

class KeyFile {
 public:
  KeyFile() {
    std::ofstream(path_) << "000102030405060708090a0b0c0d0e0f\n";
    chmod(path_.c_str(), 0600);
  }
  ~KeyFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = testing::TempDir() + "large_registration_key";
};

constexpr std::uint64_t kMost = 64;  // datagrams at the leader, for a thousand members

TEST(LargeRegistration, AThousandMembersSendTheirLeaderAFewDatagrams) {
  const KeyFile key;
  for (const std::string& file : {std::string(), key.path()}) {
    LargeGroup group(1000, file, 3ms);
    EXPECT_LE(group.set_up(), kMost) << (file.empty() ? "unsigned" : "signed");
    EXPECT_LE(group.tear_down(), kMost);
  }
}

TEST(LargeRegistration, SoDoThoseThatTakeLongerThanTheLeadersRepeats) {
  LargeGroup group(1000, "", 150ms);
  EXPECT_LE(group.set_up(), 120u);
}

TEST(LargeRegistration, LossCostsOnlyRepeatsForTheMissing) {
  LargeGroup group(1000, "", 3ms);
  group.network().set_faults(0.01, 0, 0, 0);
  EXPECT_LE(group.set_up(), kMost);
}

TEST(LargeRegistration, FourThousandMembersBecomeActive) {
  LargeGroup group(4096, "", 3ms);
  EXPECT_LE(group.set_up(), 200u);
}

}  // namespace
}  // namespace cepheus::sim
