// Where members are: the ports that a registration makes paths of its group (paper III-C).
#pragma once

#include <optional>
#include <span>

#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/routes.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

struct Call;

// Why a registration can't be.
struct Refusal {
  wire::MrpReject reason = wire::MrpReject::kNone;
  wire::MrpMember member;  // whom it is about, if anyone

  explicit operator bool() const { return reason != wire::MrpReject::kNone; }
};

class Placement {
 public:
  Placement(const Routes& routes, GroupTable& groups) : routes_(routes), groups_(groups) {}

  // Makes the ports towards `members` paths of the group, and puts those behind this switch on its
  // roster. A refusal leaves what was placed before it.
  Refusal place_all(Call& call, GroupInstance& table, std::span<const wire::MrpMember> members);

 private:
  Refusal place(Call& call, GroupInstance& table, const wire::MrpMember& member, PortId& port);
  std::optional<PortId> choose_port(const Call& call, GroupInstance& table, Routes::ClassNo c);

  const Routes& routes_;
  GroupTable& groups_;
};

}  // namespace cepheus::fabric
