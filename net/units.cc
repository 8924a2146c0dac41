// Numbers are read without floating point, in 128 bits; one that is no whole multiple of the
// smallest unit, or beyond its limit, is refused. A rate of 0 is refused, too: "unlimited" is the
// text for it. Spaces between number and unit are allowed, a sign and an exponent are not.
#include "net/units.h"

#include <array>
#include <charconv>
#include <limits>
#include <span>

namespace cepheus::net {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, as the printers try them. A table ends with the unit of factor 1.
constexpr std::array<Unit, 5> kRates{{{"Tbps", 1'000'000'000'000},
                                      {"Gbps", 1'000'000'000},
                                      {"Mbps", 1'000'000},
                                      {"Kbps", 1'000},
                                      {"bps", 1}}};
constexpr std::array<Unit, 5> kDurations{
    {{"min", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
constexpr std::array<Unit, 7> kSizes{{{"GiB", 1 << 30},
                                      {"GB", 1'000'000'000},
                                      {"MiB", 1 << 20},
                                      {"MB", 1'000'000},
                                      {"KiB", 1 << 10},
                                      {"KB", 1'000},
                                      {"B", 1}}};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// digits[.digits] unit -> a whole number of the smallest unit, at most `limit`.
std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units,
                                   std::uint64_t limit) {
  std::size_t number_end = 0;
  while (number_end < text.size() && (is_digit(text[number_end]) || text[number_end] == '.')) {
    ++number_end;
  }
  std::string_view unit_name = text.substr(number_end);
  while (unit_name.starts_with(' ')) unit_name.remove_prefix(1);
  std::uint64_t factor = 0;
  for (const Unit& unit : units) {
    if (unit.name == unit_name) factor = unit.factor;
  }
  const std::string_view number = text.substr(0, number_end);
  const std::size_t point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
  if (factor == 0 || whole.empty() || (point != std::string_view::npos && fraction.empty())) {
    return std::nullopt;
  }
  if (fraction.find('.') != std::string_view::npos) return std::nullopt;

  unsigned __int128 value = 0;
  for (const char c : whole) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > limit) return std::nullopt;
  }
  value *= factor;
  std::uint64_t step = factor;  // ten times the value of the next digit behind the point
  for (const char c : fraction) {
    if (c != '0' && step % 10 != 0) return std::nullopt;
    step /= 10;
    value += static_cast<unsigned __int128>(c - '0') * step;
  }
  if (value > limit) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::string print(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return "0" + std::string(units.back().name);
}

}  // namespace

std::optional<wire::BitRate> parse_rate(std::string_view text) {
  if (text == "unlimited") return wire::BitRate{};
  const auto bits = parse(text, kRates, std::numeric_limits<std::int64_t>::max());
  if (!bits || *bits == 0) return std::nullopt;
  return wire::BitRate{*bits};
}

std::optional<wire::Duration> parse_duration(std::string_view text) {
  const auto ns = parse(text, kDurations, static_cast<std::uint64_t>(kLongestDuration.count()));
  if (!ns) return std::nullopt;
  return wire::Duration(static_cast<std::int64_t>(*ns));
}

std::optional<wire::Bytes> parse_bytes(std::string_view text) {
  return parse(text, kSizes, kLargestSize);
}

std::string to_text(wire::BitRate rate) {
  return rate.is_unlimited() ? "unlimited" : print(rate.bits_per_second, kRates);
}

std::string to_text(wire::Duration duration) {
  return print(static_cast<std::uint64_t>(duration.count()), kDurations);
}

std::string bytes_to_text(wire::Bytes bytes) { return print(bytes, kSizes); }

std::string number_to_text(double number) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace cepheus::net
