// A switch's port towards one host over any medium: shared memory (switch_port.h) or a network
// interface (wire_port.h). The datapath moves frames between ports and knows no more of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "switch-emulator/ports/sender_shares.h"
#include "wire/counter_table.h"
#include "wire/frame.h"

namespace cepheus::fabric {

// Each is a line of port_counters.def.
enum class PortCounter : std::size_t {
#define CEPHEUS_COUNTER(id, name, help) id,
#include "switch-emulator/ports/port_counters.def"
  kCount
};
using PortCounters = wire::CounterValues<PortCounter>;

class AccessPort;
// Ports with counters to publish; each port adds itself once.
using FlushList = std::vector<AccessPort*>;

class AccessPort {
 public:
  // Between requests for the address of a silent host (RFC 1122, 2.3.2.1 requires a limit, and
  // suggests 1 s).
  static constexpr wire::Duration kBetweenQuestions = std::chrono::milliseconds(100);

  virtual ~AccessPort() = default;

  virtual bool is_open() const = 0;
  virtual void close() = 0;

  // The next frame from the host; it holds one reference on frame.ref, unless that is kNoBuffer.
  // RoCE frames have an ICRC, present or deferred, and others none.
  virtual bool receive(wire::Frame& frame) = 0;
  // Gives a frame of `sender` to the host; the caller keeps its reference. False: dropped and
  // counted.
  virtual bool deliver(const wire::Frame& frame, SenderNo sender, wire::Instant now) = 0;
  // Makes delivered and taken frames visible to the other side. Called for the flush list.
  virtual void flush() = 0;

  // Requests an event when a frame comes. False if one is there already.
  virtual bool arm() = 0;
  // Frees frames that the other side has finished with, and sends on frames that had no room.
  virtual void reclaim() = 0;
  // Number of delivered frames that reclaim() may still have to free.
  virtual std::uint32_t unread() const = 0;
  // Percent of the ring or queue towards the host that is full now.
  virtual std::uint8_t fill() const = 0;
  // The client's violation of the medium's rules, if any: the caller counts it and closes the port.
  virtual std::optional<PortCounter> offence() const = 0;

  // Frames of the host that were not for the switch: bad ones, or requests for an address.
  std::uint64_t refused() const { return refused_; }
  const PortCounters& counters() const { return counters_; }
  void count(PortCounter c, std::uint64_t n = 1) { counters_.add(c, n); }

 protected:
  explicit AccessPort(FlushList& flush_list) : flush_list_(flush_list) {}
  AccessPort(const AccessPort&) = delete;
  AccessPort& operator=(const AccessPort&) = delete;

  void mark_for_flush() {
    if (marked_) return;
    marked_ = true;
    flush_list_.push_back(this);
  }
  void unmark() { marked_ = false; }
  void refuse(PortCounter why) {
    counters_.add(why);
    ++refused_;
  }

  PortCounters counters_;

 private:
  FlushList& flush_list_;
  bool marked_ = false;
  std::uint64_t refused_ = 0;
};

inline void flush_all(FlushList& list) {
  for (AccessPort* port : list) port->flush();
  list.clear();
}

}  // namespace cepheus::fabric
