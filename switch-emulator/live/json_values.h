// Values of the status that JSON knows as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "wire/types.h"

namespace cepheus::live {

// Unset, if it is no address.
inline wire::Ipv4 address_from_json(const nlohmann::json& in) {
  return wire::Ipv4::parse(in.get_ref<const std::string&>()).value_or(wire::Ipv4());
}

}  // namespace cepheus::live
