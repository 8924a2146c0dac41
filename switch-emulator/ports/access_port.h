// A switch's port towards one host, whatever the medium: shared memory (switch_port.h) or a network
// interface (wire_port.h). The datapath moves frames between ports and knows no more of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "wire/frame.h"

namespace cepheus::fabric {

enum class PortCounter : std::size_t {
  kDropEgressFull,     // the client does not read: its ring, or its share of payload slots, is full
  kDropNoClient,       // nobody is attached
  kDropNoSlot,         // no free slot to copy a payload into
  kDropBadDescriptor,  // from the client: lengths, states or payload references that can't be
  kDropRingCorrupt,    // the client's indices made no sense: it was detached
  kDoorbellAbused,     // the client had itself woken at so many places that it was detached
  kDropMalformed,      // from the interface: lengths of headers do not add up
  kDropOversize,       // longer than the fabric's frames, or than the interface's MTU
  kDropTagged,         // from the interface, with a VLAN tag
  kDropNoNeighbour,    // the host behind the interface has not told its MAC address yet
  kDropKernelFull,     // frames that the kernel dropped because we had not read
  kDropLinkDown,       // the interface is down
  kCopiedPayloads,     // payloads delivered by copy
  kDoorbells,          // times the client had to be woken
  kArpAnswered,        // neighbours asked for over the interface
  kCount
};
std::string_view name(PortCounter);  // "drop_egress_full"

class PortCounters {
 public:
  void add(PortCounter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t operator[](PortCounter c) const { return values_[static_cast<std::size_t>(c)]; }
  void clear() { values_ = {}; }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(PortCounter::kCount)> values_{};
};

class AccessPort;
// Ports with something to publish; each port puts itself in once.
using FlushList = std::vector<AccessPort*>;

class AccessPort {
 public:
  virtual ~AccessPort() = default;

  virtual bool is_open() const = 0;
  virtual void close() = 0;

  // The next frame from the host; it holds one reference on frame.ref, if that is not kNoBuffer.
  // RoCE frames have an ICRC, present or deferred, and others none.
  virtual bool receive(wire::Frame& frame) = 0;
  // Gives a frame to the host; the caller's reference stays the caller's. False: dropped and
  // counted.
  virtual bool deliver(const wire::Frame& frame, wire::Instant now) = 0;
  // Makes what was delivered and taken visible to the other side. Called for the flush list.
  virtual void flush() = 0;

  // Asks for an event when a frame comes. False if one is there already.
  virtual bool arm() = 0;
  // Frees what the other side is done with, and goes on with what it had no room for.
  virtual void reclaim() = 0;
  // Delivered frames that reclaim() may still have to do with.
  virtual std::uint32_t unread() const = 0;
  // How the client broke the medium's rules, if it did: count that, and close the port.
  virtual std::optional<PortCounter> offence() const = 0;

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

  PortCounters counters_;

 private:
  FlushList& flush_list_;
  bool marked_ = false;
};

}  // namespace cepheus::fabric
