#include "replica/volume/replica_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "wire/clock.h"

namespace cepheus::replica {
namespace {

// A link and a replica in the test's hands, over a socket.
class ReplicaLinkTest : public testing::Test {
 protected:
  ReplicaLinkTest()
      : listener_(listen_at(*Endpoint::parse("127.0.0.1:0")).value()),
        link_(*Endpoint::parse("127.0.0.1:" + std::to_string(port())), {"v", 0, 1}, key_) {}
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  // Until `is_done`, for some seconds at most.
  template <typename IsDone>
  void progress(IsDone is_done) {
    for (const auto end = wire::monotonic_now() + std::chrono::seconds(20); !is_done();) {
      ASSERT_LT(wire::monotonic_now(), end);
      pollfd fd{link_.fd(), 0, 0};
      if (fd.fd >= 0) fd.events = link_.events();
      poll(&fd, 1, 10);
      std::vector<AnswerMessage> answers;
      link_.progress(wire::monotonic_now(), fd.revents, answers);
    }
  }

  // The replica accepts and challenges the link, and receives its hello.
  void challenge() {
    progress([&] {
      wire::UniqueFd fd = accept_from(listener_.get());
      if (fd.is_open()) replica_ = std::make_unique<FrameSocket>(std::move(fd), kMostGreeting);
      return replica_ != nullptr;
    });
    encode(Challenge{kControlVersion, random_nonce()}, replica_->out());
    ASSERT_TRUE(replica_->flush());
    bool ok = true;
    progress([&] { return replica_->receive() && replica_->next(ok).has_value(); });
  }
  // ... and welcomes it.
  void welcome(const Geometry& geometry) {
    encode(Welcome{geometry, {}}, replica_->out());
    ASSERT_TRUE(replica_->flush());
    progress([&] { return link_.is_welcomed() || !link_.reason().empty(); });
  }

  const VolumeKey key_;
  wire::UniqueFd listener_;
  ReplicaLink link_;
  std::unique_ptr<FrameSocket> replica_;
};

TEST_F(ReplicaLinkTest, HasNoComplaintAboutAReplicaThatIsGreeting) {
  challenge();
  EXPECT_EQ(link_.reason(), "");
}

TEST_F(ReplicaLinkTest, TakesAVolumeWithAsManyChunksAsABitmapHas) {
  challenge();
  welcome({kMostChunks << 20, 4096, 1 << 20});
  EXPECT_TRUE(link_.is_welcomed()) << link_.reason();
}

// This writer could not decode the replica's marks.
TEST_F(ReplicaLinkTest, RefusesAVolumeWithMoreChunksThanABitmapHas) {
  challenge();
  welcome({(kMostChunks << 20) + 4096, 4096, 1 << 20});
  EXPECT_FALSE(link_.is_welcomed());
}

}  // namespace
}  // namespace cepheus::replica
