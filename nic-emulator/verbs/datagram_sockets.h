// UDP ports of a NIC that has no kernel interface: assigns datagrams to sockets, in queues of
// bounded length.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/roce.h"
#include "wire/types.h"

namespace cepheus::verbs {

// Ethernet's 1500 bytes less IPv4 and UDP: every host of a fabric can receive that.
inline constexpr std::size_t kMaxDatagram = 1472;

struct Datagram {
  wire::Ipv4 from;
  std::uint16_t from_port = 0;
  std::uint16_t size = 0;
  std::array<std::uint8_t, kMaxDatagram> data;
};

class DatagramSocket {
 public:
  static constexpr std::size_t kQueue = 256;

  DatagramSocket(std::uint16_t port, std::uint16_t from_port, std::uint8_t tos)
      : port_(port), from_port_(from_port), tos_(tos), queue_(kQueue) {}
  std::uint16_t port() const { return port_; }
  std::uint8_t tos() const { return tos_; }  // of sent datagrams
  bool takes_from(std::uint16_t port) const { return from_port_ == 0 || port == from_port_; }

  // False: the queue is full.
  bool push(const wire::UdpDatagram& headers, std::span<const std::uint8_t> payload);
  // The oldest datagram, or null; valid until pop().
  const Datagram* front() const { return count_ == 0 ? nullptr : &queue_[first_]; }
  void pop();

 private:
  const std::uint16_t port_;
  const std::uint16_t from_port_;  // 0: any
  const std::uint8_t tos_;
  std::vector<Datagram> queue_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// Thread-compatible: the NIC's lock serialises.
class DatagramSockets {
 public:
  struct Counters {
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    std::uint64_t dropped_malformed = 0;
    std::uint64_t dropped_not_mine = 0;
    std::uint64_t dropped_port_closed = 0;
    std::uint64_t dropped_source_port = 0;
    std::uint64_t dropped_queue_full = 0;
    std::uint64_t dropped_too_long = 0;
  };

  explicit DatagramSockets(wire::Ipv4 address) : address_(address) {}
  // Port 0: any free one. `from_port`: the socket takes datagrams of that source port only; 0: of
  // any. Null: another socket has the port, or none is free.
  DatagramSocket* open(std::uint16_t port, std::uint16_t from_port = 0, std::uint8_t tos = 0);
  void close(DatagramSocket* socket);
  // Hands a frame other than RoCE to its socket, or drops and counts it.
  void deliver(const wire::Frame& frame);

  Counters counters;

 private:
  DatagramSocket* find(std::uint16_t port) const;
  std::uint16_t free_port() const;

  const wire::Ipv4 address_;
  std::vector<std::unique_ptr<DatagramSocket>> sockets_;
};

}  // namespace cepheus::verbs
