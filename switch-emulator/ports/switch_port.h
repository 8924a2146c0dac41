// The switch's end of a host's shared-memory port, and the only place that checks the client's
// values.
//
// receive() returns frames with checked lengths, payload reference and ICRC state. The client can
// still change the payload bytes themselves, so code that parses them copies them first. deliver()
// gives a frame to the client by reference, or by copy if the payload belongs to another user's
// pool. Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/bell.h"
#include "switch-emulator/ports/handshake.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/ports/port_segment.h"
#include "wire/frame.h"
#include "wire/roce.h"

namespace cepheus::fabric {

// Bulk data, with which receivers and switches may wait for a batch: a packet within a message,
// without AckReq. Precondition: RoCE frames have a BTH. A packet that was marked on its way may not
// wait: its receiver has to send a CNP.
inline bool is_bulk_data(const wire::Frame& frame) {
  if (frame.icrc_state == wire::Icrc::kNone) return false;
  constexpr std::size_t kTos = wire::kIpOffset + 1, kAckRequest = wire::kBthOffset + 8;
  constexpr std::uint8_t kMarked = 3;  // congestion experienced (RFC 3168)
  const std::uint8_t* const p = frame.bytes.data();
  const wire::OpcodeInfo& info = opcode_info(static_cast<wire::Opcode>(p[wire::kBthOffset]));
  return (info.send || info.write || info.response) && !info.last && (p[kAckRequest] & 0x80) == 0 &&
         (p[kTos] & kMarked) != kMarked;
}

class SwitchPort final : public AccessPort, public SlotOwner {
 public:
  // `area` is the port's in every pool; both references outlive the port.
  SwitchPort(PayloadPools& pools, std::uint32_t area, FlushList& flush_list);
  ~SwitchPort() override;

  // Creates new rings for a client. The descriptors stay the port's own; once they have been handed
  // over, forget_granted() closes those that only the client needs. Precondition: !is_open().
  wire::Result<GrantedFds> open(const PeerCredentials& client);
  void forget_granted();
  // Detaches the client and drops every reference it held. A closed port moves no frames: all other
  // calls are allowed and do nothing.
  void close() override;
  bool is_open() const override { return open_; }
  const PeerCredentials& client() const { return client_; }
  // Number of clients that this port has had, from 1 on.
  std::uint64_t attachment() const { return attachment_; }
  int doorbell() const {
    return doorbell_.get();
  }  // readable when the client has rung; must not be read
  std::uint32_t pool() const { return pool_; }

  bool receive(wire::Frame& frame) override;
  // Drops the references of frames that the client has consumed.
  void reclaim() override;
  // Puts a frame on the client's ring.
  bool deliver(const wire::Frame& frame, SenderNo sender, wire::Instant now) override;
  // The same for a frame that the caller keeps if there is no space: the sender has no share of the
  // ring, and nothing is counted. Precondition: is_open().
  bool try_deliver(const wire::Frame& frame, SenderNo sender);
  // Rings if the client sleeps.
  void flush() override;

  // Requests that the client rings when it sends.
  bool arm() override;
  void disarm() {
    if (open_) segment_.switch_sleeps().withdraw();
  }
  std::optional<PortCounter> offence() const override {
    if (tx_.is_corrupt() || rx_.is_corrupt() || returns_.is_corrupt()) {
      return PortCounter::kDropRingCorrupt;
    }
    if (bell_.is_abused()) return PortCounter::kDoorbellAbused;
    return std::nullopt;
  }
  std::uint32_t unread() const override { return rx_.produced() - reclaimed_; }
  std::uint8_t fill() const override {
    return static_cast<std::uint8_t>(unread() * 100 / kFrameRing);
  }
  // Number of frames that the client had consumed at the last reclaim(), modulo 2^32.
  std::uint32_t reclaimed() const { return reclaimed_; }

 private:
  struct RxEntry {
    wire::BufferRef ref;
    RingShares::Class sender;
  };

  void take_back(std::uint32_t slot) override;
  bool has_space(RingShares::Class sender);
  void wake_for_space();
  bool admit(wire::BufferRef ref);
  // Each sets `why` if it returns false.
  bool put(const wire::Frame& frame, RingShares::Class sender, PortCounter& why);
  bool put_copy(wire::Frame frame, RingShares::Class sender, PortCounter& why);
  void write_entry(const wire::Frame& frame, std::uint64_t payload, wire::BufferRef ref,
                   RingShares::Class sender);
  bool check(const Descriptor& descriptor, wire::Frame& frame);

  PayloadPools& pools_;
  const std::uint32_t area_;
  std::uint32_t pool_ = 0;
  PeerCredentials client_;
  bool open_ = false;
  std::uint64_t attachment_ = 0;

  UniqueFd segment_file_, doorbell_;
  Bell bell_;  // of the client
  PortSegment segment_;
  RingConsumer<Descriptor> tx_;          // from the client
  RingProducer<Descriptor> rx_;          // to the client
  RingProducer<std::uint32_t> returns_;  // slots that return to the client
  std::vector<RxEntry> rx_entries_;      // behind those of the rx ring
  RingShares ring_shares_;
  bool has_batch_ = false;       // since the last flush(): a client that waits for a batch is woken
  std::uint32_t reclaimed_ = 0;  // rx entries whose references were dropped
  EgressShare share_;
};

}  // namespace cepheus::fabric
