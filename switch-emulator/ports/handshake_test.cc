#include "switch-emulator/ports/handshake.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "switch-emulator/ports/shared_memory.h"

namespace cepheus::fabric {
namespace {

Welcome example() {
  Welcome welcome;
  welcome.identity = {.name = "h3",
                      .address = wire::Ipv4(10, 0, 0, 4),
                      .mac = {{2, 0xCE, 10, 0, 0, 4}},
                      .gateway = {{2, 0xCE, 10, 255, 0, 1}},
                      .mtu = 1024,
                      .rate = {10'000'000'000},
                      .slowest_rate = {1'000'000'000},
                      .icrc_always = true,
                      .host_index = 3,
                      .host_count = 4};
  welcome.pool = PoolGeometry::for_hosts(4, 1024);
  welcome.area = 3;
  return welcome;
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

TEST(Handshake, CarriesAHello) {
  const auto hello = decode_attach_request(encode(AttachRequest{.host = "h1"}));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->version, kHandshakeVersion);
  EXPECT_EQ(hello->host, "h1");
  EXPECT_FALSE(hello->or_any);
  EXPECT_EQ(hello->reservation, 0u);
  const auto easy = decode_attach_request(
      encode(AttachRequest{.host = "", .or_any = true, .reservation = ~ReservationId{7}}));
  ASSERT_TRUE(easy);
  EXPECT_TRUE(easy->or_any);
  EXPECT_EQ(easy->reservation, ~ReservationId{7});
}

TEST(Handshake, CarriesAReservationOfManyHosts) {
  std::string names = "h0";
  for (int host = 1; host < 4096; ++host) names += ",h" + std::to_string(host);
  const auto wanted = decode_hosts_wanted(encode(HostsWanted{.number = 9, .names = names}));
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->number, 9u);
  EXPECT_EQ(wanted->names, names);
  const auto reserved = decode_hosts_reserved(
      encode(HostsReserved{.reservation = 0x8000'0000'0000'0001, .names = names}));
  ASSERT_TRUE(reserved);
  EXPECT_EQ(reserved->reservation, 0x8000'0000'0000'0001u);
  EXPECT_EQ(reserved->names, names);

  const auto [a, b] = socket_pair();
  ASSERT_TRUE(send_message(a.get(), encode(*reserved)));
  const auto message = receive_message(b.get());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->data, encode(*reserved));
}

TEST(Handshake, NeverConfusesMessages) {
  const auto hello = encode(AttachRequest{.host = "h1"});
  const auto wanted =
      encode(HostsWanted{.names = std::string(64, 'h')});  // as long as a AttachRequest
  ASSERT_EQ(hello.size(), wanted.size());
  EXPECT_FALSE(decode_hosts_wanted(hello));
  EXPECT_FALSE(decode_attach_request(wanted));
  Welcome refusal;
  refusal.status = WelcomeStatus::kHostTaken;
  EXPECT_FALSE(decode_hosts_reserved(encode(refusal)));
  EXPECT_TRUE(decode_welcome(encode(refusal)));
}

TEST(Handshake, CarriesAWelcome) {
  const Welcome sent = example();
  const auto got = decode_welcome(encode(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, WelcomeStatus::kGranted);
  EXPECT_EQ(got->identity.name, "h3");
  EXPECT_EQ(got->identity.address, sent.identity.address);
  EXPECT_EQ(got->identity.mac, sent.identity.mac);
  EXPECT_EQ(got->identity.gateway, sent.identity.gateway);
  EXPECT_EQ(got->identity.mtu, 1024u);
  EXPECT_EQ(got->identity.rate.bits_per_second, 10'000'000'000u);
  EXPECT_EQ(got->identity.slowest_rate.bits_per_second, 1'000'000'000u);
  EXPECT_TRUE(got->identity.icrc_always);
  EXPECT_EQ(got->identity.host_index, 3u);
  EXPECT_EQ(got->identity.host_count, 4u);
  EXPECT_EQ(got->pool.pool_bytes(), sent.pool.pool_bytes());
  EXPECT_EQ(got->area, 3u);
}

TEST(Handshake, CutsTextsToTheirFields) {
  Welcome refusal;
  refusal.status = WelcomeStatus::kNoSuchHost;
  refusal.text = std::string(1000, 'x');
  EXPECT_EQ(decode_welcome(encode(refusal))->text, std::string(255, 'x'));
  EXPECT_EQ(decode_attach_request(encode(AttachRequest{.host = std::string(100, 'h')}))->host,
            std::string(63, 'h'));
  auto without_end = encode(AttachRequest{});
  std::fill(without_end.end() - 64, without_end.end(), 'h');
  EXPECT_EQ(decode_attach_request(without_end)->host, std::string(63, 'h'))
      << "as it is encoded again";
}

TEST(Handshake, RefusesEveryOtherLengthAndMagic) {
  auto hello = encode(AttachRequest{}), welcome = encode(example());
  for (std::size_t n = 0; n < hello.size(); ++n)
    EXPECT_FALSE(decode_attach_request(std::span(hello).first(n)));
  for (std::size_t n = 0; n < welcome.size(); ++n)
    EXPECT_FALSE(decode_welcome(std::span(welcome).first(n)));
  hello.push_back(0);
  EXPECT_FALSE(decode_attach_request(hello));
  const auto wanted = encode(HostsWanted{}), reserved = encode(HostsReserved{});
  for (std::size_t n = 0; n < wanted.size(); ++n)
    EXPECT_FALSE(decode_hosts_wanted(std::span(wanted).first(n)));
  for (std::size_t n = 0; n < reserved.size(); ++n)
    EXPECT_FALSE(decode_hosts_reserved(std::span(reserved).first(n)));
  welcome[0] ^= 1;
  EXPECT_FALSE(decode_welcome(welcome));
}

// Whatever a later version appends, its version can be parsed.
TEST(Handshake, ReadsTheVersionOfALongerHello) {
  auto datagram = encode(AttachRequest{.version = 9, .host = ""});
  datagram.resize(datagram.size() + 100);
  const auto hello = decode_attach_request(datagram);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->version, 9);
}

TEST(Handshake, PassesDescriptorsThatCloseOnExec) {
  const auto [a, b] = socket_pair();
  const auto memory = create_shared_memory("test", 4096);
  ASSERT_TRUE(memory);
  const std::array<int, 2> fds{memory->get(), memory->get()};
  ASSERT_TRUE(send_message(a.get(), encode(AttachRequest{}), fds));
  const auto message = receive_message(b.get());
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), 2u);
  for (const UniqueFd& fd : message->fds) EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(Mapping::map(message->fds[0].get(), 0, 4096, Mapping::Access::kReadWrite));
}

TEST(Handshake, DistinguishesAClosedSocketFromASilentOne) {
  auto [a, b] = socket_pair();
  EXPECT_FALSE(receive_message(b.get()));
  a.reset();
  const auto end = receive_message(b.get());
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->data.empty());
  EXPECT_FALSE(send_message(b.get(), encode(AttachRequest{})));
}

TEST(Handshake, KnowsThePeer) {
  const auto [a, b] = socket_pair();
  const auto peer = peer_credentials(a.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, getuid());
}

// An idle process with this pid; -1: errno has the reason.
pid_t make_process(pid_t pid) {
  std::array<std::uint64_t, 11> arguments{};  // struct clone_args
  arguments[4] = SIGCHLD;
  arguments[8] = reinterpret_cast<std::uint64_t>(&pid);
  arguments[9] = 1;
  const auto made = static_cast<pid_t>(syscall(SYS_clone3, arguments.data(), sizeof arguments));
  while (made == 0) pause();
  return made;
}

TEST(Handshake, DistinguishesThePeersProcessFromALaterOneWithItsPid) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const UniqueFd client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof(sa_family_t);  // the kernel chooses a name
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), at, length), 0);
  length = sizeof address;
  ASSERT_EQ(getsockname(listener.get(), at, &length), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const pid_t peer = fork();
  if (peer == 0) _exit(connect(client.get(), at, length));
  ASSERT_EQ(waitpid(peer, nullptr, 0), peer);
  const UniqueFd accepted(accept(listener.get(), nullptr, nullptr));
  ASSERT_EQ(peer_credentials(accepted.get())->pid, peer);
  const pid_t bystander = make_process(peer);
  if (bystander < 0 && errno == EPERM)
    GTEST_SKIP() << "only root can choose a process's number: run the tests as root";
  ASSERT_GE(bystander, 0) << std::strerror(errno);

  const UniqueFd process = peer_process(accepted.get());
  pollfd end{process.get(), POLLIN, 0};
  EXPECT_TRUE(!process.is_open() || poll(&end, 1, 0) == 1) << "it is the bystander";
  kill(bystander, SIGKILL);
  waitpid(bystander, nullptr, 0);
}

TEST(Handshake, SeesThePeersProcessEnd) {
  const auto [a, b] = socket_pair();
  const UniqueFd own = peer_process(a.get());
  ASSERT_TRUE(own.is_open());
  EXPECT_EQ(fcntl(own.get(), F_GETFD), FD_CLOEXEC);
  pollfd end{own.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 0), 0) << "this process goes on";
}

TEST(SharedMemory, CantBeShrunkUnderAMapping) {
  const auto memory = create_shared_memory("test", 8192);
  ASSERT_TRUE(memory);
  EXPECT_NE(ftruncate(memory->get(), 0), 0);
  EXPECT_NE(ftruncate(memory->get(), 1 << 20), 0);
}

TEST(SharedMemory, RefusesFilesThatAreNotSealedOrTooSmall) {
  char path[] = "/tmp/cepheus-test-XXXXXX";
  const UniqueFd file(mkstemp(path));
  ASSERT_TRUE(file.is_open());
  unlink(path);
  ASSERT_EQ(ftruncate(file.get(), 8192), 0);
  EXPECT_FALSE(Mapping::map(file.get(), 0, 4096, Mapping::Access::kRead));
  const auto memory = create_shared_memory("test", 4096);
  EXPECT_FALSE(Mapping::map(memory->get(), 0, 8192, Mapping::Access::kRead));
  EXPECT_FALSE(Mapping::map(memory->get(), 4096, 4096, Mapping::Access::kRead));
}

}  // namespace
}  // namespace cepheus::fabric
