// Any packets and times against a NIC with QPs in different states: no crash, no broken invariant,
// and every packet it builds parses.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "nic-emulator/engine/nic.h"
#include "wire/byte_order.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace {

using namespace cepheus;
using namespace cepheus::rnic;

constexpr std::uint32_t kMtu = 256;
constexpr Ipv4 kSelf(10, 0, 0, 1);
constexpr Ipv4 kPeer(10, 0, 0, 2);
constexpr PdId kPd = 1;
constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

void require(bool condition) {
  if (!condition) std::abort();
}

class Fuzzed {
 public:
  Fuzzed() : nic_(config()), memory_(8192), buffer_(4096) {
    keys_ = *nic_.register_memory(kPd, memory_.data(), memory_.size(), 0, kAccess);
    srq_ = *nic_.create_srq({kPd, 4, 1});
    for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                                QpState::kRts, QpState::kSqd, QpState::kErr}) {
      qps_.push_back(make(QpType::kRc, state, false));
    }
    for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
      qps_.push_back(make(type, QpState::kRts, type != QpType::kUc));
    }
    qps_.push_back(make(QpType::kUd, QpState::kRts, false));
  }

  void run(std::span<const std::uint8_t> input) {
    while (input.size() >= 4) {
      const std::uint8_t what = input[0];
      const std::uint8_t qp = input[1] % qps_.size();
      const std::size_t length =
          std::min<std::size_t>(wire::load_be16(&input[2]) % 512, input.size() - 4);
      const auto bytes = input.subspan(4, length);
      input = input.subspan(4 + length);
      switch (what % 6) {
        case 0:
        case 1:
          deliver(bytes, qps_[qp], what);
          break;
        case 2:
          now_ += std::chrono::microseconds(bytes.size() * 1000);
          nic_.on_timer(now_, actions_);
          break;
        case 3:
          post(qps_[qp], what / 6, static_cast<std::uint32_t>(length * 8));
          break;
        case 4:
          transmit();
          break;
        case 5:
          modify(qps_[qp], bytes);
          break;
      }
      nic_.check_consistent();
      actions_.clear();
    }
    for (int i = 0; i < 10000 && nic_.wants_to_transmit(); ++i) transmit();
    require(!nic_.wants_to_transmit());
  }

 private:
  static NicConfig config() {
    NicConfig c;
    c.address = kSelf;
    c.window_packets = 16;
    c.max_qps = 16;
    c.max_mtu = kMtu;
    c.max_regions = 4;
    return c;
  }

  Qpn make(QpType type, QpState state, bool shared) {
    QpInit init{.type = type, .pd = kPd, .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
    if (shared) init.srq = srq_;
    const Qpn qpn = *nic_.create_qp(init);
    types_.push_back(type);
    made_ = type;
    const QpState path[] = {QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd};
    for (const QpState step : path) {
      if (state == QpState::kReset || state == QpState::kErr) break;
      go(qpn, step);
      if (step == state) break;
    }
    if (state == QpState::kErr) go(qpn, state);
    return qpn;
  }

  void go(Qpn qpn, QpState to) {
    QpAttr a;
    a.state = to;
    a.access = kAccess;
    a.max_rd_atomic = a.max_dest_rd_atomic = 2;
    a.qkey = kQkey;
    a.path_mtu = kMtu;
    a.remote_qpn = wire::kVirtualQpn;
    a.remote_ip = kPeer;
    a.rq_psn = a.sq_psn = Psn(0xFFFFF0);
    std::uint32_t mask = kAttrState;
    if (to == QpState::kInit) mask |= kAttrAccess | kAttrQkey;
    if (to == QpState::kRtr) {
      mask |= kAttrPathMtu | kAttrRemoteQpn | kAttrAddress | kAttrRqPsn | kAttrMinRnrTimer |
              kAttrMaxDestRdAtomic;
    }
    if (to == QpState::kRts) {
      const auto from = nic_.query_qp(qpn)->state;
      if (from == QpState::kRtr) {
        mask |= kAttrSqPsn | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxRdAtomic;
      }
    }
    // Attributes of the service only; the engine refuses the others.
    constexpr std::uint32_t kReliable = kAttrTimeout | kAttrRetryCount | kAttrRnrRetry |
                                        kAttrMinRnrTimer | kAttrMaxRdAtomic | kAttrMaxDestRdAtomic;
    if (made_ == QpType::kUd) mask &= kAttrState | kAttrSqPsn | kAttrQkey;
    if (made_ != QpType::kUd) mask &= ~kAttrQkey;
    if (made_ == QpType::kUc) mask &= ~kReliable;
    (void)nic_.modify_qp(now_, qpn, a, mask, actions_);
  }

  void modify(Qpn qpn, std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return;
    made_ = types_[static_cast<std::size_t>(std::ranges::find(qps_, qpn) - qps_.begin())];
    if (bytes[0] == 0xFF) {
      (void)nic_.fail_qp(qpn, actions_);
    } else {
      go(qpn, static_cast<QpState>(bytes[0] % 7));
    }
  }

  // The bytes choose opcode, AckReq and a PSN near the window. Address, QP and ICRC are mostly
  // right, since a fuzzer does not find them.
  void deliver(std::span<const std::uint8_t> bytes, Qpn qpn, std::uint8_t what) {
    if (bytes.size() < 24) return;
    wire::RoceHeaders h;
    h.ip.source = kPeer;
    h.ip.destination = what & 0x80 ? Ipv4(wire::load_be32(&bytes[0])) : kSelf;
    h.bth = *wire::Bth::parse(bytes);
    if (!opcode_info(h.bth.opcode).known) return;
    h.bth.pkey = wire::Bth::kDefaultPkey;
    h.bth.destination_qp = qpn;
    h.bth.psn = Psn(0xFFFFF0) + static_cast<std::int8_t>(bytes[11]);
    h.reth.virtual_address = wire::load_be16(&bytes[12]);
    h.reth.rkey = what & 0x40 ? wire::load_be32(&bytes[12]) : keys_.rkey;
    h.reth.dma_length = wire::load_be16(&bytes[14]);
    h.atomic = {h.reth.virtual_address, h.reth.rkey, bytes[16], bytes[17]};
    h.deth = {what & 0x40 ? bytes[13] : kQkey, Qpn(bytes[14])};
    h.ieth.rkey = h.reth.rkey;
    h.aeth = *wire::Aeth::parse(bytes.subspan(16));
    auto data = bytes.subspan(20);
    if (what & 0x20) data = std::span(full_).first(kMtu);  // middle packets need exactly the MTU
    wire::Frame frame;
    h.emit(frame, data.size());
    frame.set_external_payload(data, wire::kNoBuffer);
    if ((what & 0x10) == 0) wire::seal_icrc(frame);
    nic_.on_packet(now_, frame, actions_);
  }

  void post(Qpn qpn, std::uint8_t kind, std::uint32_t length) {
    const Sge sge{kind & 8 ? 8000u : 0u, length, keys_.lkey};
    if (kind & 16) {
      const RecvWr wr{.wr_id = 1, .sges = {&sge, 1}};
      (void)nic_.post_recv(now_, qpn, wr, actions_);
      if (kind & 1) (void)nic_.post_srq_recv(srq_, wr);
      if (kind & 2) (void)nic_.arm_srq(srq_, 2, actions_);
      return;
    }
    SendWr wr;
    wr.op = static_cast<SendOp>(kind & 7);
    wr.fence = (length & 64) != 0;
    wr.destination.ip = kPeer;
    wr.qkey = kQkey;
    wr.sges = {&sge, 1};
    (void)nic_.post_send(now_, qpn, wr, actions_);
  }

  void transmit() {
    wire::Frame frame;
    if (!nic_.transmit(now_, buffer_, frame, actions_)) return;
    require(wire::RoceHeaders::parse(frame).has_value());
    require(wire::check_icrc(frame));
    require(frame.payload_len <= kMtu);
  }

  Nic nic_;
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint8_t> buffer_;
  std::array<std::uint8_t, kMtu> full_{};
  MemoryKeys keys_;
  SrqId srq_ = 0;
  std::vector<Qpn> qps_;
  std::vector<QpType> types_;
  QpType made_ = QpType::kRc;  // type of the QP that is being modified
  NicOutput actions_;
  Instant now_{std::chrono::seconds(1)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzzed().run({data, size});
  return 0;
}
