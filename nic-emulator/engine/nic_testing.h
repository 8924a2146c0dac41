// Two NICs on virtual time. The test passes their packets by hand; a packet that is not passed is
// lost.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "nic-emulator/engine/nic.h"
#include "wire/roce.h"

namespace cepheus::rnic::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A packet on the wire: contiguous bytes, so that tests cross the same codecs as a real link.
struct Packet {
  std::vector<std::uint8_t> bytes;

  wire::Frame frame() const;  // refers to `bytes`
  wire::RoceHeaders headers() const;
  std::vector<std::uint8_t> data() const;  // without pad
  wire::Opcode opcode() const { return headers().bth.opcode; }
  std::uint32_t psn() const { return headers().bth.psn.value(); }
  bool requests_ack() const { return headers().bth.ack_request; }
};
// Rewrites the headers and makes the ICRC right again.
Packet with_headers(const Packet& packet, const std::function<void(wire::RoceHeaders&)>& change);

// Offset of the results of READs and atomics in a host's memory.
inline constexpr std::size_t kResult = 0x40000;
inline constexpr std::uint32_t kAllAccess =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct QpOptions {
  QpType type = QpType::kRc;
  std::uint32_t mtu = 1024;
  Psn first_psn{100};  // of requests from host a
  Psn back_psn{900};   // of requests from host b
  std::uint8_t timeout_code = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;  // 640 us
  std::uint8_t max_rd_atomic = 4;   // both ways
  std::uint32_t access = kAllAccess;
  QpCap cap{.max_send_wr = 64,
            .max_recv_wr = 64,
            .max_send_sge = 4,
            .max_recv_sge = 4,
            .max_inline = 128};
  bool signal_all = false;
  bool shared = false;  // receives come from a shared queue
  std::uint32_t qkey = 0x1234;
  std::uint8_t traffic_class = 0;
};

// A NIC with 1 MiB of registered memory, and its outputs so far.
class Host {
 public:
  static constexpr std::size_t kMemory = 1 << 20;
  static constexpr PdId kPd = 1;
  static constexpr CqId kSendCq = 11;
  static constexpr CqId kRecvCq = 12;

  Host(const NicConfig& config, Instant& now);

  Nic nic;
  std::vector<std::uint8_t> memory;
  MemoryKeys keys;
  Qpn qpn;
  std::optional<SrqId> srq;
  std::vector<Completion> completions;
  std::vector<AsyncEvent> events;

  void create(const QpOptions& options);
  wire::Result<void> modify(const QpAttr& attr, std::uint32_t mask);
  wire::Result<void> to_init(const QpOptions& options);
  wire::Result<void> to_rtr(const QpOptions& options, const Host& peer, Psn rq_psn);
  wire::Result<void> to_rts(const QpOptions& options, Psn sq_psn);
  wire::Result<void> to(QpState state);
  wire::Result<void> to_drained();  // to SQD, with an event once it is drained
  QpState state() const { return nic.query_qp(qpn)->state; }

  Sge piece(std::size_t offset, std::uint32_t length) const;
  wire::Result<void> post(const SendWr& wr);
  wire::Result<void> post(const RecvWr& wr);  // to the shared queue if there is one
  // Signalled requests over memory from `offset` on.
  void send(std::uint64_t id, std::size_t offset, std::uint32_t length);
  void write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& to,
             std::size_t to_offset);
  void read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& from,
            std::size_t from_offset);
  // An atomic on the word at `at_offset` of `at`; its old value goes to `offset`.
  void atomic(std::uint64_t id, SendOp op, std::size_t offset, const Host& at,
              std::size_t at_offset, std::uint64_t compare_add, std::uint64_t swap = 0);
  std::uint64_t word(std::size_t offset) const;
  void set_word(std::size_t offset, std::uint64_t value);
  void datagram(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& to,
                std::uint32_t qkey);
  void receive(std::uint64_t id, std::size_t offset, std::uint32_t length);

  std::vector<Packet> transmit_all();
  std::optional<Packet> transmit();
  void deliver(const Packet& packet);
  void deliver(const std::vector<Packet>& packets);
  void tick();  // on_timer at the present
  std::uint64_t count(Counter c) const { return nic.counters()[c]; }
  std::vector<WcStatus> statuses() const;
  std::vector<std::uint64_t> ids() const;

 private:
  void collect();
  void request(std::uint64_t id, const Sge& sge, const std::function<void(SendWr&)>& change);

  QpType type_ = QpType::kRc;
  Instant& now_;
  NicOutput actions_;
  std::vector<std::uint8_t> buffer_;
};

struct TwoHosts {
  explicit TwoHosts(const QpOptions& options = {}, const NicConfig& base = {});

  Instant now{std::chrono::seconds(1)};
  QpOptions options;
  Host a;
  Host b;

  // Passes packets both ways until neither host sends. `lose` gets each packet and its sender.
  using Lose = std::function<bool(const Packet&, const Host& from)>;
  void exchange(const Lose& lose = nullptr);
  // Jumps to the next deadline and lets it pass. False: there is none.
  bool pass_deadline();
  // Exchanges and passes deadlines until no work is left.
  void run_until_idle(const Lose& lose = nullptr);
};

// A test between two connected hosts.
class BetweenHosts {
 protected:
  explicit BetweenHosts(const QpOptions& options = {}, const NicConfig& base = {})
      : hosts_(options, base) {}

  TwoHosts hosts_;
  Host& a_ = hosts_.a;
  Host& b_ = hosts_.b;
};

// Bytes that differ at every place, by seed.
void fill_pattern(std::span<std::uint8_t> bytes, std::uint64_t seed);

}  // namespace cepheus::rnic::testing
