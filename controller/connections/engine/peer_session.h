// One end of a TCP connection between two daemons, without I/O: identity and authorisation.
//
// Both send HELLO with a random challenge, then READY. From READY on each frame ends with a tag:
//
//   HMAC(key; sender's host, "cepheus-cmd", direction, dialler's HELLO, accepter's HELLO, number of the frame,
//        SHA-256 of the message)
//
// So READY answers the other end's challenge. No frame can be repeated, reordered, reflected or
// used on another connection. Without a key on either end tags are zeros. With a key on one end
// only, both refuse.
#pragma once

#include <optional>
#include <span>

#include "controller/connections/engine/message.h"
#include "wire/mrp_key.h"
#include "wire/result.h"

namespace cepheus::connections {

class PeerSession {
 public:
  using Tag = wire::MrpKey::Tag;

  struct Settings {
    bool is_dialler = false;
    wire::Ipv4 host;  // our own
    wire::Ipv4 peer;  // the host that we dialled; unset: the other end dialled
    Nonce nonce{};    // random
    std::uint32_t time_limit_ms = 2000;
    const wire::MrpKey* key = nullptr;  // outlives the session; null: none
  };
  explicit PeerSession(const Settings& settings);

  // The first frame to send, at once.
  std::vector<std::uint8_t> hello() const { return frame_of(hello_); }
  // A frame of that message. Only once can_send().
  std::vector<std::uint8_t> seal(const Message& message);
  // The frame that ends the connection. Until the session is ready it is in the clear: a peer with another key could
  // not read it otherwise.
  std::vector<std::uint8_t> refusal(const std::string& why);
  // The other's next frame, without its length. HELLO and READY are messages like others: after HELLO one sends
  // READY. After an error the connection is to be closed; the text is for both ends. kRefused: the other end's REFUSAL.
  wire::Result<Message> open(std::span<const std::uint8_t> frame);

  bool can_send() const { return peers_hello_.has_value(); }
  bool is_ready() const { return is_ready_; }
  // The other end's host; valid once can_send().
  wire::Ipv4 peer() const { return peers_hello_->host; }
  std::uint32_t peers_time_limit_ms() const { return peers_hello_->time_ms; }

 private:
  wire::Result<Message> take_hello(const Message& hello);
  Tag tag(bool by_dialler, std::uint64_t number, std::span<const std::uint8_t> message) const;

  Settings settings_;
  Message hello_;
  std::optional<Message> peers_hello_;
  bool is_ready_ = false;
  std::uint64_t sent_ = 0, received_ = 0;  // signed frames
};

}  // namespace cepheus::connections
