// The switch's end of a host's shared-memory port: what a client says is checked here, and nowhere
// else.
//
// receive() hands out frames whose lengths, payload and ICRC state can be relied on; the payload
// bytes themselves stay the client's to change, so whoever parses them copies them first. deliver()
// gives a frame to the client by reference, or by copy if the payload belongs to another user's
// pool. Not thread-safe.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "switch-emulator/ports/handshake.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/ports/port_segment.h"

namespace cepheus::fabric {

enum class PortCounter : std::size_t {
  kDropEgressFull,     // the client does not read: its ring, or its share of payload slots, is full
  kDropNoClient,       // nobody is attached
  kDropNoSlot,         // no free slot to copy a payload into
  kDropBadDescriptor,  // from the client: lengths, states or payload references that can't be
  kDropRingCorrupt,    // the client's indices made no sense: it was detached
  kCopiedPayloads,     // payloads delivered by copy
  kDoorbells,          // times the client had to be woken
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

class SwitchPort;
// Ports with something to publish; each port puts itself in once.
using FlushList = std::vector<SwitchPort*>;

class SwitchPort final : public SlotOwner {
 public:
  // `area` is the port's in every pool; both references outlive the port.
  SwitchPort(PayloadPools& pools, std::uint32_t area, FlushList& flush_list);
  ~SwitchPort();
  SwitchPort(const SwitchPort&) = delete;
  SwitchPort& operator=(const SwitchPort&) = delete;

  // Makes fresh rings for a client; the descriptors to hand over stay the port's own. Precondition:
  // !is_open().
  wire::Result<GrantedFds> open(const PeerCredentials& client);
  // Forgets the client and drops every reference it held.
  void close();
  bool is_open() const { return open_; }
  const PeerCredentials& client() const { return client_; }
  int doorbell() const {
    return doorbell_.get();
  }  // readable when the client has rung; never to be read
  std::uint32_t pool() const { return pool_; }

  // The next frame from the client; it holds one reference on frame.ref, if that is not kNoBuffer.
  // RoCE frames have an ICRC, present or deferred, and others none.
  bool receive(wire::Frame& frame);
  // Drops the references of frames that the client has consumed.
  void reclaim();
  // Puts a frame on the client's ring; the caller's reference stays the caller's. False: dropped
  // and counted.
  bool deliver(const wire::Frame& frame);
  // Makes what was delivered and given back visible, and rings if the client sleeps. Called for the
  // flush list.
  void flush();

  // Asks the client to ring when it sends. False if it has sent already.
  bool arm();
  void disarm() { segment_.switch_sleeps().withdraw(); }
  // The client broke a ring's rules; close it.
  bool is_corrupt() const { return tx_.is_corrupt() || rx_.is_corrupt() || returns_.is_corrupt(); }
  std::uint32_t unread() const { return rx_.produced() - reclaimed_; }

  const PortCounters& counters() const { return counters_; }
  void clear_counters() { counters_.clear(); }
  void count(PortCounter c) { counters_.add(c); }

 private:
  void take_back(std::uint32_t slot) override;
  void mark_for_flush();
  bool refer_or_copy(wire::Frame& frame, bool& copied);
  bool check(const Descriptor& descriptor, wire::Frame& frame);

  PayloadPools& pools_;
  FlushList& flush_list_;
  const std::uint32_t area_;
  std::uint32_t pool_ = 0;
  PeerCredentials client_;
  bool open_ = false;
  bool marked_ = false;

  UniqueFd segment_file_, doorbell_, client_doorbell_;
  PortSegment segment_;
  RingConsumer<Descriptor> tx_;           // from the client
  RingProducer<Descriptor> rx_;           // to the client
  RingProducer<std::uint32_t> returns_;   // slots going home
  std::vector<wire::BufferRef> rx_refs_;  // reference behind each entry of the rx ring
  std::uint32_t reclaimed_ = 0;           // rx entries whose references were dropped
  EgressShare share_;
  PortCounters counters_;
};

}  // namespace cepheus::fabric
