// For tests: a group on a live fabric, registered by hand, whose members are ports of the test.
#pragma once

#include <gtest/gtest.h>

#include "switch-emulator/live/test_fabric.h"
#include "wire/test_bytes.h"

namespace cepheus::live {

using wire::MrpType;

inline constexpr wire::McstId kGroup{198, 18, 0, 7};
inline constexpr std::uint16_t kEpoch = 1;

inline wire::MrpMessage message_of(MrpType type, wire::McstId id = kGroup) {
  return wire::mrp_message(type, id);
}

inline wire::Qpn qpn_of(std::size_t host) {
  return wire::Qpn(static_cast<std::uint32_t>(0x100 + host));
}

// The next datagram of the registration, as its type.
inline std::optional<MrpType> await_mrp(fabric::HostPort& port) {
  wire::Frame frame;
  if (!await_frame(port, frame)) return std::nullopt;
  const auto message = wire::MrpMessage::parse(frame.payload());
  const auto type = message ? std::optional(message->header.type) : std::nullopt;
  port.release();
  return type;
}

class LiveGroup {
 public:
  // Of `hosts` hosts from number `first` on.
  LiveGroup(TestFabric& fabric, std::size_t hosts, std::size_t first = 0, wire::McstId id = kGroup)
      : id_(id) {
    for (std::size_t i = 0; i < hosts; ++i)
      ports_.push_back(fabric.attach("#" + std::to_string(first + i)));
  }
  fabric::HostPort& port(std::size_t host) { return *ports_[host]; }

  // A SEND ONLY of the first member; packet number `n`.
  void send(std::uint32_t n, std::size_t payload_bytes) {
    send_packet(port(0), {.to = id_,
                          .qpn = wire::kVirtualQpn,
                          .psn = wire::group_start_psn(id_, kEpoch) + n,
                          .payload_bytes = payload_bytes});
  }
  // Sends packet number `n` and expects it at every other member; ignores other frames.
  void transmit(std::uint32_t n) {
    send(n, 1024);
    for (std::size_t member = 1; member < ports_.size(); ++member) {
      wire::Frame frame;
      std::optional<wire::RoceHeaders> headers;
      do {
        ASSERT_TRUE(await_frame(port(member), frame)) << "member " << member;
        headers = wire::RoceHeaders::parse(frame);
        port(member).release();
      } while (!headers || headers->ip.source != id_);
      EXPECT_EQ(headers->bth.psn, wire::group_start_psn(id_, kEpoch) + n);
      EXPECT_EQ(frame.payload_len, 1024u);
    }
  }

  // Host 0 leads; its requests go to all others. Ignores their confirmations, which the switch
  // passes on unread.
  void set_up() {
    auto registration = message_of(MrpType::kRegister, id_);
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      ASSERT_TRUE(registration.add({ports_[i]->identity().address, qpn_of(i), 0}));
    }
    send_mrp(*ports_[0], registration);
    for (std::size_t i = 1; i < ports_.size(); ++i)
      ASSERT_EQ(await_mrp(*ports_[i]), MrpType::kRegister) << i;
    auto activation = message_of(MrpType::kActivate, id_);
    activation.header.flags = static_cast<std::uint16_t>(ports_.size() - 1);
    send_mrp(*ports_[0], activation);
    for (std::size_t i = 1; i < ports_.size(); ++i)
      ASSERT_EQ(await_mrp(*ports_[i]), MrpType::kActivate) << i;
  }

 private:
  const wire::McstId id_;
  std::vector<std::unique_ptr<fabric::HostPort>> ports_;
};

}  // namespace cepheus::live
