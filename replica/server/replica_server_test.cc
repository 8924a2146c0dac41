// A replica between its peers, over a fake device.
#include "replica/server/replica_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <mutex>
#include <thread>

#include "libmcast/fake_device.h"

namespace {

std::mutex msync_may_go, fdatasync_may_go;
std::atomic<int> msync_error{0}, fdatasync_error{0};

}  // namespace

// Replaces the C library's.
extern "C" int msync(void* address, std::size_t length, int flags) {
  const std::lock_guard lock(msync_may_go);
  if (msync_error == 0) return static_cast<int>(syscall(SYS_msync, address, length, flags));
  errno = msync_error;
  return -1;
}

extern "C" int fdatasync(int fd) {
  const std::lock_guard lock(fdatasync_may_go);
  if (fdatasync_error == 0) return static_cast<int>(syscall(SYS_fdatasync, fd));
  errno = fdatasync_error;
  return -1;
}

namespace cepheus::replica {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSize = 16 << 20;
constexpr int kTimeLimitMs = 20000;

VolumeHello writers_hello() {
  VolumeHello hello;
  hello.role = Role::kWriter;
  hello.volume = "v";
  hello.count = 3;
  return hello;
}

// An observer or a writer.
class Client {
 public:
  explicit Client(const Endpoint& at, const VolumeHello& hello = {})
      : socket_(dialled(at), kMostFrame) {
    EXPECT_EQ(next(), MessageType::kChallenge);
    encode(hello, socket_.out());
    EXPECT_EQ(next(), MessageType::kWelcome);
  }
  void request(RequestType type, int times = 1) {
    RequestMessage message;
    message.request.type = type;
    message.request.epoch = {1, 1};
    message.request.config = {{1, 1}, 1, Members::all(3)};
    for (int i = 0; i < times; ++i) encode(message, socket_.out());
    socket_.flush();  // the server may disconnect meanwhile
  }
  void request_digests(int times) {
    for (int i = 0; i < times; ++i) encode(DigestRequest{0, kSize, 1 << 20}, socket_.out());
    EXPECT_TRUE(socket_.flush());
  }
  // From the next answer.
  std::optional<Loss> next_loss() {
    const auto frame = next_frame();
    const auto message = frame ? decode<AnswerMessage>(frame->body) : std::nullopt;
    return message ? std::optional(message->answer.loss) : std::nullopt;
  }
  std::optional<MessageType> request_status() {
    encode_status_request(socket_.out());
    return next();
  }
  bool is_disconnected() {
    while (wait(kTimeLimitMs)) {
      if (!socket_.receive()) return true;
      socket_.flush();
    }
    return false;
  }
  // The type of the next message; none: the server has disconnected.
  std::optional<MessageType> next() {
    const auto frame = next_frame();
    return frame ? std::optional(frame->type) : std::nullopt;
  }

