// A fabric's switches and trees as text. Three or more names with consecutive numbers are written
// as their ends: "h0..h7". A tree is walked from its root, each switch once. A number is read from
// at most nine digits, so no name overflows it.
#include <algorithm>
#include <cctype>

#include "switch-emulator/live/status/text_table.h"
#include "switch-emulator/live/status/topology_graph.h"

namespace cepheus::live {
namespace {

using Cable = TopologyGraph::Cable;

// "h" and 12 of "h12"; a name without a number has none.
struct Numbered {
  std::string stem;
  std::uint64_t number = 0;
  bool has_number = false;

  explicit Numbered(const std::string& name) {
    constexpr std::size_t kMostDigits = 9;
    std::size_t digits = 0;
    while (digits < std::min(name.size(), kMostDigits) &&
           std::isdigit(static_cast<unsigned char>(name[name.size() - 1 - digits])) != 0) {
      ++digits;
    }
    stem = name.substr(0, name.size() - digits);
    has_number = digits > 0;
    if (has_number) number = std::stoull(name.substr(name.size() - digits));
  }
  bool follows(const Numbered& other) const {
    return has_number && other.has_number && stem == other.stem && number == other.number + 1;
  }
};

// "h0..h7 spine1": runs of numbers as their ends.
std::string in_short(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t last = i;
    while (last + 1 < names.size() && Numbered(names[last + 1]).follows(Numbered(names[last]))) {
      ++last;
    }
    if (last < i + 2) last = i;  // two are not a run
    if (!text.empty()) text += " ";
    text += last == i ? names[i] : names[i] + ".." + names[last];
    i = last + 1;
  }
  return text;
}

std::size_t other_end(const Cable& cable, std::size_t here) {
  return cable.to == here ? cable.from : cable.to;
}

class Text {
 public:
  Text(const FabricStatus& status, bool colour)
      : status_(status), graph_(status), colour_(colour) {}

  std::string whole() {
    std::string text = switches();
    for (const TopologyGraph::Tree& tree : graph_.trees) text += "\n" + group(tree);
    return text;
  }

 private:
  std::string switches() const {
    TextTable table({{"FLOOR", true}, {"SWITCH"}, {"UP"}, {"BESIDE"}, {"DOWN"}, {"NOT UP"}});
    for (std::size_t floor = graph_.top(); floor > 0; --floor) {
      for (std::size_t s = 0; s < status_.switches.size(); ++s) {
        if (graph_.floors[s] == floor) table.add(row(s));
      }
    }
    return table.to_text(colour_);
  }

  std::vector<TextTable::Cell> row(std::size_t s) const {
    std::vector<std::string> up, beside, down, failed;
    for (const Cable& c : graph_.cables) {
      if (c.from != s && c.to != s) continue;
      const bool is_host = c.to == TopologyGraph::kNone;
      const std::size_t far = is_host ? s : other_end(c, s);
      const std::string name = is_host ? c.name : status_.switches[far].name;
      auto& list = is_host || graph_.floors[far] < graph_.floors[s] ? down
                   : graph_.floors[far] == graph_.floors[s]         ? beside
                                                                    : up;
      list.push_back(name);
      if (c.state != TopologyGraph::State::kUp) {
        failed.push_back(name + " (" + to_string(c.state) + ")");
      }
    }
    return {std::uint64_t{graph_.floors[s]},
            status_.switches[s].name,
            in_short(up),
            in_short(beside),
            in_short(down),
            {in_short(failed), Style::kAlarm}};
  }

  std::string group(const TopologyGraph::Tree& tree) const {
    const auto members = std::ranges::count_if(
        tree.cables, [&](std::size_t c) { return graph_.cables[c].to == TopologyGraph::kNone; });
    const wire::Ipv4 source = tree.group.source;
    std::string text =
        styled(tree.group.id.to_string(), Style::kTitle, colour_) + "  " + std::to_string(members) +
        " members, " +
        (source.is_unset() ? "no member has sent yet" : "from " + source.to_string()) + "\n";
    std::vector<bool> seen(status_.switches.size());
    branch(tree, tree.root, 1, seen, text);
    return text;
  }

  void branch(const TopologyGraph::Tree& tree, std::size_t s, std::size_t depth,
              std::vector<bool>& seen, std::string& text) const {
    seen[s] = true;
    std::vector<std::string> hosts;
    for (const std::size_t c : tree.cables) {
      const Cable& cable = graph_.cables[c];
      if (cable.from == s && cable.to == TopologyGraph::kNone) hosts.push_back(cable.name);
    }
    text += std::string(2 * depth, ' ') + printable(status_.switches[s].name);
    if (!hosts.empty()) text += "  " + printable(in_short(hosts));
    text += "\n";
    for (const std::size_t c : tree.cables) {
      const Cable& cable = graph_.cables[c];
      if (cable.to == TopologyGraph::kNone || (cable.from != s && cable.to != s)) continue;
      const std::size_t far = other_end(cable, s);
      if (!seen[far]) branch(tree, far, depth + 1, seen, text);
    }
  }

  const FabricStatus& status_;
  const TopologyGraph graph_;
  const bool colour_;
};

}  // namespace

std::string topology_text(const FabricStatus& status, bool colour) {
  return Text(status, colour).whole();
}

}  // namespace cepheus::live
