// A client that sends a replica one request at a time and waits for the answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "replica/control/frame_socket.h"
#include "replica/control/volume_key.h"

namespace cepheus::replica {

class Observer {
 public:
  // Connects to "host:port" and is welcomed. kInvalid: not an address; kTimedOut, kUnavailable,
  // kRefused.
  static wire::Result<Observer> connect(const std::string& address, const VolumeKey& key);

  const std::string& address() const { return address_; }
  wire::Result<nlohmann::json> status();
  wire::Result<std::vector<Digest>> digests(const DigestRequest& request);

 private:
  Observer(std::string address, wire::UniqueFd fd)
      : address_(std::move(address)), socket_(std::move(fd), kMostFrame) {}
  // Sends the encoded request, and waits for a frame of that type.
  wire::Result<std::vector<std::uint8_t>> exchange(MessageType wanted);
  tl::unexpected<wire::Error> failed(wire::ErrorCode code, const std::string& why) const;

  std::string address_;
  FrameSocket socket_;
};

}  // namespace cepheus::replica
