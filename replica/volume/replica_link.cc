// States: kAway until the next dialling, kDialling, kGreeting, kWelcomed. Any failure leads to
// kAway, for kAgain, or for kRefusedAgain once the replica has refused this writer. Dialling and
// greeting together have kTimeLimit; a welcomed connection has none here, for the writer's pings do
// that.
//
// A welcome counts only with a fitting tag and a sound geometry. Answers before it, and any other
// frame after it, end the connection. Requests without a welcome are dropped.
#include "replica/volume/replica_link.h"

#include <poll.h>

#include <bit>
#include <cstring>
#include <utility>

#include "wire/printable.h"

namespace cepheus::replica {
namespace {

using namespace std::chrono_literals;

constexpr wire::Duration kAgain = 50ms;
constexpr wire::Duration kRefusedAgain = 1s;
constexpr wire::Duration kTimeLimit = 2s;  // to connect, and to be welcomed

bool is_sound(const Geometry& g) {
  return std::has_single_bit(g.block) && g.block >= 512 && g.chunk >= g.block &&
         g.chunk % g.block == 0 && g.size > 0 && g.size % g.block == 0 &&
         g.size <= kMostChunks * g.chunk;
}

}  // namespace

ReplicaLink::ReplicaLink(Endpoint endpoint, Identity identity, const VolumeKey& key)
    : endpoint_(std::move(endpoint)), identity_(std::move(identity)), key_(key) {}

short ReplicaLink::events() const {
  return state_ == State::kDialling ? POLLOUT : socket_->events();
}

wire::Instant ReplicaLink::deadline() const {
  return state_ == State::kWelcomed ? wire::kNever : until_;
}

void ReplicaLink::dial_now(wire::Instant now) {
  auto fd = dial(endpoint_);
  if (!fd) {
    lose(now, fd.error().text);
    return;
  }
  socket_ = std::make_unique<FrameSocket>(std::move(*fd), kMostFrame);
  state_ = State::kDialling;
  until_ = now + kTimeLimit;
}

ReplicaLink::LinkChange ReplicaLink::lose(wire::Instant now, const std::string& why) {
  const bool was_welcomed = state_ == State::kWelcomed;
  socket_.reset();
  state_ = State::kAway;
  until_ = now + (is_refused_ ? kRefusedAgain : kAgain);
  reason_ = why;
  return was_welcomed ? LinkChange::kLost : LinkChange::kNone;
}

void ReplicaLink::disconnect(wire::Instant now) {
  if (state_ != State::kAway) lose(now, "closed by this writer");
}

ReplicaLink::LinkChange ReplicaLink::progress(wire::Instant now, short revents,
                                              std::vector<AnswerMessage>& answers) {
  if (state_ == State::kAway) {
    if (now >= until_) dial_now(now);
    return LinkChange::kNone;
  }
  if (state_ != State::kWelcomed && now >= until_) return lose(now, "no answer");
  if (revents == 0) return LinkChange::kNone;
  if (state_ == State::kDialling) {
    if (const int error = outcome(fd())) return lose(now, std::strerror(error));
    state_ = State::kGreeting;
    return LinkChange::kNone;
  }
  const bool was_welcomed = is_welcomed();
  const bool lives = socket_->receive();
  bool ok = true;
  while (const auto frame = socket_->next(ok)) {
    if (!take(*frame, answers)) return lose(now, reason_);
  }
  if (!ok) return lose(now, "it is not a replica");
  if (!lives || !socket_->flush()) return lose(now, "it disconnected");
  return is_welcomed() && !was_welcomed ? LinkChange::kWelcomed : LinkChange::kNone;
}

bool ReplicaLink::take(const FrameSocket::Frame& frame, std::vector<AnswerMessage>& answers) {
  const std::string before = std::exchange(reason_, "it is not a replica");
  if (state_ == State::kWelcomed) {
    auto answer =
        frame.type == MessageType::kAnswer ? decode<AnswerMessage>(frame.body) : std::nullopt;
    if (!answer) return false;
    answers.push_back(std::move(*answer));
    reason_.clear();
    return true;
  }
  switch (frame.type) {
    case MessageType::kChallenge: {
      const auto challenge = decode<Challenge>(frame.body);
      if (!challenge) return false;
      VolumeHello hello;
      hello.role = Role::kWriter;
      hello.volume = identity_.volume;
      hello.place = identity_.place;
      hello.count = identity_.count;
      hello.nonce = nonce_ = random_nonce();
      hello.tag = key_.tag(covered(challenge->nonce, hello));
      encode(hello, socket_->out());
      reason_ = before;
      return true;
    }
    case MessageType::kWelcome: {
      const auto welcome = decode<Welcome>(frame.body);
      if (!welcome || !is_sound(welcome->geometry)) return false;
      if (!key_.fits(welcome->tag, covered(nonce_, *welcome))) {
        reason_ = "its key differs";
        return false;
      }
      geometry_ = welcome->geometry;
      state_ = State::kWelcomed;
      is_refused_ = false;
      reason_.clear();
      return true;
    }
    case MessageType::kRefusal:
      is_refused_ = true;
      reason_ = wire::printable(decode_text(frame.body).value_or("it refuses"));
      return false;
    default:
      return false;
  }
}

void ReplicaLink::send(const RequestMessage& message) {
  if (state_ != State::kWelcomed) return;
  encode(message, socket_->out());
  socket_->flush();  // the next read detects a closed connection
}

}  // namespace cepheus::replica
