// The kernel's Soft-RoCE, packet by packet: our requester must repeat its requests, our responder
// its ACKs and results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "nic-emulator/engine/nic_testing.h"
#include "wire/capture_reader.h"
#include "wire/icrc.h"

namespace cepheus::rnic::testing {
namespace {

using wire::Opcode;

NicConfig config_of(Ipv4 address, wire::Mac mac, wire::Mac gateway) {
  NicConfig c;
  c.address = address;
  c.mac = mac;
  c.gateway = gateway;
  return c;
}

// Fields that each sender chooses: IP identification, source port, and the migration bit, which
// rdma_rxe leaves 0 and ConnectX sets.
Packet with_choices_of(const Packet& other, const Packet& packet) {
  const wire::RoceHeaders o = other.headers();
  return with_headers(packet, [&](wire::RoceHeaders& h) {
    h.ip.identification = o.ip.identification;
    h.udp.source_port = o.udp.source_port;
    h.bth.migration = o.bth.migration;
  });
}

// One direction of one of the kernel's connections, with our NIC at both ends.
class Replay {
 public:
  static constexpr std::size_t kResultSize = 1 << 16;

  Replay(const Packet& first_request, Instant& now) : now_(now) {
    const wire::RoceHeaders h = first_request.headers();
    options_.max_rd_atomic = kMaxRdAtomic;
    options_.first_psn = h.bth.psn;
    kernel_qpn_ = h.bth.destination_qp;
    requester_ = std::make_unique<Host>(
        config_of(h.ip.source, h.ethernet.source, h.ethernet.destination), now_);
    connect(*requester_, h.ip.destination);
    // The other end's MAC and gateway show in its ACKs; see connect_responder.
    responder_address_ = h.ip.destination;
    requester_address_ = h.ip.source;
  }

  void on_request(const Packet& packet, const std::vector<Packet>& rest_of_message) {
    const wire::RoceHeaders h = packet.headers();
    const wire::OpcodeInfo& info = opcode_info(h.bth.opcode);
    if (info.first) post(h, rest_of_message);
    const auto ours = requester_->transmit();
    ASSERT_TRUE(ours.has_value());
    EXPECT_EQ(with_choices_of(packet, *ours).bytes, packet.bytes);
    requests_.push_back(packet);
  }

  // `result`: the kernel's answer to a READ or atomic.
  void on_fetch(const Packet& request, const std::vector<Packet>& result) {
    ASSERT_FALSE(result.empty());
    if (!responder_) connect_responder(result.front());
    remote_ = results_ * kResultSize;
    std::size_t at = remote_;
    for (const Packet& p : result) {
      const auto data = p.data();
      std::ranges::copy(data, responder_->memory.begin() + static_cast<std::ptrdiff_t>(at));
      at += data.size();
    }
    if (result[0].headers().atomic_ack.original != 0) {
      responder_->set_word(remote_, result[0].headers().atomic_ack.original);
    }
    ++results_;
    on_request(request, {request});
    serve(request);
    requests_.pop_back();
  }

  void on_ack(const Packet& ack) {
    if (!responder_) connect_responder(ack);
    for (const Packet& request : requests_) serve(request);
    requests_.clear();
    ASSERT_FALSE(acks_.empty());
    EXPECT_EQ(with_choices_of(ack, acks_.front()).bytes, ack.bytes);
    acks_.pop_front();
    requester_->deliver(
        with_headers(ack, [&](auto& h) { h.bth.destination_qp = requester_->qpn; }));
    ++acks_seen_;
  }

  void check_end() const {
    EXPECT_GT(acks_seen_, 0u);
    EXPECT_EQ(requester_->completions.size(), messages_) << "the kernel acknowledged every message";
    EXPECT_THAT(requester_->statuses(), ::testing::Each(WcStatus::kSuccess));
    EXPECT_TRUE(acks_.empty());
    // Results arrived at the requested addresses.
    for (std::size_t i = 0; i < results_ * kResultSize && opcodes_.contains(Opcode::kRcReadRequest);
         ++i) {
      ASSERT_EQ(requester_->memory[i], responder_->memory[i]) << i;
    }
    EXPECT_EQ(requester_->count(Counter::kRxDropStaleAck), 0u);
  }

