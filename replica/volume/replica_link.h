// The writer's control connection to one replica: dialled, greeted, and dialled again when it is lost.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replica/control/frame_socket.h"
#include "replica/control/volume_key.h"

namespace cepheus::replica {

class ReplicaLink {
 public:
  struct Who {
    std::string volume;
    std::uint8_t place = 0, count = 0;
  };
  ReplicaLink(Endpoint endpoint, Who who, const VolumeKey& key);

  enum class LinkChange { kNone, kWelcomed, kLost };

  // -1: none to poll.
  int fd() const { return socket_ ? socket_->fd() : -1; }
  short events() const;
  wire::Instant deadline() const;
  // After poll(), or at the deadline; the answers that came. One change at a time.
  LinkChange progress(wire::Instant now, short revents, std::vector<AnswerMessage>& answers);

  void send(const RequestMessage& message);
  void hang_up(wire::Instant now);

  bool is_welcomed() const { return state_ == State::kWelcomed; }
  const std::string& name() const { return endpoint_.name; }
  const Geometry& geometry() const { return geometry_; }
  // Why there is no connection; empty if there is one, or nothing is known yet.
  const std::string& complaint() const { return complaint_; }
  // It is the replica that does not want this writer.
  bool is_refused() const { return is_refused_; }

 private:
  enum class State { kAway, kDialling, kGreeting, kWelcomed };

  void dial_now(wire::Instant now);
  LinkChange lose(wire::Instant now, const std::string& why);
  // False: it is no use to go on, `complaint_` says why.
  bool take(const FrameSocket::Frame& frame, std::vector<AnswerMessage>& answers);

  const Endpoint endpoint_;
  const Who who_;
  const VolumeKey& key_;
  State state_ = State::kAway;
  wire::Instant until_{};  // kAway: to dial again; others but kWelcomed: to give up
  std::unique_ptr<FrameSocket> socket_;
  Nonce nonce_{};
  Geometry geometry_;
  std::string complaint_;
  bool is_refused_ = false;
};

}  // namespace cepheus::replica
