#include "controller/connections/daemon/frame_stream.h"

#include <gtest/gtest.h>

#include "controller/connections/engine/message.h"

namespace cepheus::connections {
namespace {

using Local = asio::local::stream_protocol;

// A stream's owner, like PeerLinks: the stream's handlers hold it.
struct Owner {
  std::shared_ptr<FrameStream> stream;
  int frames = 0, ends = 0;
};

class FrameStreamTest : public testing::Test {
 protected:
  static constexpr std::size_t kMostFrame = 1024;

  FrameStreamTest() {
    Local::socket ours(io);
    asio::local::connect_pair(ours, other);
    owner->stream = std::make_shared<FrameStream>(Socket(std::move(ours)), kMostFrame);
  }
  template <typename OnFrame>
  void start(OnFrame on_frame) {
    owner->stream->start(
        [held = owner, on_frame](std::span<const std::uint8_t>) {
          ++held->frames;
          on_frame(*held);
        },
        [held = owner](FrameStream::End, const std::string&) { ++held->ends; });
  }
  void send(std::vector<std::uint8_t> bytes) { asio::write(other, asio::buffer(bytes)); }
  // True if nothing holds the owner once all handlers have run.
  bool is_freed() {
    const std::weak_ptr<Owner> watched = owner;
    owner.reset();
    io.run();
    return watched.expired();
  }

  asio::io_context io;
  Local::socket other{io};
  std::shared_ptr<Owner> owner = std::make_shared<Owner>();
};

TEST_F(FrameStreamTest, IsFreedWhenTheOtherEndHangsUpInsideAFrame) {
  start([](Owner&) {});
  send({0, 0, 4, 0, 1});  // 1 byte of 1024
  other.close();
  EXPECT_TRUE(is_freed());
}

TEST_F(FrameStreamTest, IsFreedWhenTheOtherEndBreaksTheBounds) {
  start([](Owner&) {});
  send({0xFF, 0xFF, 0xFF, 0xFF});
  EXPECT_TRUE(is_freed());
}

TEST_F(FrameStreamTest, IsFreedWhenItsOwnerClosesItInsideAFrame) {
  start([](Owner& o) { o.stream->close(); });
  send({0, 0, 0, 1, 7});
  EXPECT_TRUE(is_freed());
}

TEST_F(FrameStreamTest, IsFreedOnceItsLastWordsAreOut) {
  start([](Owner& o) {
    o.stream->send(frame_of(about(MessageType::kRefusal, 0, "no")));
    o.stream->finish();
  });
  send({0, 0, 0, 1, 7});
  EXPECT_TRUE(is_freed());
}

TEST_F(FrameStreamTest, TakesTheLastFramesOfAnEndThatItCantWriteToAnyMore) {
  send({0, 0, 0, 1, 7});
  other.close();
  owner->stream->send(frame_of(about(MessageType::kPing, 0)));
  start([](Owner&) {});
  io.run();
  EXPECT_EQ(owner->frames, 1);
  EXPECT_EQ(owner->ends, 1);
}

TEST_F(FrameStreamTest, TakesFramesUntilTheEndWhichItReportsOnce) {
  start([](Owner&) {});
  send({0, 0, 0, 1, 7, 0, 0, 0, 2, 8, 9});
  other.close();
  io.run();
  EXPECT_EQ(owner->frames, 2);
  EXPECT_EQ(owner->ends, 1);
}

}  // namespace
}  // namespace cepheus::connections
