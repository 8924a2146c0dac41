// Quantities as in a topology file: "10Gbps", "2.5us", "4MiB".
//
// A number needs a unit: parse() refuses "10". to_text() picks the largest unit that keeps the
// value whole, so parse(to_text(x)) is x. Fractions are read exactly or refused ("1.5ns").
// Durations and sizes have limits, so that sums of thousands of them do not wrap.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/types.h"

namespace cepheus::net {

inline constexpr wire::Duration kLongestDuration = std::chrono::minutes(525'600);  // a year
inline constexpr wire::Bytes kLargestSize = wire::Bytes{1} << 40;
inline constexpr std::string_view kDurationUnits = "ns, us, ms, s, min; at most 525600min";
inline constexpr std::string_view kBytesUnits = "B, KB, MB, GB, KiB, MiB, GiB; at most 1024GiB";

std::optional<wire::BitRate> parse_rate(std::string_view text);  // "unlimited" is one; zero is none
std::optional<wire::Duration> parse_duration(std::string_view text);
std::optional<wire::Bytes> parse_bytes(std::string_view text);

std::string to_text(wire::BitRate rate);
std::string to_text(wire::Duration duration);
std::string bytes_to_text(wire::Bytes bytes);
// The shortest decimal that reads back as the same number, always with a point or an exponent.
std::string number_to_text(double number);

}  // namespace cepheus::net
