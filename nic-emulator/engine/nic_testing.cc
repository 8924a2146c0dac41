#include "nic-emulator/engine/nic_testing.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace cepheus::rnic::testing {
namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "test set-up failed: %s\n", what);
  std::abort();
}

NicConfig config_of(NicConfig base, std::uint8_t host) {
  base.address = Ipv4(10, 0, 0, host);
  base.mac = wire::Mac{{2, 0, 0, 0, 0, host}};
  base.gateway = wire::Mac{{2, 0, 0, 0, 1, host}};
  base.seed = base.seed * 1000 + host;
  return base;
}

// The attributes that a service has.
std::uint32_t mask_of(QpType type, std::uint32_t mask) {
  constexpr std::uint32_t kDatagram = kAttrState | kAttrCurrentState | kAttrSqPsn | kAttrQkey;
  constexpr std::uint32_t kReliable = kAttrTimeout | kAttrRetryCount | kAttrRnrRetry |
                                      kAttrMinRnrTimer | kAttrMaxRdAtomic | kAttrMaxDestRdAtomic;
  if (type == QpType::kUd) return mask & kDatagram;
  return mask & ~(type == QpType::kUc ? kReliable | kAttrQkey : kAttrQkey);
}

constexpr int kEventBudget = 1'000'000;  // a livelock fails

}  // namespace

wire::Frame Packet::frame() const {
  auto frame = wire::Frame::from_bytes(bytes);
  require(frame.has_value(), "packet does not parse");
  return *frame;
}

wire::RoceHeaders Packet::headers() const {
  const auto headers = wire::RoceHeaders::parse(frame());
  require(headers.has_value(), "packet is not RoCE");
  return *headers;
}

std::vector<std::uint8_t> Packet::data() const {
  const wire::Frame f = frame();
  const auto payload = f.payload();
  return {payload.begin(), payload.end() - headers().bth.pad_count};
}

Packet with_headers(const Packet& packet, const std::function<void(wire::RoceHeaders&)>& change) {
  wire::Frame frame = packet.frame();
  wire::RoceHeaders headers = packet.headers();
  change(headers);
  headers.emit(frame, frame.payload_len);
  Packet changed;
  changed.bytes.resize(frame.size());
  require(frame.to_bytes(changed.bytes) == changed.bytes.size(), "packet does not fit");
  return changed;
}

Host::Host(const NicConfig& config, Instant& now)
    : nic(config), memory(kMemory), now_(now), buffer_(config.max_mtu) {
  keys = *nic.register_memory(kPd, memory.data(), memory.size(), 0x10000, kAllAccess);
}

void Host::collect() {
  completions.insert(completions.end(), actions_.completions.begin(), actions_.completions.end());
  events.insert(events.end(), actions_.events.begin(), actions_.events.end());
  actions_.clear();
  nic.check_consistent();
}

void Host::create(const QpOptions& options) {
  QpInit init;
  init.type = type_ = options.type;
  if (options.shared) {
    srq = *nic.create_srq({kPd, options.cap.max_recv_wr, options.cap.max_recv_sge});
    init.srq = srq;
  }
  init.pd = kPd;
  init.send_cq = kSendCq;
  init.recv_cq = kRecvCq;
  init.cap = options.cap;
  init.signal_all = options.signal_all;
  const auto created = nic.create_qp(init);
  require(created.has_value(), "create_qp");
  qpn = *created;
}

wire::Result<void> Host::modify(const QpAttr& attr, std::uint32_t mask) {
  auto result = nic.modify_qp(now_, qpn, attr, mask, actions_);
  collect();
  return result;
}

wire::Result<void> Host::to_init(const QpOptions& options) {
  QpAttr attr;
  attr.state = QpState::kInit;
  attr.access = options.access;
  attr.qkey = options.qkey;
  return modify(attr, mask_of(type_, kAttrState | kAttrAccess | kAttrQkey));
}

wire::Result<void> Host::to_rtr(const QpOptions& options, const Host& peer, Psn rq_psn) {
  QpAttr attr;
  attr.state = QpState::kRtr;
  attr.path_mtu = options.mtu;
  attr.remote_qpn = peer.qpn;
  attr.rq_psn = rq_psn;
  attr.remote_ip = peer.nic.config().address;
  attr.traffic_class = options.traffic_class;
  attr.min_rnr_timer = options.min_rnr_timer;
  attr.max_dest_rd_atomic = options.max_rd_atomic;
  return modify(attr,
                mask_of(type_, kAttrMaxDestRdAtomic | kAttrState | kAttrPathMtu | kAttrRemoteQpn |
                                   kAttrRqPsn | kAttrAddress | kAttrMinRnrTimer));
}

wire::Result<void> Host::to_rts(const QpOptions& options, Psn sq_psn) {
  QpAttr attr;
  attr.state = QpState::kRts;
  attr.sq_psn = sq_psn;
  attr.timeout_code = options.timeout_code;
  attr.retry_count = options.retry_count;
  attr.rnr_retry = options.rnr_retry;
  attr.max_rd_atomic = options.max_rd_atomic;
  return modify(attr, mask_of(type_, kAttrMaxRdAtomic | kAttrState | kAttrSqPsn | kAttrTimeout |
                                         kAttrRetryCount | kAttrRnrRetry));
}

wire::Result<void> Host::to(QpState state) {
  QpAttr attr;
  attr.state = state;
  return modify(attr, kAttrState);
}

wire::Result<void> Host::to_drained() {
  QpAttr attr;
  attr.state = QpState::kSqd;
  attr.drained_event = true;
  return modify(attr, kAttrState | kAttrDrainedEvent);
}

