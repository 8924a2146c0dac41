// The writer's control connection to one replica: dialled, greeted, and dialled again after a
// failure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "replica/control/frame_socket.h"
#include "replica/control/volume_key.h"

namespace cepheus::replica {

class ReplicaLink {
 public:
  struct Identity {
    std::string volume;
    std::uint8_t place = 0, count = 0;
  };
  ReplicaLink(Endpoint endpoint, Identity identity, const VolumeKey& key);

  enum class LinkChange { kNone, kWelcomed, kLost };

  // -1: none to poll.
  int fd() const { return socket_ ? socket_->fd() : -1; }
  short events() const;
  wire::Instant deadline() const;
  // After poll(), or at the deadline; appends the received answers. One change at a time.
  LinkChange progress(wire::Instant now, short revents, std::vector<AnswerMessage>& answers);

  void send(const RequestMessage& message);
  void disconnect(wire::Instant now);

  bool is_welcomed() const { return state_ == State::kWelcomed; }
  const std::string& name() const { return endpoint_.name; }
  const Geometry& geometry() const { return geometry_; }
  // The reason why there is no connection; empty if there is one, or the reason is not known yet.
  const std::string& reason() const { return reason_; }
  // The replica refuses this writer.
  bool is_refused() const { return is_refused_; }

 private:
  enum class State { kAway, kDialling, kGreeting, kWelcomed };

  void dial_now(wire::Instant now);
  LinkChange lose(wire::Instant now, const std::string& why);
  // False: end the connection; `reason_` has the reason.
  bool take(const FrameSocket::Frame& frame, std::vector<AnswerMessage>& answers);

  const Endpoint endpoint_;
  const Identity identity_;
  const VolumeKey& key_;
  State state_ = State::kAway;
  wire::Instant until_{};  // kAway: the next dialling; other states but kWelcomed: the time limit
  std::unique_ptr<FrameSocket> socket_;
  Nonce nonce_{};
  Geometry geometry_;
  std::string reason_;
  bool is_refused_ = false;
};

}  // namespace cepheus::replica