 private:
  void connect(Host& host, Ipv4 remote) {
    host.create(options_);
    ASSERT_TRUE(host.to_init(options_));
    QpAttr attr;
    attr.state = QpState::kRtr;
    attr.path_mtu = options_.mtu;
    attr.remote_qpn = kernel_qpn_;
    attr.rq_psn = options_.first_psn;
    attr.remote_ip = remote;
    attr.max_dest_rd_atomic = options_.max_rd_atomic;
    ASSERT_TRUE(host.modify(attr, kAttrMaxDestRdAtomic | kAttrState | kAttrPathMtu |
                                      kAttrRemoteQpn | kAttrRqPsn | kAttrAddress |
                                      kAttrMinRnrTimer));
    ASSERT_TRUE(host.to_rts(options_, options_.first_psn));
  }

  void connect_responder(const Packet& ack) {
    const wire::RoceHeaders h = ack.headers();
    kernel_qpn_ = h.bth.destination_qp;
    responder_ = std::make_unique<Host>(
        config_of(responder_address_, h.ethernet.source, h.ethernet.destination), now_);
    connect(*responder_, requester_address_);
  }

  void post(const wire::RoceHeaders& h, const std::vector<Packet>& message) {
    std::vector<std::uint8_t> bytes;
    for (const Packet& p : message) {
      const auto data = p.data();
      bytes.insert(bytes.end(), data.begin(), data.end());
    }
    opcodes_.insert(h.bth.opcode);
    const wire::OpcodeInfo& info = opcode_info(h.bth.opcode);
    const bool read = h.bth.opcode == Opcode::kRcReadRequest;
    const std::size_t length = read ? h.reth.dma_length : info.atomic_eth ? 8 : bytes.size();
    ASSERT_LE(length, kResultSize);
    std::ranges::copy(bytes, requester_->memory.begin());
    const Sge sge = requester_->piece(remote_, static_cast<std::uint32_t>(length));
    SendWr wr;
    wr.wr_id = messages_++;
    wr.op = info.write        ? SendOp::kWrite
            : read            ? SendOp::kRead
            : info.atomic_eth ? SendOp::kCompareSwap
                              : SendOp::kSend;
    wr.signaled = true;
    wr.remote_address = info.atomic_eth ? h.atomic.virtual_address : h.reth.virtual_address;
    wr.rkey = info.atomic_eth ? h.atomic.rkey : h.reth.rkey;
    wr.compare_add = h.atomic.compare;
    wr.swap = h.atomic.swap_add;
    wr.sges = {&sge, 1};
    ASSERT_TRUE(requester_->post(wr));
  }

  // Our responder receives the kernel's request, with our own numbers in it.
  void serve(const Packet& request) {
    const wire::OpcodeInfo& info = opcode_info(request.opcode());
    if (info.send && info.first) responder_->receive(0, 0, 1 << 16);
    const Packet ours = with_headers(request, [&](wire::RoceHeaders& h) {
      h.bth.destination_qp = responder_->qpn;
      h.reth.rkey = h.atomic.rkey = responder_->keys.rkey;
      h.reth.virtual_address = h.atomic.virtual_address = responder_->piece(remote_, 0).address;
    });
    responder_->deliver(ours);
    for (Packet& ack : responder_->transmit_all()) acks_.push_back(std::move(ack));
  }

