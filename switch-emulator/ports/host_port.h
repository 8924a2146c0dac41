// A host's end of a shared-memory port, by which a user-space NIC reaches the switch. It needs no
// root and no kernel device.
//
// The fabric listens on a Unix socket; attaching hands over sealed memfds and eventfds
// (ports/handshake.h). A port is two rings of 128-byte frames, one each way, and a pool of payload
// slots shared by the clients of one user, so that the switch replicates by reference
// (ports/ring.h, ports/payload_pool.h).
//
// Thread-compatible: the caller serialises all calls on one port. receive/release and send/flush
// never block, and make no system call except to ring a sleeping peer's doorbell.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "wire/frame.h"
#include "wire/result.h"

namespace cepheus::fabric {

struct HostIdentity {
  std::string name;  // "h0"
  wire::Ipv4 address;
  wire::Mac mac;
  wire::Mac gateway;             // the switch's MAC
  std::uint32_t mtu = 4096;      // largest path MTU, payload bytes
  wire::BitRate rate;            // of the host's link; unlimited if unshaped
  wire::BitRate slowest_rate;    // of any link of the fabric
  bool icrc_always = false;      // hosts make and check the ICRC
  std::uint32_t host_index = 0;  // position in the topology
  std::uint32_t host_count = 0;
};

class HostPort {
 public:
  struct Options {
    std::string fabric;  // path of the fabric's socket
    // Name or address of the wanted host; "#3": the host with that index; empty: first free one.
    std::string host;
    bool or_any = false;            // if that host is taken or reserved, the first free one
    std::uint64_t reservation = 0;  // of this process's job (ports/handshake.h)
    std::chrono::milliseconds timeout{2000};        // for a fabric that does not visibly run
    std::chrono::milliseconds busy_timeout{30000};  // for one that does: a busy machine is late
  };
  // Errors: kUnavailable (no fabric there, or another protocol version), kRefused (no such host, or
  // another process holds or has reserved the port; the error names its pid).
  static wire::Result<std::unique_ptr<HostPort>> attach(const Options& options);
  ~HostPort();

  const HostIdentity& identity() const;

  // The next frame from the wire, or false. Its payload stays valid until release().
  bool receive(wire::Frame& frame);
  // Gives back all frames received so far. Call it at the latest when receive() has returned false:
  // the switch drops frames while the ring is full.
  void release();

  // Memory for one payload of identity().mtu bytes + pad, or an empty span if the pool is
  // exhausted. The same slot is offered again until it is sent. free_entries() is the number of
  // frames that fit into the ring.
  std::span<std::uint8_t> tx_buffer();
  std::size_t free_entries() const;
  // Queues one frame with its payload inline or in tx_buffer(). Precondition: free_entries() > 0.
  void send(wire::Frame& frame);
  // Makes queued frames visible and rings the switch's doorbell if it sleeps.
  void flush();

  // For sleeping: a descriptor that becomes readable when frames arrive, ring space returns or the
  // fabric ends, if arm() returned true before; false means that there is work already. disarm()
  // empties it, or sleep() does so and withdraw() ends the request. kBatch: frames within a message
  // wake no thread, until one requests an acknowledgement, a quarter of the ring is full, or some
  // were dropped.
  enum class WaitFor : std::uint8_t { kFrame, kBatch };
  int wait_fd() const;
  bool arm(WaitFor what = WaitFor::kFrame);
  void disarm();
  // Waits on that descriptor, for `most` at most. Other threads may use the port meanwhile, and a
  // signal handler may fork: the child has no port any more. False: the kernel can't wait.
  static bool sleep(int wait_fd, wire::Duration most);
  void withdraw();
  // False once the fabric has closed the port (the switch died or detached this host). One system
  // call: call it when nothing has arrived for a while, and after waking up; a spinning caller does
  // so every few milliseconds.
  bool is_connected() const;
  // Refused frames and payload slots of the fabric (impossible lengths or references).
  std::uint64_t invalid_frames() const;
  // After fork(), in the child: unmaps and closes without notifying the fabric.
  void abandon();
  // The same if a signal handler called fork() and its thread may be in the middle of a call: the
  // memory stays mapped, but becomes private to the child, and zeroed.
  void isolate();

 private:
  struct State;
  explicit HostPort(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cepheus::fabric
