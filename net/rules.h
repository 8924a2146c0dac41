// The protocol's rules that a switch can be told to break, and its policies, by name.
//
// All on is the protocol. The mutation check of the simulator turns each safety rule off and
// expects some seed to fail; the list rule -> first failing seed stands in docs/protocol.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace cepheus::net {

enum class SourceChange : std::uint8_t { kRebase, kHostSync };
// Cepheus; Gleam; Gleam's appendix C.
enum class WriteMode : std::uint8_t { kRegions, kPerRequest, kSameKey, kNone };
enum class CnpPolicy : std::uint8_t { kAll, kWorstPath, kTmcf };  // MC-RDMA; Cepheus III-D; TMCF

const char* to_string(WriteMode);  // as in a topology file

struct Rules {
  // Safety and liveness (docs/protocol.md names the section of each).
  bool nak_ordering = true;  // a NAK waits until every path has caught up with what it acknowledges
  bool lost_aggregate_answer = true;  // a retransmission nobody needs is answered with ACK(agg)
  bool rnr_ordering = true;           // RNR NAKs wait as NAKs do
  bool nak_once = true;  // a source is asked for a packet once: late NAKs would spend its retries
  bool gate = true;      // a new turn waits until all paths have acknowledged the old one
  bool old_duplicate_answer =
      true;                    // packets of earlier turns are acknowledged, in the host's numbering
  bool psn_from_state = true;  // a newcomer's next send PSN comes from T, not from its first packet
  bool port_binding = true;    // a host port accepts its own host's source address only
  bool eviction_counts = true;  // an evicted path is not waited for any more
  bool loss_ends = true;        // nobody acknowledges for the dead of a group that survives no loss
  bool lagging_is_silence = true;  // who was not asked again and again does not lag
  bool dark_trunks = true;         // a trunk that nothing comes from is down
  bool trunk_withdrawals = true;   // nothing is sent to a neighbour that has no way on
  bool every_drop_counted = true;  // no frame is lost without a word
  bool named_turns = true;         // data and feedback between switches carry (source IP, base)
  bool write_bounds = true;        // a leaf refuses WRITEs beyond a member's region
  bool newest_publication = true;  // regions that were published before do not come back
  bool announced_by_psn = true;    // a WRITE goes where its own announcement says, by PSN
  bool pause_headroom = true;      // room for what is on its way when a neighbour is paused
  // ... of sender groups.
  bool sender_ack_minimum = true;  // a sender hears what all receivers have acknowledged
  bool sender_nak_minimum = true;  // ... in NAKs, too
  bool sender_unknown = true;      // ... nothing, while of some receiver nothing is known
  bool sender_rewritten = true;    // no host gets what is for a virtual queue pair
  // ... where switches leave PSNs to hosts.
  bool newcomer_nak_once = true;  // a newcomer is asked once for a first packet that was lost
  // For speed.
  bool handover_rnr = true;  // a newcomer waits for a last source that has not moved its PSNs on
  bool recheck_held_nak = true;
  bool several_naks = true;  // NAKs behind the smallest that waits are kept; off, as in the papers
  bool sender_nak_once = true;   // a sender is asked for a packet once, until it comes again
  bool sender_ask_again = true;  // ... and again, when feedback is overdue
  bool fewest_groups = true;  // a new branch takes the port that the fewest groups use, or by hash
  // Policies.
  SourceChange source_change = SourceChange::kRebase;
  CnpPolicy cnp_policy = CnpPolicy::kAll;
  WriteMode write_mode = WriteMode::kRegions;

  bool operator==(const Rules&) const = default;
};

// Sets the rule called `name` ("nak_ordering"); false if there is none.
bool set_rule(Rules& rules, std::string_view name, bool on);
// The safety rules, in the order above; a null pointer ends the list.
extern const char* const kSafetyRules[];

}  // namespace cepheus::net
