#include "wire/types.h"

#include <charconv>
#include <cstdio>

namespace cepheus::wire {
namespace {

// Reads a decimal number of at most `max`, without sign or leading zeros, and removes it from
// `text`.
std::optional<std::uint32_t> take_number(std::string_view& text, std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || value > max || (digits > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return value;
}

}  // namespace

std::string Ipv4::to_string() const {
  char text[16];
  const int n = std::snprintf(text, sizeof text, "%u.%u.%u.%u", value_ >> 24, value_ >> 16 & 0xFF,
                              value_ >> 8 & 0xFF, value_ & 0xFF);
  return std::string(text, static_cast<std::size_t>(n));
}

std::optional<Ipv4> Ipv4::parse(std::string_view dotted) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) {
      if (dotted.empty() || dotted.front() != '.') return std::nullopt;
      dotted.remove_prefix(1);
    }
    const auto octet = take_number(dotted, 255);
    if (!octet) return std::nullopt;
    value = value << 8 | *octet;
  }
  if (!dotted.empty()) return std::nullopt;
  return Ipv4(value);
}

std::optional<Ipv4Prefix> Ipv4Prefix::parse(std::string_view cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto base = Ipv4::parse(cidr.substr(0, slash));
  std::string_view rest = cidr.substr(slash + 1);
  const auto length = take_number(rest, 32);
  if (!base || !length || !rest.empty()) return std::nullopt;
  const Ipv4Prefix prefix{*base, static_cast<int>(*length)};
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
