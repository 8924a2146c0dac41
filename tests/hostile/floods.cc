#include "tests/hostile/floods.h"

#include <array>

#include "tests/hostile/flood.h"
#include "wire/arp.h"
#include "wire/probe.h"

namespace cepheus::hostile {
namespace {

using wire::Frame;
using wire::Ipv4;
using wire::McstId;
using wire::MrpType;
using wire::Opcode;
using wire::Qpn;

constexpr Qpn kNoQp(0x11);

class RoceFlood final : public Flood {
 public:
  RoceFlood(const Scenario& scenario, Ipv4 to, Ipv4 from, Opcode opcode, Qpn qpn, std::size_t bytes)
      : Flood(scenario), headers_(roce_to(to, opcode, qpn)), payload_(bytes) {
    if (from != Ipv4()) headers_.ip.source = from;
  }

 private:
  bool make(Frame& frame) override {
    headers_.bth.psn = headers_.bth.psn + 1;
    headers_.emit(frame, payload_.size());
    return payload_.empty() || set_payload(frame, payload_);
  }

  wire::RoceHeaders headers_;
  const std::vector<std::uint8_t> payload_;
};

class DatagramFlood final : public Flood {
 public:
  DatagramFlood(const Scenario& scenario, Ipv4 to, std::uint16_t udp_port, std::size_t bytes)
      : Flood(scenario), headers_(datagram_to(to, udp_port)), payload_(bytes, 0xA5) {}

 private:
  bool make(Frame& frame) override {
    headers_.emit(frame, payload_);
    return frame.external == nullptr || set_payload(frame, payload_);
  }

  const wire::UdpDatagram headers_;
  const std::vector<std::uint8_t> payload_;
};

class ArpFlood final : public Flood {
 public:
  explicit ArpFlood(const Scenario& scenario) : Flood(scenario) {
    wire::Ethernet ethernet;
    ethernet.source = port_->identity().mac;
    ethernet.destination = wire::Mac{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};
    ethernet.ether_type = wire::Ethernet::kArp;
    ethernet.emit(std::span(bytes_).first<wire::Ethernet::kSize>());
    wire::Arp arp;
    arp.target = scenario.victim;
    arp.emit(std::span(bytes_).subspan<wire::Ethernet::kSize, wire::Arp::kSize>());
  }

 private:
  bool make(Frame& frame) override {
    frame = *Frame::from_bytes(bytes_);
    const auto payload = frame.payload();
    return set_payload(frame, payload);
  }

  std::array<std::uint8_t, 60> bytes_{};
};

class RegisterFlood final : public Flood {
 public:
  RegisterFlood(const Scenario& scenario, bool is_new) : Flood(scenario), is_new_(is_new) {
    message_.header.type = MrpType::kRegister;
    message_.header.epoch = 1;
    message_.header.mcst_id = kNoGroup;
    message_.header.instance = 77;
    message_.add({port_->identity().address, Qpn(0x77)});
    while (message_.add({scenario.victim, Qpn(0x78)}) && !is_new) continue;
  }

 private:
  bool make(Frame& frame) override {
    if (is_new_) message_.header.mcst_id = McstId(kNoGroup.value() + next_++ % 4096);
    return make_registration(frame, message_);
  }

  const bool is_new_;
  wire::MrpMessage message_;
  std::uint32_t next_ = 0;
};

class ProbeFlood final : public Flood {
 public:
  explicit ProbeFlood(const Scenario& scenario) : Flood(scenario) {
    wire::Probe probe;
    probe.header.type = MrpType::kProbe;
    probe.header.mcst_id = kNoGroup;
    probe.answer_bytes = 0xFFFF;
    bare_size_ = probe.emit(bare_);
    probe.order = wire::OrderRecord{};
    for (std::size_t kind = 0; kind < orders_.size(); ++kind) {
      probe.order->kind = static_cast<wire::OrderKind>(kind);
      probe.order->number = kind == 0 ? 0 : 0xFFFF;
      probe.emit(orders_[kind]);
    }
  }

