#include "wire/arp.h"

#include <cstring>

#include "wire/byte_order.h"
#include "wire/ethernet.h"

namespace cepheus::wire {
namespace {

constexpr std::uint16_t kEthernetHardware = 1;
constexpr std::uint16_t kAddressLengths = 0x0604;  // six bytes of MAC, four of IPv4
constexpr std::size_t kSenderOffset = 8, kTargetOffset = 18;

void load_addresses(const std::uint8_t* p, Mac& mac, Ipv4& address) {
  std::memcpy(mac.octets.data(), p, mac.octets.size());
  address = Ipv4(load_be32(p + mac.octets.size()));
}

void store_addresses(std::uint8_t* p, const Mac& mac, Ipv4 address) {
  std::memcpy(p, mac.octets.data(), mac.octets.size());
  store_be32(p + mac.octets.size(), address.value());
}

}  // namespace

std::optional<Arp> Arp::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  const std::uint16_t operation = load_be16(p + 6);
  if (load_be16(p) != kEthernetHardware || load_be16(p + 2) != Ethernet::kIpv4 ||
      load_be16(p + 4) != kAddressLengths || operation < 1 || operation > 2) {
    return std::nullopt;
  }
  Arp arp;
  arp.operation = static_cast<Operation>(operation);
  load_addresses(p + kSenderOffset, arp.sender_mac, arp.sender);
  load_addresses(p + kTargetOffset, arp.target_mac, arp.target);
  return arp;
}

void Arp::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  store_be16(p, kEthernetHardware);
  store_be16(p + 2, Ethernet::kIpv4);
  store_be16(p + 4, kAddressLengths);
  store_be16(p + 6, static_cast<std::uint16_t>(operation));
  store_addresses(p + kSenderOffset, sender_mac, sender);
  store_addresses(p + kTargetOffset, target_mac, target);
}

}  // namespace cepheus::wire
