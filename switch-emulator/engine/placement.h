// Cepheus's trees: a path for each port that leads to members (paper III-C).
#pragma once

#include <optional>

#include "switch-emulator/engine/registration.h"
#include "switch-emulator/engine/routes.h"

namespace cepheus::fabric {

class Placement final : public TreeBuilder {
 public:
  Placement(const Routes& routes, GroupTable& groups) : routes_(routes), groups_(groups) {}

  Refusal place_all(Call& call, GroupInstance& table,
                    std::span<const wire::MrpMember> members) override;

 private:
  Refusal place(Call& call, GroupInstance& table, const wire::MrpMember& member, PortId& port);
  std::optional<PortId> choose_port(const Call& call, GroupInstance& table, Routes::ClassNo c);

  const Routes& routes_;
  GroupTable& groups_;
};

}  // namespace cepheus::fabric
