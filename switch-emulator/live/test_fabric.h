// For tests: a live fabric on its own thread, hosts attached to it, and frames between them.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "switch-emulator/live/live_fabric.h"
#include "switch-emulator/live/status/test_readings.h"
#include "switch-emulator/ports/handshake.h"
#include "switch-emulator/ports/host_port.h"
#include "switch-emulator/ports/port_segment.h"
#include "wire/mrp.h"
#include "wire/roce.h"

namespace cepheus::live {

inline constexpr std::chrono::seconds kTimeLimit{20};  // more than any machine needs

class TestFabric {
 public:
  explicit TestFabric(const net::Topology& topology, LiveOptions options = {}) {
    static std::atomic<int> count{0};
    if (options.socket.empty()) {
      options.socket =
          "/tmp/cepheus-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
    }
    socket_ = options.socket;
    auto fabric = LiveFabric::start(topology, options);
    if (!fabric) throw std::runtime_error(fabric.error().text);
    fabric_ = std::move(*fabric);
    thread_ = std::thread([this] { fabric_->run(); });
  }
  ~TestFabric() { stop(); }

  const std::string& socket() const { return socket_; }
  std::unique_ptr<fabric::HostPort> attach(const std::string& host) {
    auto port = fabric::HostPort::attach({socket_, host});
    if (!port) throw std::runtime_error(port.error().text);
    return std::move(*port);
  }
  FabricStatus status() { return fabric_->status(); }
  // The status as soon as `condition` holds for it, or the last one if it never does.
  template <typename Condition>
  FabricStatus status_when(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + kTimeLimit;
    for (;;) {
      FabricStatus now = status();
      if (condition(now) || std::chrono::steady_clock::now() > until) return now;
      std::this_thread::yield();
    }
  }
  void stop() {
    if (!thread_.joinable()) return;
    fabric_->stop();
    thread_.join();
    fabric_.reset();
  }

 private:
  std::string socket_;
  std::unique_ptr<LiveFabric> fabric_;
  std::thread thread_;
};

// A client of the attach socket that writes the handshake by hand.
fabric::UniqueFd connect_to(const std::string& socket, int type = SOCK_SEQPACKET);
// Waits for the next message.
std::optional<fabric::Message> await_message(int fd);

// An attached client that does anything with its shared memory.
class RawClient {
 public:
  RawClient(const std::string& socket, const std::string& host);
  const fabric::PortSegment& segment() const { return segment_; }
  const fabric::HostIdentity& identity() const { return identity_; }
  // All memory that it can read: the part shared with the switch alone, and its user's pool.
  std::array<int, 2> shared_files() const {
    return {granted_.fds[fabric::kSegmentFd].get(), granted_.fds[fabric::kPoolFd].get()};
  }
  void ring_doorbell() const;
  int own_doorbell() const { return granted_.fds[fabric::kClientDoorbellFd].get(); }

 private:
  fabric::UniqueFd socket_;
  fabric::Message granted_;
  fabric::HostIdentity identity_;
  fabric::PortSegment segment_;
};

inline const PortStatus& port_of(const FabricStatus& status, std::size_t host) {
  return status.switches[0].ports[host];
}

// Waits for a frame as a NIC does: arm, sleep, disarm. False if none comes or the fabric ends.
inline bool await_frame(fabric::HostPort& port, wire::Frame& frame,
                        std::chrono::milliseconds time_limit = kTimeLimit) {
  const auto until = std::chrono::steady_clock::now() + time_limit;
  while (!port.receive(frame)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !port.is_connected()) return false;
    if (!port.arm()) continue;
    pollfd waiting{port.wait_fd(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(left.count()));
    port.disarm();
  }
  return true;
}

// Waits until a frame with `payload_bytes` of payload can be sent. False if it never can.
inline bool await_space(fabric::HostPort& port, std::size_t payload_bytes) {
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  while (port.free_entries() == 0 || (payload_bytes > 0 && port.tx_buffer().empty())) {
    if (std::chrono::steady_clock::now() > until || !port.is_connected()) return false;
    if (!port.arm()) continue;
    pollfd waiting{port.wait_fd(), POLLIN, 0};
    poll(&waiting, 1, 1000);
    port.disarm();
  }
  return true;
}

struct Packet {  // an RC SEND ONLY by default
  wire::Ipv4 to;
  wire::Qpn qpn{7};
  wire::Psn psn{0};
  std::size_t payload_bytes = 0;
  std::uint8_t fill = 0;
  wire::Opcode opcode = wire::Opcode::kRcSendOnly;
  bool damage_icrc = false;
};

// Sends one packet from the port's host. Its ICRC is deferred, or computed if the fabric wants it.
void send_packet(fabric::HostPort& port, const Packet& packet);
void send_mrp(fabric::HostPort& port, const wire::MrpMessage& message);

}  // namespace cepheus::live