Sge Host::piece(std::size_t offset, std::uint32_t length) const {
  return {0x10000 + offset, length, keys.lkey};
}

wire::Result<void> Host::post(const SendWr& wr) {
  auto result = nic.post_send(now_, qpn, wr, actions_);
  collect();
  return result;
}

wire::Result<void> Host::post(const RecvWr& wr) {
  auto result = srq ? nic.post_srq_recv(*srq, wr) : nic.post_recv(now_, qpn, wr, actions_);
  collect();
  return result;
}

void Host::request(std::uint64_t id, const Sge& sge, const std::function<void(SendWr&)>& change) {
  SendWr wr;
  wr.wr_id = id;
  wr.signaled = true;
  wr.sges = {&sge, 1};
  change(wr);
  require(post(wr).has_value(), "post send");
}

void Host::send(std::uint64_t id, std::size_t offset, std::uint32_t length) {
  request(id, piece(offset, length), [](SendWr&) {});
}

void Host::write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& to,
                 std::size_t to_offset) {
  request(id, piece(offset, length), [&](SendWr& wr) {
    wr.op = SendOp::kWrite;
    wr.remote_address = to.piece(to_offset, length).address;
    wr.rkey = to.keys.rkey;
  });
}

void Host::read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& from,
                std::size_t from_offset) {
  request(id, piece(offset, length), [&](SendWr& wr) {
    wr.op = SendOp::kRead;
    wr.remote_address = from.piece(from_offset, length).address;
    wr.rkey = from.keys.rkey;
  });
}

void Host::atomic(std::uint64_t id, SendOp op, std::size_t offset, const Host& at,
                  std::size_t at_offset, std::uint64_t compare_add, std::uint64_t swap) {
  request(id, piece(offset, 8), [&](SendWr& wr) {
    wr.op = op;
    wr.remote_address = at.piece(at_offset, 8).address;
    wr.rkey = at.keys.rkey;
    wr.compare_add = compare_add;
    wr.swap = swap;
  });
}

std::uint64_t Host::word(std::size_t offset) const {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

void Host::set_word(std::size_t offset, std::uint64_t value) {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

void Host::datagram(std::uint64_t id, std::size_t offset, std::uint32_t length, const Host& to,
                    std::uint32_t qkey) {
  request(id, piece(offset, length), [&](SendWr& wr) {
    wr.destination.ip = to.nic.config().address;
    wr.remote_qpn = to.qpn;
    wr.qkey = qkey;
  });
}

void Host::receive(std::uint64_t id, std::size_t offset, std::uint32_t length) {
  const Sge sge = piece(offset, length);
  RecvWr wr;
  wr.wr_id = id;
  wr.sges = {&sge, 1};
  require(post(wr).has_value(), "post receive");
}

std::optional<Packet> Host::transmit() {
  wire::Frame frame;
  std::ranges::fill(frame.bytes, 0xEE);  // of the frame before
  std::ranges::fill(buffer_, 0xEE);
  const bool built = nic.transmit(now_, buffer_, frame, actions_);
  collect();
  if (!built) return std::nullopt;
  Packet packet;
  packet.bytes.resize(frame.size());
  require(frame.to_bytes(packet.bytes) == packet.bytes.size(), "packet does not fit");
  return packet;
}

std::vector<Packet> Host::transmit_all() {
  std::vector<Packet> packets;
  while (auto packet = transmit()) packets.push_back(std::move(*packet));
  return packets;
}

void Host::deliver(const Packet& packet) {
  nic.on_packet(now_, packet.frame(), actions_);
  collect();
}

void Host::deliver(const std::vector<Packet>& packets) {
  for (const Packet& packet : packets) deliver(packet);
}

void Host::tick() {
  nic.on_timer(now_, actions_);
  collect();
}

std::vector<WcStatus> Host::statuses() const {
  std::vector<WcStatus> list;
  for (const Completion& c : completions) list.push_back(c.status);
  return list;
}

std::vector<std::uint64_t> Host::ids() const {
  std::vector<std::uint64_t> list;
  for (const Completion& c : completions) list.push_back(c.wr_id);
  return list;
}

TwoHosts::TwoHosts(const QpOptions& o, const NicConfig& base)
    : options(o), a(config_of(base, 1), now), b(config_of(base, 2), now) {
  a.create(o);
  b.create(o);
  fill_pattern(a.memory, 1);
  for (Host* host : {&a, &b}) {
    const bool first = host == &a;
    require(host->to_init(o).has_value(), "init");
    require(host->to_rtr(o, first ? b : a, first ? o.back_psn : o.first_psn).has_value(), "rtr");
    require(host->to_rts(o, first ? o.first_psn : o.back_psn).has_value(), "rts");
  }
}

void TwoHosts::exchange(const Lose& lose) {
  for (int budget = kEventBudget; budget > 0; --budget) {
    bool quiet = true;
    for (Host* from : {&a, &b}) {
      const auto packet = from->transmit();
      if (!packet) continue;
      quiet = false;
      if (!lose || !lose(*packet, *from)) (from == &a ? b : a).deliver(*packet);
    }
    if (quiet) return;
  }
  require(false, "packets without end");
}

bool TwoHosts::pass_deadline() {
  const Instant next = std::min(a.nic.deadline(), b.nic.deadline());
  if (next == wire::kNever) return false;
  now = std::max(now, next);
  a.tick();
  b.tick();
  return true;
}

void TwoHosts::run_until_idle(const Lose& lose) {
  for (int budget = kEventBudget; budget > 0; --budget) {
    exchange(lose);
    if (!pass_deadline()) return;
  }
  require(false, "deadlines without end");
}

void fill_pattern(std::span<std::uint8_t> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
}

}  // namespace cepheus::rnic::testing
