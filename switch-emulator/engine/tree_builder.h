// Which ports a registration makes paths of its group. A switch has one way to build trees; what
// data then does on a path is the group's behaviour.
#pragma once

#include <span>

#include "switch-emulator/engine/group_table.h"
#include "wire/mrp.h"

namespace cepheus::fabric {

struct Call;

// Why a registration can't be.
struct Refusal {
  wire::MrpReject reason = wire::MrpReject::kNone;
  wire::MrpMember member;  // whom it is about, if anyone

  explicit operator bool() const { return reason != wire::MrpReject::kNone; }
};

class TreeBuilder {
 public:
  virtual ~TreeBuilder() = default;
  // Makes paths of the group that lead to `members`, and puts those behind this switch on its
  // roster. A refusal leaves what was placed before it.
  virtual Refusal place_all(Call& call, GroupInstance& table,
                            std::span<const wire::MrpMember> members) = 0;
};

}  // namespace cepheus::fabric
