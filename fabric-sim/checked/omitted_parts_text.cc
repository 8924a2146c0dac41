#include <array>
#include <charconv>
#include <optional>

#include "fabric-sim/checked/omitted_parts.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kMostNumber = 1 << 20;

struct Name {
  PartKind kind;
  const char* text;
  bool is_numbered;
};
constexpr std::array kNames = {
    Name{PartKind::kHost, "h", true},           Name{PartKind::kSwitch, "s", true},
    Name{PartKind::kTrunk, "t", true},          Name{PartKind::kGroup, "g", true},
    Name{PartKind::kMessage, "m", true},        Name{PartKind::kIncident, "i", true},
    Name{PartKind::kCut, "cut", false},         Name{PartKind::kLoss, "loss", false},
    Name{PartKind::kReorder, "reorder", false}, Name{PartKind::kDuplicate, "duplicate", false},
    Name{PartKind::kCorrupt, "corrupt", false}, Name{PartKind::kPackets, "packets", false},
};

const Name& name_of(PartKind kind) {
  std::size_t at = 0;
  while (kNames[at].kind != kind) ++at;
  return kNames[at];
}

// Removes a number from the front.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > kMostNumber) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// "h3-5", "m0.4", "loss".
bool add_parts(std::string_view text, OmittedParts& parts) {
  for (const Name& name : kNames) {
    if (!name.is_numbered) {
      if (text != name.text) continue;
      parts.insert({name.kind});
      return true;
    }
    std::string_view rest = text;
    if (!take(rest, name.text[0])) continue;
    std::optional<std::size_t> group = 0;
    if (name.kind == PartKind::kMessage) {
      group = take_number(rest);
      if (!group || !take(rest, '.')) return false;
    }
    const auto first = take_number(rest);
    const auto last = first && take(rest, '-') ? take_number(rest) : first;
    if (!first || !last || !rest.empty()) continue;
    for (std::size_t n = *first; n <= *last; ++n) parts.insert({name.kind, n, *group});
    return *first <= *last;
  }
  return false;
}

}  // namespace

std::string to_text(const OmittedParts& omitted) {
  std::string text;
  for (auto at = omitted.begin(); at != omitted.end();) {
    const Part first = *at;
    std::size_t last = first.number;
    while (++at != omitted.end() && *at == Part{first.kind, last + 1, first.group}) ++last;
    const Name& name = name_of(first.kind);
    if (!text.empty()) text += ',';
    text += name.text;
    if (!name.is_numbered) continue;
    if (first.kind == PartKind::kMessage) text += std::to_string(first.group) + '.';
    text += std::to_string(first.number);
    if (last > first.number) text += '-' + std::to_string(last);
  }
  return text;
}

wire::Result<OmittedParts> omitted_from(std::string_view text) {
  OmittedParts parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    if (!add_parts(part, parts)) {
      return wire::invalid("'" + std::string(part) +
                           "' is not a part of a scenario: write h3-5 for hosts, s, t and g for "
                           "switches, trunks and groups, i for incidents, m0.4 for a message of "
                           "group 0, or loss, duplicate, reorder, corrupt, cut, packets");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace cepheus::sim
