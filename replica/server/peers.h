// The connections of a replica: writers, observers, and strangers that have not sent their hello.
#pragma once

#include <map>
#include <optional>

#include "replica/control/frame_socket.h"
#include "replica/control/volume_key.h"
#include "wire/times.h"

namespace cepheus::replica {

struct Peer {
  FrameSocket socket;
  Nonce nonce;
  wire::Instant until;  // time limit of the hello, or of the next message
  std::optional<VolumeHello> hello{};
  bool has_more = false;      // further requests have arrived, for the next turn
  bool is_digesting = false;  // its answer is being made: no request is taken until that is sent
  std::size_t at_disk = 0;    // weights of its requests that wait for a disk

  // It has read its answer, so the next request may be taken.
  bool can_go_on() const;
  short events() const;  // for poll()
};

// By link, a number that is used once.
class Peers : public std::map<std::uint64_t, Peer> {
 public:
  static constexpr std::size_t kMost = 64;

  bool is_full() const { return size() >= kMost; }
  // The oldest connection without a hello, else the oldest observer. None: all are writers.
  std::optional<std::uint64_t> one_to_give_way() const;
  // Sends the challenge. The connection is dropped if it takes none.
  void add(wire::UniqueFd connection);

 private:
  std::uint64_t links_ = 0;
};

}  // namespace cepheus::replica
