// For tests: a network namespace of this process's own, with a veth pair in it.
//
// The peer's end is a raw packet socket, so that tests control every byte on the wire. If the
// kernel or its policy refuses a namespace, make() returns the reason and the test is skipped with
// a message.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

class TestVeth {
 public:
  // Interfaces "host" and "port", joined, up, with this MTU; without IPv6. The thread stays in the
  // namespace, so that each process has one such network.
  static wire::Result<std::unique_ptr<TestVeth>> make(unsigned mtu);

  // Creates the pair, again if it was deleted.
  bool make_pair();

  // Whole frames at the host's end.
  bool send(const std::vector<std::uint8_t>& frame);
  std::optional<std::vector<std::uint8_t>> receive();  // waits; empty after `kTimeLimit`

  // Nothing leaves by "port" beyond a few frames, until the link goes on. False: tc(8), or the
  // kernel's token bucket, is missing.
  static bool stop_link();
  static bool resume_link();

  // Runs an ip(8) command, without the "ip". False if it fails.
  static bool ip(const std::string& arguments);

 private:
  explicit TestVeth(unsigned mtu) : mtu_(mtu) {}

  const unsigned mtu_;
  UniqueFd socket_;
};

}  // namespace cepheus::fabric
