// The link's rate is read first, because hpcc's values depend on it. Then the words apply from left
// to right, and the last one for a parameter counts.
//
// A number lies between 0 and 1e12 and has no unit; each name of a parameter has its own. Unknown
// words are refused before impossible combinations, which CongestionConfig::check() finds.
#include "nic-emulator/engine/congestion_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace cepheus::rnic {
namespace {

constexpr wire::BitRate kUsualLink{100'000'000'000};
constexpr std::string_view kLink = "link_mbps";

wire::Duration microseconds(double us) {
  return wire::Duration(static_cast<std::int64_t>(std::llround(us * 1000)));
}
std::uint64_t megabits(double mbps) {
  return static_cast<std::uint64_t>(std::llround(mbps * 1'000'000));
}
std::uint64_t whole(double n) { return static_cast<std::uint64_t>(std::llround(n)); }
std::uint32_t at_most_32_bits(std::uint64_t n) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, UINT32_MAX));
}

struct Parameter {
  std::string_view name;
  void (*set)(CongestionConfig& config, double value);
};

constexpr std::array kParameters = {
    Parameter{kLink, [](auto& c, double v) { c.link = {megabits(v)}; }},
    Parameter{"cnp_interval_us", [](auto& c, double v) { c.cnp_interval = microseconds(v); }},
    Parameter{"g", [](auto& c, double v) { c.reaction.g = v; }},
    Parameter{"alpha_timer_us",
              [](auto& c, double v) { c.reaction.alpha_timer = microseconds(v); }},
    Parameter{"rate_timer_us", [](auto& c, double v) { c.reaction.rate_timer = microseconds(v); }},
    Parameter{"byte_counter", [](auto& c, double v) { c.reaction.byte_counter = whole(v); }},
    Parameter{"fast_recovery",
              [](auto& c, double v) { c.reaction.fast_recovery = at_most_32_bits(whole(v)); }},
    Parameter{"additive_mbps", [](auto& c, double v) { c.reaction.additive_bps = megabits(v); }},
    Parameter{"hyper_mbps", [](auto& c, double v) { c.reaction.hyper_bps = megabits(v); }},
    Parameter{"hyper_grows", [](auto& c, double v) { c.reaction.hyper_grows = v != 0; }},
    Parameter{"min_mbps", [](auto& c, double v) { c.reaction.min_bps = megabits(v); }},
    Parameter{"cut_interval_us",
              [](auto& c, double v) { c.reaction.cut_interval = microseconds(v); }},
    Parameter{"always_clamps", [](auto& c, double v) { c.reaction.always_clamps = v != 0; }},
};

tl::unexpected<wire::Error> refuse(std::string_view text, const std::string& why) {
  return wire::invalid("congestion control '" + std::string(text) + "': " + why);
}

std::string known_names() {
  std::string names;
  for (const Parameter& p : kParameters) names += (names.empty() ? "" : ", ") + std::string(p.name);
  return names;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t comma = text.find(',');
    words.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

// Empty if the word is not a number in a parameter's range.
std::optional<double> number_in(std::string_view text) {
  constexpr double kMost = 1e12;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole_text = error == std::errc() && end == text.data() + text.size();
  if (!is_whole_text || !(value >= 0 && value <= kMost)) return std::nullopt;
  return value;
}

// The text's link_mbps, else `link`. Wrong words are reported later.
wire::BitRate link_in(const std::vector<std::string_view>& words, wire::BitRate link) {
  for (const std::string_view word : words) {
    if (!word.starts_with(std::string(kLink) + "=")) continue;
    if (const auto value = number_in(word.substr(kLink.size() + 1))) return {megabits(*value)};
  }
  return link.is_unlimited() ? kUsualLink : link;
}

}  // namespace

wire::Result<std::optional<CongestionConfig>> parse_congestion(std::string_view text,
                                                               wire::BitRate link) {
  const std::vector<std::string_view> words = words_of(text);
  if (text.empty() || text == "off") return std::nullopt;
  CongestionConfig config;
  config.link = link_in(words, link);
  if (words[0] == "hpcc") {
    config.reaction = DcqcnParameters::hpcc(config.link);
  } else if (words[0] != "orig") {
    return refuse(text, "begin with off, orig or hpcc");
  }
  // Echoes have no minimum interval, so the sender limits its cuts.
  const bool echoes = std::find(words.begin(), words.end(), "ce-echo") != words.end();
  if (words[0] == "orig" && echoes) config.reaction.cut_interval = config.cnp_interval;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "cnp" || word == "ce-echo") {
      config.notification = word == "cnp" ? Notification::kCnp : Notification::kCeEcho;
      continue;
    }
    const std::size_t sign = word.find('=');
    const auto* const parameter =
        std::ranges::find(kParameters, word.substr(0, sign), &Parameter::name);
    if (sign == std::string_view::npos || parameter == kParameters.end()) {
      return refuse(text, "'" + std::string(word) +
                              "' is not cnp, ce-echo or NAME=NUMBER; names are " + known_names());
    }
    const auto value = number_in(word.substr(sign + 1));
    if (!value) {
      return refuse(text,
                    "'" + std::string(word) + "' needs a number from 0 to 1e12, without a unit");
    }
    parameter->set(config, *value);
  }
  if (auto ok = config.check(); !ok) return refuse(text, ok.error().text);
  return config;
}

}  // namespace cepheus::rnic