 private:
  std::optional<FrameSocket::Frame> next_frame() {
    socket_.flush();
    bool ok = true;
    for (bool lives = true; lives; lives = wait(kTimeLimitMs) && socket_.receive()) {
      if (const auto frame = socket_.next(ok)) return frame;
      EXPECT_TRUE(ok);
    }
    return std::nullopt;
  }
  static wire::UniqueFd dialled(const Endpoint& at) {
    auto fd = dial(at);
    pollfd want{fd->get(), POLLOUT, 0};
    EXPECT_EQ(poll(&want, 1, kTimeLimitMs), 1);
    return std::move(*fd);
  }
  bool wait(int ms) {
    pollfd want{socket_.fd(), POLLIN, 0};
    return poll(&want, 1, ms) == 1;
  }
  FrameSocket socket_;
};

class ServerOverFake : public testing::Test {
 protected:
  ServerOverFake() {
    char pattern[] = "/tmp/cepheus-replica-XXXXXX";
    directory_ = mkdtemp(pattern);
    mcast::fake::Device::fresh();
    msync_error = fdatasync_error = 0;
  }
  ~ServerOverFake() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  void start(wire::Duration idle, decltype(ReplicaServer::Parts::digest) digest = make_digests) {
    const std::string path = directory_ + "/data";
    StoredReplica stored;
    stored.volume = volume_;
    stored.geometry.size = kSize;
    stored.record = ReplicaRecord::fresh(stored.geometry, 3);
    const bool is_new = VolumeFile::create(path, kSize).has_value();
    auto file = VolumeFile::open(path, kSize);
    auto record = is_new ? RecordFile::create(path + ".cepheus", stored)
                         : RecordFile::open(path + ".cepheus");
    auto listener = listen_at(*Endpoint::parse("127.0.0.1:0"));
    ASSERT_TRUE(file && record && listener);
    sockaddr_in own{};
    socklen_t size = sizeof own;
    ASSERT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    at_ = *Endpoint::parse("127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
    auto server = ReplicaServer::start(
        {std::move(*listener), std::move(*record), std::move(*file), "", {}, idle, digest});
    ASSERT_TRUE(server) << server.error().text;
    server_ = std::move(*server);
    thread_ = std::thread([this] { ended_ = server_->run(); });
  }

  // Returns when the replica is in sync.
  Client writer_that_serves() {
    Client writer(at_, writers_hello());
    for (const RequestType type : {RequestType::kPromise, RequestType::kConfig}) {
      writer.request(type);
      EXPECT_EQ(writer.next(), MessageType::kAnswer);
    }
    return writer;
  }
  // The program restarts, the host does not.
  Loss loss_after_restart() {
    server_.reset();
    msync_error = 0;
    start(1min);
    Client writer(at_, writers_hello());
    writer.request(RequestType::kPromise);
    return writer.next_loss().value();
  }

  std::string volume_ = "v";
  std::string directory_;
  Endpoint at_;
  std::unique_ptr<ReplicaServer> server_;
  wire::Result<void> ended_;
  std::thread thread_;
};

// A writer evicts a replica that answers no ping for a second.
TEST_F(ServerOverFake, AnswersOthersWhileItMakesDigests) {
  std::latch may_go(1);
  start(1min, [&](Digests&, auto) { may_go.wait(); });
  std::vector<std::unique_ptr<Client>> checkers;
  for (int i = 0; i < 40; ++i) checkers.push_back(std::make_unique<Client>(at_));
  Client other(at_);
  for (const auto& checker : checkers) checker->request_digests(2);
  EXPECT_EQ(other.request_status(), MessageType::kStatus) << "all digests come first";
  may_go.count_down();
  for (const auto& checker : checkers) {
    EXPECT_EQ(checker->next(), MessageType::kDigests);
    EXPECT_EQ(checker->next(), MessageType::kDigests);
  }
}

TEST_F(ServerOverFake, StopsWithoutMakingWaitingDigests) {
  std::latch may_go(1);
  std::atomic<int> made{0};
  start(1min, [&](Digests&, auto) {
    ++made;
    may_go.wait();
  });
  std::vector<std::unique_ptr<Client>> checkers;
  for (int i = 0; i < 5; ++i) checkers.push_back(std::make_unique<Client>(at_));
  Client other(at_);
  for (const auto& checker : checkers) checker->request_digests(1);
  EXPECT_EQ(other.request_status(), MessageType::kStatus);  // all requests before it are taken
  server_->stop();
  thread_.join();
  may_go.count_down();
  server_.reset();
  EXPECT_LE(made, 1);
}

// The kernel marks the pages clean, so that later flushes succeed.
TEST_F(ServerOverFake, HasLostItsMemoryOnceAFlushFailed) {
  start(1min);
  Client writer = writer_that_serves();
  msync_error = EIO;
  writer.request(RequestType::kFlush);
  thread_.join();
  EXPECT_EQ(loss_after_restart(), Loss::kMemory);
}

// A file system that its host has made read-only after an error.
TEST_F(ServerOverFake, NamesTheRemedyIfItCantRecordThatAFlushFailed) {
  start(1min);
  Client writer = writer_that_serves();
  fdatasync_error = EROFS;
  msync_error = EIO;
  writer.request(RequestType::kFlush);
  thread_.join();
  ASSERT_FALSE(ended_);
  EXPECT_NE(ended_.error().text.find("restart this host"), std::string::npos)
      << ended_.error().text;
}

TEST_F(ServerOverFake, HasLostItsMemoryIfAFlushFailsWhileItStops) {
  start(1min);
  Client writer = writer_that_serves();
  std::unique_lock held(msync_may_go);
  msync_error = EIO;
  writer.request(RequestType::kFlush);
  EXPECT_EQ(writer.request_status(), MessageType::kStatus);  // the flush is under way
  server_->stop();
  held.unlock();
  thread_.join();
  EXPECT_EQ(loss_after_restart(), Loss::kMemory);
}

TEST_F(ServerOverFake, KeepsItsMemoryIfItStopsWell) {
  start(1min);
  Client writer = writer_that_serves();
  writer.request(RequestType::kFlush);
  EXPECT_EQ(writer.next(), MessageType::kAnswer);
  server_->stop();
  thread_.join();
  EXPECT_EQ(loss_after_restart(), Loss::kProcess);
}

TEST_F(ServerOverFake, SendsItsStatusThoughTheVolumesNameIsNotUtf8) {
  volume_ = "\xff";
  start(1min);
  EXPECT_EQ(Client(at_).request_status(), MessageType::kStatus);
}

TEST_F(ServerOverFake, DisconnectsSilentPeers) {
  start(10ms);
  Client silent(at_);
  EXPECT_TRUE(silent.is_disconnected());
}

TEST_F(ServerOverFake, AnswersAsManyMarksAsAWriterHasOnceTheDiskGoesOn) {
  constexpr int kMarks = 1100;
  start(1min);
  Client writer = writer_that_serves();
  {
    const std::lock_guard busy(fdatasync_may_go);
    writer.request(RequestType::kMark, kMarks);
    EXPECT_EQ(writer.request_status(), MessageType::kStatus) << "it is served meanwhile";
  }
  for (int i = 0; i < kMarks; ++i) ASSERT_EQ(writer.next(), MessageType::kAnswer);
}

TEST_F(ServerOverFake, DisconnectsAWriterWhoseRequestsGatherWhileTheDiskHangs) {
  start(1min);
  Client writer = writer_that_serves();
  const std::lock_guard busy(fdatasync_may_go);
  writer.request(RequestType::kMark, 5000);
  EXPECT_TRUE(writer.is_disconnected());
  EXPECT_EQ(Client(at_).request_status(), MessageType::kStatus);
}

}  // namespace
}  // namespace cepheus::replica