 private:
  bool make(Frame& frame) override {
    const std::size_t kind = next_++ % (orders_.size() + 1);
    const bool orders = kind < orders_.size();
    const auto payload = orders ? std::span<const std::uint8_t>(orders_[kind])
                                : std::span<const std::uint8_t>(bare_).first(bare_size_);
    datagram_to(kNoGroup, wire::kDefaultMrpUdpPort).emit(frame, payload);
    return frame.external == nullptr || set_payload(frame, payload, true);
  }

  using Bytes = std::array<std::uint8_t, wire::Probe::kMostSize>;
  Bytes bare_{};
  std::array<Bytes, 5> orders_{};  // one of each kind
  std::size_t bare_size_ = 0;
  std::uint32_t next_ = 0;
};

// Ends the last attack's group and sets its own up, and again at intervals: the group may be gone.
class OwnGroupFlood final : public Flood {
 public:
  explicit OwnGroupFlood(const Scenario& scenario)
      : Flood(scenario),
        group_(fresh_.next()),
        data_(roce_to(group_, Opcode::kRcSendOnly, wire::kVirtualQpn)),
        payload_(kLarge) {
    message_.header.epoch = 1;
    message_.header.instance = 77;
    message_.add({port_->identity().address, Qpn(0x77)});
    for (std::uint32_t n = 0; n < kMembers; ++n) {
      message_.add({Ipv4(scenario.victim.value() + n), Qpn(0x78)});
    }
    data_.bth.psn = wire::group_start_psn(group_, 1);
  }

 private:
  static constexpr std::uint32_t kMembers = 3, kBetweenSetUps = 1 << 20;
  inline static FreshGroups fresh_{McstId(198, 19, 32, 0)};

  bool make(Frame& frame) override {
    constexpr std::array kSteps{MrpType::kUnregister, MrpType::kRegister, MrpType::kActivate};
    const std::uint32_t now = next_++ % kBetweenSetUps;
    if (now < kSteps.size()) {
      message_.header.type = kSteps[now];
      message_.header.mcst_id = now == 0 ? McstId(group_.value() - 1) : group_;
      message_.header.flags = kSteps[now] == MrpType::kActivate ? kMembers : 0;
      return make_registration(frame, message_);
    }
    data_.emit(frame, payload_.size());
    data_.bth.psn = data_.bth.psn + 1;
    return set_payload(frame, payload_);
  }

  const McstId group_;
  wire::MrpMessage message_;
  wire::RoceHeaders data_;
  const std::vector<std::uint8_t> payload_;
  std::uint32_t next_ = 0;
};

}  // namespace

Made flood_with_roce(const Scenario& scenario, Ipv4 to, Opcode opcode, std::size_t bytes) {
  return std::make_unique<RoceFlood>(scenario, to, Ipv4(), opcode, kNoQp, bytes);
}

Made flood_in_anothers_name(const Scenario& scenario) {
  const Ipv4 another(scenario.victim.value() + 1);
  return std::make_unique<RoceFlood>(scenario, scenario.victim, another, Opcode::kRcSendOnly, kNoQp,
                                     kLarge);
}

Made flood_unknown_group(const Scenario& scenario) {
  return std::make_unique<RoceFlood>(scenario, kNoGroup, Ipv4(), Opcode::kRcSendOnly,
                                     wire::kVirtualQpn, kLarge);
}

Made flood_with_datagrams(const Scenario& scenario, Ipv4 to, std::uint16_t udp_port,
                          std::size_t bytes) {
  return std::make_unique<DatagramFlood>(scenario, to, udp_port, bytes);
}

Made flood_with_arp(const Scenario& scenario) { return std::make_unique<ArpFlood>(scenario); }

Made flood_with_new_groups(const Scenario& scenario) {
  return std::make_unique<RegisterFlood>(scenario, true);
}

Made flood_with_repeats(const Scenario& scenario) {
  return std::make_unique<RegisterFlood>(scenario, false);
}

Made flood_with_probes(const Scenario& scenario) { return std::make_unique<ProbeFlood>(scenario); }

Made flood_own_group(const Scenario& scenario) { return std::make_unique<OwnGroupFlood>(scenario); }

}  // namespace cepheus::hostile
