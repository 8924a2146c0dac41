// INSTALLs and REMOVEs of a sender group on their way from a switch to its receivers: a message for
// each branch (docs/protocol.md, "Sender groups").
//
// A message carries a share of 1, and each switch divides the share among its messages. So the
// sender knows when all receivers have answered.
#pragma once

#include <cstdint>
#include <vector>

#include "switch-emulator/engine/mcrdma/sender_answers.h"

namespace cepheus::fabric {

class BranchMessages {
 public:
  BranchMessages(const SwitchConfig& config, const Routes& routes, SenderAnswers& answers)
      : config_(config), routes_(routes), answers_(answers) {}

  // A branch of several receivers gets a message for the next switch that branches. A host of
  // another branch gets its own. `unless_as_before`: old branches; unchanged ones get no message.
  void send(Call& call, const SenderGroup& group, wire::MrpType type, std::uint64_t share,
            const std::vector<Branch>* unless_as_before = nullptr);

 private:
  const SwitchConfig& config_;
  const Routes& routes_;
  SenderAnswers& answers_;
};

}  // namespace cepheus::fabric
