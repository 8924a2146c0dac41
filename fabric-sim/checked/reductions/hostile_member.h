// A hostile member of a reduction group. Its device and its programs break rules of the protocol, all
// under its own address and by its own port.
//
// Its group may end, and its own results may be wrong. All other groups must go on, and the group's
// honest members must get right results, or learn that the group has ended.
#pragma once

#include <deque>
#include <vector>

#include "fabric-sim/checked/reductions/reduction_ledger.h"
#include "fabric-sim/core/network.h"
#include "fabric-sim/core/random.h"

namespace cepheus::sim {

// What it does, as bits of IncidentPlan::attacks.
enum class Attack : std::uint8_t {
  kGarbage,        // its contributions have random bytes
  kOtherShapes,    // ... another operation, type or length
  kOtherEpochs,    // ... another epoch
  kNoAnswers,      // it acknowledges no result
  kAhead,          // it contributes one unit after the other, without credit
  kContributions,  // a flood of contributions near its window and far from it
  kFeedback,       // a flood of ACKs, NAKs, RNR NAKs and congestion notifications
  kRegistration,   // a flood of registration messages
};
constexpr std::uint32_t bit(Attack attack) { return 1u << static_cast<unsigned>(attack); }
inline constexpr std::uint32_t kAttacks = 8;

class HostileMember final : public Actor, public FrameTamper {
 public:
  // `member`: its number in the ledger's group.
  HostileMember(Simulator& simulator, Network& network, const ScenarioPlan& plan,
                const IncidentPlan& incident, ReductionLedger& ledger, std::size_t member);

  void on_event(Instant now, std::uint64_t what) override;
  bool tamper(Instant now, wire::Frame& frame, std::span<std::uint8_t> buffer) override;

 private:
  bool does(Attack attack) const { return (incident_.attacks & bit(attack)) != 0; }
  void begin(Instant now);
  bool is_over(Instant now) const { return now > Instant{incident_.at + incident_.lasts}; }
  void flood(Instant now);
  void alter(wire::RoceHeaders& headers);
  wire::RoceHeaders headers_to_group(wire::Opcode opcode, std::uint64_t unit) const;
  void send_contribution(std::uint64_t unit);
  void send_feedback();
  void send_registration();

  Simulator& simulator_;
  Host& host_;
  const ScenarioPlan& plan_;
  const IncidentPlan& incident_;
  ReductionLedger& ledger_;
  const std::size_t member_;
  Random random_;
  bool has_begun_ = false;
  // Of the newest contribution that its NIC has sent.
  std::uint64_t unit_ = 0;
  wire::ReductionImm imm_;
  std::uint16_t bytes_ = 0;
  std::uint64_t ahead_ = 0;                         // the next one of Attack::kAhead
  std::deque<std::vector<std::uint8_t>> payloads_;  // of frames that may still be under way
};

}  // namespace cepheus::sim
