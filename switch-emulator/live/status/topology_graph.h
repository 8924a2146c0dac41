// The shape of a fabric, from its status: switches on floors, cables between them, and the trees of
// its groups' data.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

struct TopologyGraph {
  static constexpr std::size_t kNone = ~std::size_t{0};

  enum class State : std::uint8_t { kUp, kDark, kCut };
  struct Cable {
    std::size_t from = 0;    // a switch, in the status's order
    wire::PortId port;       // ... its port
    std::size_t to = kNone;  // the other switch; kNone: a host
    std::string name;        // name at the other end: "h0", "spine1"
    State state = State::kUp;
    std::uint64_t payload_bytes = 0;  // of both directions
  };
  struct Tree {
    fabric::GroupView group;          // as seen by the switch by which its data enters
    std::size_t root = 0;             // ... that switch
    std::vector<std::size_t> cables;  // its cables, including those to its hosts
  };

  // Floors from the hosts up: a switch with hosts is on floor 1, and one without is above its
  // lowest neighbour.
  std::vector<std::size_t> floors;  // by switch
  std::vector<Cable> cables;        // each trunk once; hosts' cables after them
  std::vector<Tree> trees;          // of active groups

  explicit TopologyGraph(const FabricStatus& status);
  std::size_t top() const;  // the highest floor; 0 without switches

 private:
  void read_cables(const FabricStatus& status);
  Tree read_tree(const FabricStatus& status, wire::McstId group) const;
  void find_floors();

  std::map<std::pair<std::size_t, std::uint16_t>, std::size_t> at_;  // a cable by switch and port
};

const char* to_string(TopologyGraph::State state);  // "up", "dark", "cut"

// Switches floor by floor with their cables, and each group's tree, indented.
std::string topology_text(const FabricStatus& status, bool colour);
// {"switches": [{"name", "floor"}], "cables": [{"from", "to", "kind", "state", "payload_bytes"}],
// "groups": [{"id", "source", "root", "cables": [indices]}]}
nlohmann::json topology_json(const FabricStatus& status);
// The same as a drawing: one SVG document without external resources, for light and dark
// backgrounds.
std::string topology_svg(const FabricStatus& status);

}  // namespace cepheus::live
