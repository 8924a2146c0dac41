#include "switch-emulator/live/link_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/nearest_name.h"
#include "switch-emulator/live/printable.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using wire::ErrorCode;
using Cable = Datapath::Cable;
using LinkState = Datapath::LinkState;

tl::unexpected<wire::Error> invalid(std::string text) {
  return wire::fail(ErrorCode::kInvalid, std::move(text));
}

// Why no cable is called so, and how it may be meant.
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
         "; a host's is called as the host, a trunk's as its switches: h1, leaf0-spine0";
}

wire::Result<Cable> find_cable(const Datapath& datapath, const json& request) {
  const json name = request.value("link", request.value("host", json()));
  if (!name.is_string()) return invalid("link must name a host, or a trunk such as leaf0-spine0");
  const std::vector<Cable> cables = datapath.cables();
  const auto is_called_so = [&](const Cable& c) { return c.name == name.get<std::string>(); };
  const auto found = std::find_if(cables.begin(), cables.end(), is_called_so);
  if (found == cables.end()) return invalid(unknown(name.get<std::string>(), cables));
  const auto other = std::find_if(found + 1, cables.end(), is_called_so);
  if (other == cables.end()) return *found;
  return invalid("'" + found->name + "' is the link between " + found->near + " and " + found->far +
                 ", and that between " + other->near + " and " + other->far +
                 ": name a trunk from its other end");
}

// Takes a probability out of the request, if it is there.
wire::Result<void> read(const json& request, const char* key, double& value) {
  const auto found = request.find(key);
  if (found == request.end()) return {};
  if (!found->is_number() || found->get<double>() < 0 || found->get<double>() > 1) {
    return invalid(std::string(key) + " must be a number from 0 to 1");
  }
  value = found->get<double>();
  return {};
}

wire::Result<LinkState> changed(LinkState state, const json& request) {
  for (const auto& [key, value] : {std::pair<const char*, double*>{"loss", &state.loss},
                                   {"duplicate", &state.duplicate},
                                   {"reorder", &state.reorder},
                                   {"corrupt", &state.corrupt}}) {
    if (auto done = read(request, key, *value); !done) return tl::unexpected(done.error());
  }
  const auto found = request.find("up");
  if (found == request.end()) return state;
  if (!found->is_boolean()) return invalid("up must be true or false");
  state.up = found->get<bool>();
  return state;
}

// The links of the cable that lead in the direction asked for.
wire::Result<std::vector<std::uint32_t>> chosen(const Cable& cable, const json& request) {
  const json direction = request.value("direction", json("both"));
  const bool is_host = cable.name == cable.near;
  if (direction == "both") return std::vector{cable.to_far, cable.to_near};
  if (direction == "to-" + cable.far || (is_host && direction == "up")) {
    return std::vector{cable.to_far};
  }
  if (direction == "to-" + cable.near || (is_host && direction == "down")) {
    return std::vector{cable.to_near};
  }
  const std::string ways = "both, to-" + cable.near + " or to-" + cable.far;
  return invalid("direction must be " + (is_host ? "down, up, " : std::string()) + ways);
}

}  // namespace

wire::Result<void> set_link(Datapath& datapath, wire::Instant now, const json& request) {
  const auto cable = find_cable(datapath, request);
  if (!cable) return tl::unexpected(cable.error());
  const auto links = chosen(*cable, request);
  if (!links) return tl::unexpected(links.error());
  // Everything is checked before anything is changed.
  std::vector<LinkState> states;
  for (const std::uint32_t link : *links) {
    const auto state = changed(datapath.link_state(link), request);
    if (!state) return tl::unexpected(state.error());
    states.push_back(*state);
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    datapath.set_link_state(now, (*links)[i], states[i]);
  }
  return {};
}

}  // namespace cepheus::live
