// A RoCEv2 NIC without I/O: the queue pairs of one port (IBTA vol. 1, chapter 9 and Annex A17).
//
// Packets and time come in as arguments; completions, packets and one deadline come out:
//
//     on_packet(now, frame, actions)          a packet has arrived from the wire
//     transmit(now, buffer, frame, actions)   build the next packet to send; call until false
//     on_timer(now, actions)                  deadline() has passed (spurious calls are harmless)
//
// Sending is pulled: the driver requests a packet only when its ring has space. So back-pressure
// needs no queue, and payload is copied once, from the user's memory into the driver's buffer.
// Thread-compatible: the caller serialises all calls on one Nic. Nothing allocates per packet.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "nic-emulator/engine/congestion.h"
#include "nic-emulator/engine/counters.h"
#include "nic-emulator/engine/manners.h"
#include "nic-emulator/engine/verbs_types.h"
#include "wire/frame.h"
#include "wire/result.h"

namespace cepheus::rnic {

// Whether a queue pair sends or receives long messages.
enum class Bulk : std::uint8_t { kNone, kBetween, kAmid };

struct NicConfig {
  Ipv4 address{};                // the port's own IPv4, its GID
  wire::Mac mac{};               // source of every packet
  wire::Mac gateway{};           // destination of every packet: the switch
  std::uint32_t max_mtu = 4096;  // largest path MTU, payload bytes
  bool make_icrc = true;  // false: leave it deferred (memory links), and accept deferred ones
  std::uint32_t window_packets = 256;   // unacknowledged packets a requester may have in flight
  std::uint32_t cautious_window = 256;  // the same after a loss; one READ requests half of it
  std::uint32_t ack_every = 32;  // AckReq on every n-th packet of a long message, and the last
  Duration min_ack_timeout = std::chrono::milliseconds(50);  // floor under QpAttr::timeout_code
  // ACK time-outs in a row double the wait up to this many times, and up to kSourceRepeats
  // (wire/times.h). So the loss of a last packet is repaired quickly, and retry_count still outlasts
  // a peer that is not scheduled for seconds. 0: fixed (IBTA 9.7.6.1.3).
  unsigned timeout_doublings = 0;
  // A second sequence NAK for one packet, without progress in between, costs a retry, as with NICs
  // that treat each as a new one.
  bool every_nak_counts = false;
  Manners manners = {};
  std::uint8_t own_timeout_code = 14;  // for Manners::ignores_timeout_code
  // False: payload is a length only, and SENDs and WRITEs access no memory. For measurements of
  // large fabrics.
  bool moves_payload = true;
  // Around each access to registered memory. None: memory is never unmapped before it is
  // deregistered.
  MemoryGuard guard = nullptr;
  Duration max_rnr_wait = std::chrono::milliseconds(700);  // upper limit of a peer's RNR timer
  // With a value: data is sent as ECN-capable, marks are answered, rates are kept. Precondition:
  // congestion->check() succeeds.
  std::optional<CongestionConfig> congestion = {};
  std::uint32_t max_qps = 4096;
  std::uint32_t max_srqs = 1024;
  std::uint32_t max_regions = 65536;
  std::uint64_t seed = 1;  // QPNs and UDP source ports
};

struct MemoryKeys {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};

class Nic {
 public:
  explicit Nic(const NicConfig& config);
  ~Nic();

  // --- Memory. `memory` is the place of iova in this process, and must exist until it is
  // deregistered. No peer can revoke its key: a SEND with invalidate revokes those of memory
  // windows and of fast registrations, which this NIC lacks.
  wire::Result<MemoryKeys> register_memory(PdId pd, void* memory, std::size_t length,
                                           std::uint64_t iova, std::uint32_t access);
  // The same under a key that the caller chooses (MemoryTable::add_as).
  wire::Result<MemoryKeys> register_memory_as(std::uint32_t key, PdId pd, void* memory,
                                              std::size_t length, std::uint64_t iova,
                                              std::uint32_t access);
  bool deregister_memory(std::uint32_t lkey);
  // Changes a region in place; its keys stay. Errors: kInvalid.
  wire::Result<void> change_memory(std::uint32_t lkey, PdId pd, void* memory, std::size_t length,
                                   std::uint64_t iova, std::uint32_t access);
  // A region that NicConfig::guard found unmapped since the last call. Its accesses fail from then
  // on, as with a wrong key.
  std::optional<LostRegion> take_lost_region();

