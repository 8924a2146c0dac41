// Floods of messages that switches send on to every receiver of a sender group, by every way.
#include <array>

#include "tests/hostile/flood.h"
#include "tests/hostile/floods.h"
#include "wire/sender_group.h"

namespace cepheus::hostile {
namespace {

using wire::Ipv4;
using wire::MrpType;
using wire::Qpn;
using wire::SenderGroupMessage;

constexpr std::uint32_t kVictims = 3;  // the victim, and the hosts behind it
constexpr std::uint16_t kNobodyListens = 40000;

class SenderFlood final : public Flood {
 public:
  SenderFlood(const Scenario& scenario, MrpType type) : Flood(scenario) {
    message_.header.type = type;
    message_.header.flags = type == MrpType::kInstall ? SenderGroupMessage::kMeasures : 0;
    message_.header.epoch = 1;
    message_.header.mcst_id = port_->identity().address;
    message_.header.instance = 77;
    message_.control_port = kNobodyListens;
    message_.virtual_qpn = Qpn(wire::kFirstSenderGroupQpn);
    message_.sender_qpn = Qpn(0x77);
    message_.addressed = scenario.victim;
    message_.path_mtu = 4096;
    message_.share = SenderGroupMessage::kWholeShare;
    for (std::uint32_t n = 0; n < kVictims; ++n) {
      message_.add({Ipv4(scenario.victim.value() + n), Qpn(0x78), 0, kNobodyListens});
    }
    message_.add({scenario.friendly, Qpn(0x78), 0, kNobodyListens});
  }

 private:
  bool make(wire::Frame& frame) override {
    ++message_.header.seq;
    std::array<std::uint8_t, wire::MrpMessage::kMaxSize> bytes;
    const std::span<const std::uint8_t> data(bytes.data(), message_.emit(bytes));
    datagram_to(message_.addressed, wire::kDefaultMrpUdpPort).emit(frame, data);
    return frame.external == nullptr || set_payload(frame, data, true);
  }

  SenderGroupMessage message_;
};

}  // namespace

Made flood_with_installs(const Scenario& scenario) {
  return std::make_unique<SenderFlood>(scenario, MrpType::kInstall);
}

Made flood_with_removes(const Scenario& scenario) {
  return std::make_unique<SenderFlood>(scenario, MrpType::kRemove);
}

}  // namespace cepheus::hostile
