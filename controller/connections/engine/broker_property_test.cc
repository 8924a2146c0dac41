// Any interleaving of offers, answers, closes, deaths, lost links and time-outs: each connect has
// one outcome.
#include <gtest/gtest.h>
// It needs the one above.
#include <rapidcheck/gtest.h>

#include "controller/connections/engine/test_hosts.h"

namespace cepheus::connections {
namespace {

constexpr std::size_t kHosts = 4;

// The events that one program may receive about one connection, and their order.
class Story {
 public:
  void at_sender(MessageType type) {
    if (type == MessageType::kConnected || type == MessageType::kFailed) {
      RC_ASSERT(!is_decided_);
      is_decided_ = true;
      is_connected_ = type == MessageType::kConnected;
    } else if (type == MessageType::kLeft) {
      RC_ASSERT(is_connected_);
    }
  }
  void at_receiver(MessageType type) {
    RC_ASSERT(!is_over_);
    if (type == MessageType::kEstablished) {
      RC_ASSERT(!is_connected_);
      is_connected_ = true;
    }
    if (type == MessageType::kClosed) RC_ASSERT(is_connected_);
    if (type == MessageType::kCancel) RC_ASSERT(!is_connected_);
    is_over_ = type == MessageType::kClosed || type == MessageType::kCancel;
  }
  bool is_decided_ = false, is_connected_ = false, is_over_ = false;
};

struct World {
  TestHosts hosts{kHosts};
  std::vector<bool> lives = std::vector<bool>(kHosts, true);
  std::uint32_t requests = 0;

  // An event that a program has received about a connection, chosen by a number.
  std::optional<Message> some(std::size_t host, std::size_t choice) {
    const auto& inbox = hosts.inbox(host, 1);
    if (inbox.empty()) return std::nullopt;
    return inbox[choice % inbox.size()];
  }

  void do_something(unsigned what, std::size_t host, std::size_t choice) {
    switch (what % 10) {
      case 0: {
        Message connect = connect_to(++requests, {});
        for (std::size_t h = 0; h < kHosts; ++h) {
          if (h != host && (choice >> h & 1) != 0) connect.hosts.push_back(TestHosts::address(h));
        }
        if (lives[host]) hosts.submit(host, 1, connect);
        return;
      }
      case 1:
        if (lives[host] && choice % 8 == 0) {
          hosts.kill(host, 1);
          lives[host] = false;
        }
        return;
      case 2:
        if (!hosts.cables().empty() && choice % 4 == 0)
          hosts.disconnect(choice / 4 % hosts.cables().size());
        return;
      case 3:
        if (choice % 4 == 0) hosts.pass(std::chrono::seconds(choice % 7));
        return;
      case 4:
        if (const auto m = some(host, choice); m && lives[host]) {
          hosts.submit(
              host, 1,
              about(choice % 3 == 0 ? MessageType::kClose : MessageType::kAccept, m->connection));
        }
        return;
      case 5:
        if (const auto m = some(host, choice); m && lives[host] && choice % 3 == 0) {
          hosts.submit(host, 1, about(MessageType::kRefuse, m->connection, "no"));
        }
        return;
      case 6:  // takes its last offer
        if (lives[host] && !hosts.inbox(host, 1).empty()) {
          hosts.submit(host, 1,
                       about(MessageType::kAccept, hosts.inbox(host, 1).back().connection));
        }
        return;
      default:
        if (!hosts.cables().empty())
          hosts.step(choice / 2 % hosts.cables().size(), choice % 2 == 0);
    }
  }

  void judge() {
    std::size_t decided = 0, requested = 0;
    for (std::size_t h = 0; h < kHosts; ++h) {
      std::map<std::uint32_t, Story> sent;
      std::map<ConnectionId, std::uint32_t> request_of;
      std::map<ConnectionId, Story> received;
      for (const Message& m : hosts.inbox(h, 1)) {
        if (m.type == MessageType::kListening) continue;
        if (m.type == MessageType::kConnecting) request_of[m.connection] = m.request;
        if (m.type == MessageType::kLeft) {
          sent.at(request_of.at(m.connection)).at_sender(m.type);
        } else if (m.request != 0) {
          sent[m.request].at_sender(m.type);
        } else {
          received[m.connection].at_receiver(m.type);
        }
      }
      for (const auto& [request, story] : sent) {
        ++requested;
        decided += story.is_decided_;
        RC_ASSERT(story.is_decided_ || !lives[h]);
      }
      // In the end no receiver waits for an outcome.
      for (const auto& [id, story] : received) {
        RC_ASSERT(story.is_connected_ || story.is_over_ || !lives[h] || closed.contains({h, id}));
      }
    }
    RC_CLASSIFY(decided > 0, "decided");
    RC_CLASSIFY(requested > 3, "several");
  }

  std::set<std::pair<std::size_t, ConnectionId>> closed;  // by the receiving program itself
};

RC_GTEST_PROP(Broker, ReportsOneOutcomeOfEachConnectOnceToEveryProgram, ()) {
  World world;
  for (std::size_t h = 0; h < kHosts; ++h) {
    world.hosts.bring(h, 1);
    world.hosts.submit(h, 1, listen_to("s"));
  }
  const auto steps = *rc::gen::resize(
      400,
      rc::gen::container<std::vector<std::tuple<unsigned, unsigned, unsigned>>>(rc::gen::tuple(
          rc::gen::inRange(0u, 40u), rc::gen::inRange(0u, 4u), rc::gen::inRange(0u, 1u << 16))));
  for (const auto& [what, host, choice] : steps) {
    // A program that ends a connection receives no event about that.
    const auto before = world.some(host, choice);
    world.do_something(what, host, choice);
    const unsigned kind = what % 10;
    if (before && (kind == 4 || kind == 5)) world.closed.insert({host, before->connection});
  }
  world.hosts.run_until_idle();
  world.hosts.pass(Broker::kMostTimeLimit);
  world.hosts.run_until_idle();
  world.judge();
}

}  // namespace
}  // namespace cepheus::connections
