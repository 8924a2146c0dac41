// Cepheus's trees: a path for each port that leads to members (paper III-C).
#pragma once

#include <optional>
#include <span>

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/routes.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

// Why a registration is refused.
struct Refusal {
  wire::MrpReject reason = wire::MrpReject::kNone;
  wire::MrpMember member;  // the member in question, if any

  explicit operator bool() const { return reason != wire::MrpReject::kNone; }
};

class Placement {
 public:
  Placement(const Routes& routes, GroupTable& groups) : routes_(routes), groups_(groups) {}

  // Makes paths of the group that lead to `members`, and adds members behind this switch to its
  // roster. A refusal keeps paths that were added before it.
  Refusal place_all(Call& call, GroupInstance& table, std::span<const wire::MrpMember> members);

 private:
  Refusal place(Call& call, GroupInstance& table, const wire::MrpMember& member, PortId& port);
  std::optional<PortId> choose_port(const Call& call, GroupInstance& table, Routes::ClassNo c);

  const Routes& routes_;
  GroupTable& groups_;
};

}  // namespace cepheus::fabric
