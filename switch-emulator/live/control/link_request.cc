// A host's cable has the host's name, a trunk that of its switches. A name of two cables, an unknown
// name, and a wrong direction are errors with the names that would do. Settings that the request
// does not name stay.
#include "switch-emulator/live/control/link_request.h"

#include <algorithm>

#include "net/nearest_name.h"
#include "switch-emulator/live/status/printable.h"

namespace cepheus::live {
namespace {

using Cable = Datapath::Cable;
using LinkState = Datapath::LinkState;

// The error for an unknown cable, with a suggestion.
std::string unknown(const std::string& name, const std::vector<Cable>& cables) {
  std::vector<std::string> of_switch;
  std::vector<std::string_view> known;
  for (const Cable& cable : cables) {
    known.push_back(cable.name);
    const bool is_trunk = cable.name != cable.near;
    if (is_trunk && cable.near == name) of_switch.push_back(cable.name);
  }
  if (!of_switch.empty())
    return "'" + name + "' is a switch: its trunks are " + first_few(of_switch);
  return "no link '" + name + "' in the fabric" + net::did_you_mean(name, known) +
         "; name a host's link by the host, a trunk by its switches: h1, leaf0-spine0";
}

wire::Result<Cable> find_cable(const Datapath& datapath, const std::string& name) {
  const std::vector<Cable> cables = datapath.cables();
  const auto is_called_so = [&](const Cable& c) { return c.name == name; };
  const auto found = std::find_if(cables.begin(), cables.end(), is_called_so);
  if (found == cables.end()) return wire::invalid(unknown(name, cables));
  const auto other = std::find_if(found + 1, cables.end(), is_called_so);
  if (other == cables.end()) return *found;
  return wire::invalid("'" + found->name + "' is the link between " + found->near + " and " +
                       found->far + ", and that between " + other->near + " and " + other->far +
                       ": name a trunk from its other end");
}

LinkState changed(LinkState state, const LinkRequest& request) {
  state.loss = request.loss.value_or(state.loss);
  state.up = request.up.value_or(state.up);
  return state;
}

// The links of the cable in the requested direction.
wire::Result<std::vector<std::uint32_t>> chosen(const Cable& cable, const std::string& direction) {
  const bool is_host = cable.name == cable.near;
  if (direction == "both") return std::vector{cable.to_far, cable.to_near};
  if (direction == "to-" + cable.far || (is_host && direction == "up")) {
    return std::vector{cable.to_far};
  }
  if (direction == "to-" + cable.near || (is_host && direction == "down")) {
    return std::vector{cable.to_near};
  }
  const std::string ways = "both, to-" + cable.near + " or to-" + cable.far;
  return wire::invalid("direction must be " + (is_host ? "down, up, " : std::string()) + ways);
}

}  // namespace

wire::Result<std::vector<std::uint32_t>> find_links(const Datapath& datapath,
                                                    const LinkRequest& request) {
  const auto cable = find_cable(datapath, request.link);
  if (!cable) return tl::unexpected(cable.error());
  return chosen(*cable, request.direction);
}

void set_links(Datapath& datapath, wire::Instant now, const std::vector<std::uint32_t>& links,
               const LinkRequest& request) {
  for (const std::uint32_t link : links) {
    datapath.set_link_state(now, link, changed(datapath.link_state(link), request));
  }
}

}  // namespace cepheus::live
