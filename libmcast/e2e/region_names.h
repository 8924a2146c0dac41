// Regions of sender groups as tests carry them from member to member.
#pragma once

#include <mcast/mcast.h>
#include <mcast/senders.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace cepheus::mcast::e2e {

inline nlohmann::json json_of(const std::vector<mcast_region_t>& regions) {
  nlohmann::json list = nlohmann::json::array();
  for (const mcast_region_t& r : regions) {
    list.push_back({r.target.ipv4, r.target.rkey, r.target.address, r.target.length, r.number});
  }
  return list;
}

inline std::vector<mcast_region_t> regions_of(const nlohmann::json& list) {
  std::vector<mcast_region_t> regions;
  for (const nlohmann::json& r : list) {
    regions.push_back({{r.at(0), r.at(1), r.at(2), r.at(3)}, r.at(4), {}});
  }
  return regions;
}

}  // namespace cepheus::mcast::e2e
