#include "switch-emulator/live/link_request.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace cepheus::live {
namespace {

using nlohmann::json;
using wire::ErrorCode;

std::optional<std::size_t> find_host(const Datapath& datapath, const json& name) {
  if (!name.is_string()) return std::nullopt;
  for (std::size_t host = 0; host < datapath.host_count(); ++host) {
    if (datapath.identity(host).name == name.get<std::string>()) return host;
  }
  return std::nullopt;
}

// Takes a probability out of the request, if it is there.
wire::Result<void> read(const json& request, const char* key, double& value) {
  const auto found = request.find(key);
  if (found == request.end()) return {};
  if (!found->is_number() || found->get<double>() < 0 || found->get<double>() > 1) {
    return wire::fail(ErrorCode::kInvalid, std::string(key) + " must be a number from 0 to 1");
  }
  value = found->get<double>();
  return {};
}

// Everything is checked before anything is changed.
struct Change {
  double loss, duplicate, reorder, corrupt;
  bool up;

  explicit Change(const net::Link& link)
      : loss(link.config().loss),
        duplicate(link.config().duplicate),
        reorder(link.config().reorder),
        corrupt(link.config().corrupt),
        up(link.is_up()) {}

  wire::Result<void> parse(const json& request) {
    for (const auto& [key, value] : {std::pair<const char*, double*>{"loss", &loss},
                                     {"duplicate", &duplicate},
                                     {"reorder", &reorder},
                                     {"corrupt", &corrupt}}) {
      if (auto done = read(request, key, *value); !done) return done;
    }
    const auto found = request.find("up");
    if (found == request.end()) return {};
    if (!found->is_boolean()) return wire::fail(ErrorCode::kInvalid, "up must be true or false");
    up = found->get<bool>();
    return {};
  }

  void apply(net::Link& link) const {
    link.set_faults(loss, duplicate, reorder, corrupt);
    link.set_up(up);
  }
};

}  // namespace

wire::Result<void> set_link(Datapath& datapath, const json& request) {
  const auto host = find_host(datapath, request.value("host", json()));
  if (!host) return wire::fail(ErrorCode::kInvalid, "host must name a host of the fabric");
  const json direction = request.value("direction", json("both"));
  const bool up = direction == "up" || direction == "both";
  const bool down = direction == "down" || direction == "both";
  if (!up && !down) return wire::fail(ErrorCode::kInvalid, "direction must be down, up or both");

  Change uplink(datapath.uplink(*host)), downlink(datapath.downlink(*host));
  for (Change* change : {&uplink, &downlink}) {
    if (auto done = change->parse(request); !done) return done;
  }
  if (up) uplink.apply(datapath.uplink(*host));
  if (down) downlink.apply(datapath.downlink(*host));
  return {};
}

}  // namespace cepheus::live
