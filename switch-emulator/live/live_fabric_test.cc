#include "switch-emulator/live/live_fabric.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_fabric.h"
#include "wire/icrc.h"

namespace cepheus::live {
namespace {

using testing::Each;
using testing::HasSubstr;

wire::RoceHeaders headers_of(const wire::Frame& frame) {
  const auto headers = wire::RoceHeaders::parse(frame);
  EXPECT_TRUE(headers.has_value());
  return headers.value_or(wire::RoceHeaders{});
}

auto try_attach(const TestFabric& fabric, const std::string& host) {
  return fabric::HostPort::attach({fabric.socket(), host});
}

LiveOptions at(const std::string& path) {
  LiveOptions options;
  options.socket = path;
  return options;
}

net::LinkConfig link_at(wire::BitRate rate) {
  net::LinkConfig link;
  link.rate = rate;
  return link;
}

TEST(LiveFabric, RefusesLosslessLinksThatItCantGuarantee) {
  net::LinkConfig link;
  link.rate = wire::BitRate{1'000'000'000};
  link.pfc.on = true;
  net::Topology topology = net::Topology::star(2, link);
  topology.hosts[1].interface = "eth7";
  const auto refused = LiveFabric::start(topology, at("/tmp/cepheus-test-lossless"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, wire::ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().text, HasSubstr("host h1 is behind a network interface"));
}

TEST(LiveFabric, HasTheAdvertisedNumberOfHosts) {
  TestFabric fabric(net::Topology::star(fabric::PoolGeometry::kMaxHosts));
  const auto first = fabric.attach("h0"), last = fabric.attach("h4095");
  send_packet(*first, {.to = last->identity().address, .payload_bytes = 4096, .fill = 7});
  wire::Frame frame;
  ASSERT_TRUE(await_frame(*last, frame));
  EXPECT_THAT(frame.payload(), Each(7));
  net::Topology larger = net::Topology::star(fabric::PoolGeometry::kMaxHosts + 1);
  const auto refused = LiveFabric::start(larger, at("/tmp/cepheus-test-too-many"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("at most 4096 hosts"));
}

TEST(LiveFabric, SendsAHostItsIdentity) {
  TestFabric fabric(net::Topology::star(3, link_at({25'000'000'000})));
  const auto host = fabric.attach("h1");
  const fabric::HostIdentity& identity = host->identity();
  EXPECT_EQ(identity.name, "h1");
  EXPECT_EQ(identity.address, wire::Ipv4(10, 0, 0, 2));
  EXPECT_EQ(identity.mac, wire::mac_for(identity.address));
  EXPECT_EQ(identity.mtu, 4096u);
  EXPECT_EQ(identity.rate.bits_per_second, 25'000'000'000u);
  EXPECT_EQ(identity.host_index, 1u);
  EXPECT_EQ(identity.host_count, 3u);
  EXPECT_GE(host->tx_buffer().size(), 4096u);
}

// Answer to a launcher: its hosts, or the reason why it got none.
struct Answer {
  std::optional<fabric::HostsReserved> reserved;
  std::optional<fabric::Welcome> refusal;
};
Answer reserve(int socket, const fabric::HostsWanted& wanted) {
  EXPECT_TRUE(fabric::send_message(socket, encode(wanted)));
  const auto answer = await_message(socket);
  if (!answer) return {};
  return {fabric::decode_hosts_reserved(answer->data), fabric::decode_welcome(answer->data)};
}

TEST(LiveFabric, KeepsHostsForTheRanksOfALauncherWhileItLives) {
  TestFabric fabric(net::Topology::star(4));
  fabric::UniqueFd launcher = connect_to(fabric.socket());
  const auto job = reserve(launcher.get(), {.number = 2, .names = ""}).reserved;
  ASSERT_TRUE(job);
  EXPECT_EQ(job->names, "h0,h1");
  const auto status = fabric.status();
  EXPECT_TRUE(port_of(status, 1).reserved);
  EXPECT_EQ(port_of(status, 1).reserved_by, getpid());
  EXPECT_FALSE(port_of(status, 2).reserved);

  const auto stranger = try_attach(fabric, "h1");
  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().text, HasSubstr("reserved by pid " + std::to_string(getpid())));
  fabric::HostPort::Options options{.fabric = fabric.socket(), .host = "h1", .or_any = true};
  const auto moved = fabric::HostPort::attach(options);
  ASSERT_TRUE(moved);
  EXPECT_EQ((*moved)->identity().name, "h2");
  options = {.fabric = fabric.socket(), .host = "h1", .reservation = job->reservation};
  const auto rank = fabric::HostPort::attach(options);
  ASSERT_TRUE(rank) << rank.error().text;
  EXPECT_EQ((*rank)->identity().name, "h1");

  const fabric::UniqueFd second = connect_to(fabric.socket());
  const Answer refused = reserve(second.get(), {.number = 2, .names = ""});
  ASSERT_TRUE(refused.refusal);
  EXPECT_THAT(refused.refusal->text,
              HasSubstr("2 free hosts are wanted, and the fabric has 1 of 4"));
  launcher.reset();
  EXPECT_EQ(fabric.attach("")->identity().name, "h0");
}

TEST(LiveFabric, IsNamedAsMissingWhereThereIsNone) {
  const auto none = fabric::HostPort::attach({"/tmp/cepheus-no-such-fabric", ""});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, wire::ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().text, HasSubstr("cepheus-switch --fabric /tmp/cepheus-no-such-fabric"));
}

TEST(LiveFabric, KeepsASecondFabricOffItsSocketAndReplacesALeftOne) {
  const std::string path = "/tmp/cepheus-test-taken-" + std::to_string(getpid());
  {
    TestFabric first(net::Topology::star(1), at(path));
    const auto second = LiveFabric::start(net::Topology::star(1), at(path));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, wire::ErrorCode::kRefused);
    EXPECT_THAT(second.error().text, HasSubstr("pid " + std::to_string(getpid())));
    EXPECT_NO_THROW(first.attach("h0"));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  const pid_t child = fork();  // dies without cleaning up
  if (child == 0) {
    auto fabric = LiveFabric::start(net::Topology::star(1), at(path));
    _exit(fabric ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(access(path.c_str(), F_OK), 0);
  TestFabric next(net::Topology::star(1), at(path));
  EXPECT_NO_THROW(next.attach("h0"));
}

TEST(LiveFabric, NotifiesItsClientsWhenItEnds) {
  auto fabric = std::make_unique<TestFabric>(net::Topology::star(1));
  const auto host = fabric->attach("h0");
  EXPECT_TRUE(host->is_connected());
  while (!host->arm()) host->disarm();
  fabric->stop();
  pollfd waiting{host->wait_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 20'000), 1);
  host->disarm();
  EXPECT_FALSE(host->is_connected());
  wire::Frame frame;
  EXPECT_FALSE(host->receive(frame));
}

TEST(LiveFabric, FreesThePortOfAProcessThatDiedEvenIfItsChildKeepsTheSocket) {
  TestFabric fabric(net::Topology::star(2));
  int gone[2];
  ASSERT_EQ(pipe(gone), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(gone[0]);
    const auto port = try_attach(fabric, "h0");
    if (!port) _exit(1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {  // has inherited all descriptors, and lives on until the test is over
      char byte = 0;
      while (write(gone[1], &byte, 0) == 0 && getppid() == child) sched_yield();
      pause();
    }
    if (write(gone[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(2);
    _exit(0);
  }
  close(gone[1]);
  pid_t grandchild = 0;
  ASSERT_EQ(read(gone[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(fabric.attach("h0")->identity().name, "h0");
  kill(grandchild, SIGKILL);
  close(gone[0]);
}

TEST(LiveFabric, KillsOnlyItsOwnClient) {
  TestFabric fabric(net::Topology::star(2));
  const auto kill_at = [&](const char* host, pid_t pid) {
    const auto answer =
        send_request(fabric.socket(), {{"ask", "kill"}, {"host", host}, {"pid", pid}});
    return answer ? "" : answer.error().text;
  };
  std::array<int, 2> attached{};
  ASSERT_EQ(pipe(attached.data()), 0);
  const pid_t client = fork();
  if (client == 0) {
    const auto port = fabric::HostPort::attach({fabric.socket(), "h0"});
    if (!port || write(attached[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(attached[0], &byte, 1), 1);
  EXPECT_THAT(kill_at("h1", client), HasSubstr("has ended"));
  EXPECT_THAT(kill_at("h0", getpid()), HasSubstr("has ended"));
  EXPECT_EQ(kill_at("h0", client), "");
  int status = 0;
  ASSERT_EQ(waitpid(client, &status, 0), client);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_THAT(kill_at("h0", client), HasSubstr("has ended"));
  close(attached[0]);
  close(attached[1]);
}

TEST(LiveFabric, KeepsServingOthersWhenAReceiverStopsReading) {
  TestFabric fabric(net::Topology::star(4));
  const auto sender = fabric.attach("h0"), stopped = fabric.attach("h1"),
             also_stopped = fabric.attach("h2"), healthy = fabric.attach("h3");
  // More than rings and slots hold.
  for (std::uint32_t n = 0; n < 3 * 1024; ++n) {
    send_packet(*sender, {.to = stopped->identity().address, .payload_bytes = 4096});
    send_packet(*sender, {.to = also_stopped->identity().address, .payload_bytes = 4096});
  }
  wire::Frame frame;
  for (std::uint32_t n = 0; n < 2048; ++n) {
    send_packet(*sender,
                {.to = healthy->identity().address, .psn = wire::Psn(n), .payload_bytes = 4096});
    ASSERT_TRUE(await_frame(*healthy, frame));
    EXPECT_EQ(headers_of(frame).bth.psn, wire::Psn(n));
    healthy->release();
  }
  const auto status = fabric.status();
  std::uint64_t read = 0;
  while (stopped->receive(frame)) ++read;
  EXPECT_EQ(read + port_of(status, 1).access[fabric::PortCounter::kDropEgressFull], 3 * 1024u);
  EXPECT_GT(port_of(status, 1).access[fabric::PortCounter::kDropEgressFull], 0u);
  EXPECT_EQ(port_of(status, 3).access[fabric::PortCounter::kDropEgressFull], 0u);
}

std::optional<fabric::Welcome> await_welcome(int fd) {
  const auto answer = await_message(fd);
  return answer ? fabric::decode_welcome(answer->data) : std::nullopt;
}

TEST(LiveFabric, DetachesAClientThatScribblesOverItsRing) {
  TestFabric fabric(net::Topology::star(2));
  const auto h1 = fabric.attach("h1");
  const RawClient client(fabric.socket(), "h0");
  client.segment().tx().produced->store(0xDEADBEEF);
  client.ring_doorbell();
  const auto status =
      fabric.status_when([](const FabricStatus& s) { return !port_of(s, 0).attached; });
  EXPECT_FALSE(port_of(status, 0).attached);
  EXPECT_EQ(counter(port_of(status, 0), "drop_ring_corrupt"), 1u);
  EXPECT_TRUE(h1->is_connected());
  EXPECT_NO_THROW(fabric.attach("h0"));
}

TEST(LiveFabric, AnswersAnotherProtocolVersionWithItsOwn) {
  TestFabric fabric(net::Topology::star(1));
  const fabric::UniqueFd socket = connect_to(fabric.socket());
  ASSERT_TRUE(
      fabric::send_message(socket.get(), encode(fabric::AttachRequest{.version = 7, .host = ""})));
  const auto welcome = await_welcome(socket.get());
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->status, fabric::WelcomeStatus::kWrongVersion);
  EXPECT_EQ(welcome->version, fabric::kHandshakeVersion);
}

TEST(LiveFabric, SurvivesClientsThatSendNothingOrNonsense) {
  TestFabric fabric(net::Topology::star(1));
  std::vector<fabric::UniqueFd> silent;
  for (int n = 0; n < 200; ++n) silent.push_back(connect_to(fabric.socket()));
  const fabric::UniqueFd babbler = connect_to(fabric.socket());
  const std::vector<std::uint8_t> nonsense(500, 0xA5);
  ASSERT_TRUE(fabric::send_message(babbler.get(), nonsense));
  pollfd waiting{babbler.get(), POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 20'000), 1);  // closed
  EXPECT_NO_THROW(fabric.attach("h0"));
}

TEST(LiveFabric, CountsWhatEachPortCarried) {
  TestFabric fabric(net::Topology::star(2));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  wire::Frame frame;
  for (int n = 0; n < 10; ++n) {
    send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 1000});
    ASSERT_TRUE(await_frame(*h1, frame));
    h1->release();
  }
  const auto status = fabric.status();
  EXPECT_EQ(port_of(status, 0).rx.frames, 10u);
  EXPECT_EQ(port_of(status, 0).rx.payload_bytes, 10'000u);
  EXPECT_EQ(port_of(status, 0).rx.bytes, 10 * (1000 + 54 + 4u));
  EXPECT_EQ(port_of(status, 1).tx.payload_bytes, 10'000u);
  EXPECT_EQ(port_of(status, 1).rx.frames, 0u);
  EXPECT_EQ(port_of(status, 1).client_pid, getpid());
}

TEST(LiveFabric, ChecksTheIcrcOfPacketsItActsOnAndLeavesPayloadsToTheReceiver) {
  net::Topology topology = net::Topology::star(2);
  topology.icrc_always = true;
  TestFabric fabric(topology);
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  EXPECT_TRUE(h1->identity().icrc_always);
  send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 8, .damage_icrc = true});
  const auto status =
      fabric.status_when([](const FabricStatus& s) { return port_of(s, 0).rx.frames == 1; });
  EXPECT_EQ(counter(port_of(status, 0), "drop_bad_icrc"), 1u);
  for (const bool damage : {false, true}) {
    send_packet(
        *h0,
        {.to = h1->identity().address, .payload_bytes = 1024, .fill = 7, .damage_icrc = damage});
    wire::Frame frame;
    ASSERT_TRUE(await_frame(*h1, frame));
    EXPECT_EQ(frame.icrc_state, wire::Icrc::kPresent);
    EXPECT_EQ(wire::check_icrc(frame), !damage);
    h1->release();
  }
}

}  // namespace
}  // namespace cepheus::live