  // --- Shared receive queues. Errors: kInvalid (no such queue, sizes), kUnavailable (out of
  // queues), kAgain (queue full; destroy_srq: QPs still use it).
  wire::Result<SrqId> create_srq(const SrqInit& init);
  // kSrqLimitReached once, when fewer than `limit` receives are left, at once if that is already
  // so. 0 disarms (IBTA 10.2.9.2).
  wire::Result<void> arm_srq(SrqId srq, std::uint32_t limit, NicOutput& out);
  // Errors: kInvalid (beyond the limits, or too few for its receives or its armed limit).
  wire::Result<void> resize_srq(SrqId srq, std::uint32_t max_wr);
  wire::Result<SrqAttr> query_srq(SrqId srq) const;
  wire::Result<void> destroy_srq(SrqId srq);
  wire::Result<void> post_srq_recv(SrqId srq, const RecvWr& wr);

  // --- Queue pairs. Errors: kInvalid (bad attribute or transition), kUnavailable (out of QPs).
  wire::Result<Qpn> create_qp(const QpInit& init);
  wire::Result<void> modify_qp(Instant now, Qpn qpn, const QpAttr& attr, std::uint32_t mask,
                               NicOutput& out);
  // Live state: sq_psn is the next PSN to be sent, rq_psn the next one expected.
  wire::Result<QpAttr> query_qp(Qpn qpn) const;
  // To ERR with a kQpFatal event, after an external error: a completion queue overran. All work
  // completes as flushed. False: no such QP. In RESET or ERR nothing happens.
  bool fail_qp(Qpn qpn, NicOutput& out);
  // A message in progress has a receive of the shared queue. It disappears with the queue pair, or
  // if that is reset.
  bool holds_shared_receive(Qpn qpn) const;
  // Outstanding work disappears without completions (IBTA 10.2.4.4).
  bool destroy_qp(Qpn qpn);

  // --- Work requests. Errors: kInvalid (state, sizes, an operation that the QP's type lacks),
  // kAgain (queue full). In ERR, and in SQE for sends: flushed.
  wire::Result<void> post_send(Instant now, Qpn qpn, const SendWr& wr, NicOutput& out);
  // All of them, or none and the error of the first refused one.
  wire::Result<void> post_sends(Instant now, Qpn qpn, std::span<const SendWr> wrs, NicOutput& out);
  wire::Result<void> post_recv(Instant now, Qpn qpn, const RecvWr& wr, NicOutput& out);

  // --- The wire.
  void on_packet(Instant now, const wire::Frame& frame, NicOutput& out);
  // Builds the next packet into `frame`: acknowledgements first, then QPs in turn. Payload that
  // does not fit inline goes to `buffer`, and the frame's external payload refers to it; the driver
  // sets frame.ref. With a buffer smaller than max_mtu only packets without external payload are
  // built. False: nothing to send now, or the first QPs have packets with external payload only.
  bool transmit(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out);
  bool wants_to_transmit() const;
  bool owes_answers() const;  // acknowledgements wait to be sent
  // Of the queue pair used last. kAmid: a batch of packets comes next, or the acknowledgement of
  // one. kBetween: its last message was long, and the next may be.
  Bulk bulk() const;
  // Nothing waits to be sent, and only acknowledgements of a few packets of one queue pair are
  // outstanding.
  bool is_quiet() const;
  // Runs ACK time-outs, RNR waits, and packets that waited for their QP's rate. The driver first
  // handles all packets that have arrived, because a descheduled process is not a loss.
  void on_timer(Instant now, NicOutput& out);
  // May be earlier than any due event (on_timer then moves it); kNever if no QP waits.
  Instant deadline() const;

  // Empty: no such queue pair, or no congestion control.
  std::optional<CongestionState> congestion(Instant now, Qpn qpn) const;
  // For simulation: as if a queue pair had sent `sent` messages of one packet, all acknowledged,
  // and received `received`. False, without a change: not an RC queue pair in RTS, or one with
  // pending work.
  bool jump(Qpn qpn, std::uint64_t sent, std::uint64_t received);
  const Counters& counters() const;
  const NicConfig& config() const;
  void check_consistent() const;  // asserts the invariants of every QP; debug builds and tests

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cepheus::rnic
