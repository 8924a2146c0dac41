#include "wire/types.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>

namespace cepheus::wire {

std::string Ipv4::to_string() const {
  char text[16];
  const int n = std::snprintf(text, sizeof text, "%u.%u.%u.%u", value_ >> 24, value_ >> 16 & 0xFF,
                              value_ >> 8 & 0xFF, value_ & 0xFF);
  return std::string(text, static_cast<std::size_t>(n));
}

std::optional<Ipv4> Ipv4::parse(std::string_view dotted) {
  const bool ends_early = dotted.find('\0') != std::string_view::npos;
  in_addr address{};
  if (ends_early || inet_pton(AF_INET, std::string(dotted).c_str(), &address) != 1) {
    return std::nullopt;
  }
  return Ipv4(ntohl(address.s_addr));
}

std::string Ipv4Prefix::to_string() const {
  return base.to_string() + "/" + std::to_string(length);
}

std::optional<Ipv4Prefix> Ipv4Prefix::parse(std::string_view cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto base = Ipv4::parse(cidr.substr(0, slash));
  const std::string_view digits = cidr.substr(slash + 1);
  const char* const end = digits.data() + digits.size();
  unsigned length = 0;
  const auto read = std::from_chars(digits.data(), end, length);
  if (!base || read.ec != std::errc{} || read.ptr != end || length > 32) return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const Ipv4Prefix prefix{*base, static_cast<int>(length)};
  if ((base->value() & ~prefix.mask()) != 0) return std::nullopt;
  return prefix;
}

std::string Mac::to_string() const {
  char text[18];
  const int n = std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", octets[0],
                              octets[1], octets[2], octets[3], octets[4], octets[5]);
  return std::string(text, static_cast<std::size_t>(n));
}

}  // namespace cepheus::wire