  Instant& now_;
  QpOptions options_;
  Qpn kernel_qpn_;
  Ipv4 responder_address_;
  Ipv4 requester_address_;
  std::unique_ptr<Host> requester_;
  std::unique_ptr<Host> responder_;
  std::vector<Packet> requests_;  // not served yet
  std::deque<Packet> acks_;       // ours, not compared yet
  std::set<Opcode> opcodes_;
  std::size_t remote_ = 0;   // offset of the current request in the responder's memory
  std::size_t results_ = 0;  // READs and atomics so far, each with kResultSize bytes
  std::size_t messages_ = 0;
  std::size_t acks_seen_ = 0;
};

bool is_ours(wire::Opcode opcode) {
  const wire::OpcodeInfo& info = opcode_info(opcode);
  return info.request() || info.response;
}

// The requests from `first` on up to the end of its message.
std::vector<Packet> message_from(const std::vector<Packet>& capture, std::size_t first) {
  const wire::RoceHeaders start = capture[first].headers();
  std::vector<Packet> message;
  for (std::size_t i = first; i < capture.size(); ++i) {
    const wire::RoceHeaders h = capture[i].headers();
    if (h.ip.source != start.ip.source || h.bth.destination_qp != start.bth.destination_qp ||
        h.bth.opcode == wire::Opcode::kRcAcknowledge) {
      continue;
    }
    message.push_back(capture[i]);
    if (opcode_info(h.bth.opcode).last) return message;
  }
  return {};
}

// The responses to the READ or atomic at `request`.
std::vector<Packet> result_of(const std::vector<Packet>& capture, std::size_t request) {
  const wire::RoceHeaders sent = capture[request].headers();
  std::vector<Packet> result;
  for (std::size_t i = request; i < capture.size(); ++i) {
    const wire::RoceHeaders h = capture[i].headers();
    const auto psn = sent.bth.psn + static_cast<std::int64_t>(result.size());
    if (h.ip.source != sent.ip.destination || h.bth.destination_qp != sent.bth.destination_qp ||
        !opcode_info(h.bth.opcode).response || h.bth.psn != psn) {
      continue;
    }
    result.push_back(capture[i]);
    if (opcode_info(h.bth.opcode).last) return result;
  }
  return {};
}

TEST(KernelCapture, OurRequestsAndAcksEqualTheKernelsByteForByte) {
  // A host's requests and their ACKs. Both kernels use equal numbers at both ends of a connection.
  using Flow = std::pair<Ipv4, Qpn>;
  std::vector<Packet> capture;
  std::set<Qpn> other_services;  // UD
  for (auto& bytes : wire::read_capture("rxe-unicast-host0.pcap")) {
    Packet packet{std::move(bytes)};
    EXPECT_TRUE(wire::check_icrc(packet.frame()));
    const wire::RoceHeaders h = packet.headers();
    if (!is_ours(h.bth.opcode)) other_services.insert(h.bth.destination_qp);
    capture.push_back(std::move(packet));
  }
  Instant now{std::chrono::seconds(1)};
  std::map<Flow, Replay> flows;
  for (std::size_t i = 0; i < capture.size(); ++i) {
    const wire::RoceHeaders h = capture[i].headers();
    if (other_services.contains(h.bth.destination_qp)) continue;
    const wire::OpcodeInfo& info = opcode_info(h.bth.opcode);
    if (info.response) {
      flows.at({h.ip.destination, h.bth.destination_qp}).on_ack(capture[i]);
    } else {
      const Flow key{h.ip.source, h.bth.destination_qp};
      const auto flow = flows.try_emplace(key, capture[i], now).first;
      if (info.send || info.write) {
        flow->second.on_request(capture[i], message_from(capture, i));
      } else {
        flow->second.on_fetch(capture[i], result_of(capture, i));
      }
    }
    if (HasFailure()) {
      ADD_FAILURE() << "at packet " << i + 1;
      return;
    }
  }
  EXPECT_GE(flows.size(), 6u) << "ping-pong both ways, send, write, read, atomic";
  for (const auto& [key, replay] : flows) replay.check_end();
}

}  // namespace
}  // namespace cepheus::rnic::testing
