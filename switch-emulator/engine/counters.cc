#include "switch-emulator/engine/counters.h"

namespace cepheus::fabric {

std::string_view name(Counter counter) {
  switch (counter) {
    case Counter::kRxPackets:
      return "rx_packets";
    case Counter::kRxBytes:
      return "rx_bytes";
    case Counter::kTxPackets:
      return "tx_packets";
    case Counter::kTxBytes:
      return "tx_bytes";
    case Counter::kUnicastForwarded:
      return "unicast_forwarded";
    case Counter::kDataCopies:
      return "data_copies";
    case Counter::kFeedbackAbsorbed:
      return "feedback_absorbed";
    case Counter::kFeedbackToSource:
      return "feedback_to_source";
    case Counter::kMrpRegister:
      return "mrp_register";
    case Counter::kMrpConfirm:
      return "mrp_confirm";
    case Counter::kMrpReject:
      return "mrp_reject";
    case Counter::kMrpActivate:
      return "mrp_activate";
    case Counter::kMrpUnregister:
      return "mrp_unregister";
    case Counter::kMrpRefresh:
      return "mrp_refresh";
    case Counter::kMrpQuery:
      return "mrp_query";
    case Counter::kMrpReport:
      return "mrp_report";
    case Counter::kMrpEvict:
      return "mrp_evict";
    case Counter::kPathsEvicted:
      return "paths_evicted";
    case Counter::kTurns:
      return "turns";
    case Counter::kGateHeld:
      return "gate_held";
    case Counter::kHandoverRnr:
      return "handover_rnr";
    case Counter::kGateRnr:
      return "gate_rnr";
    case Counter::kLostAggregateAnswered:
      return "lost_aggregate_answered";
    case Counter::kOldDuplicateAnswered:
      return "old_duplicate_answered";
    case Counter::kCnpToSource:
      return "cnp_to_source";
    case Counter::kStaleTableAged:
      return "stale_table_aged";
    case Counter::kDropMalformed:
      return "drop_malformed";
    case Counter::kDropSpoofedSource:
      return "drop_spoofed_source";
    case Counter::kDropNoRoute:
      return "drop_no_route";
    case Counter::kDropTooLong:
      return "drop_too_long";
    case Counter::kDropUnknownGroup:
      return "drop_unknown_group";
    case Counter::kDropNotActive:
      return "drop_not_active";
    case Counter::kDropTombstone:
      return "drop_tombstone";
    case Counter::kDropNotMember:
      return "drop_not_member";
    case Counter::kDropNotMulticastable:
      return "drop_not_multicastable";
    case Counter::kDropDataWindow:
      return "drop_data_window";
    case Counter::kDropConflict:
      return "drop_conflict";
    case Counter::kDropFeedbackNoSource:
      return "drop_feedback_no_source";
    case Counter::kDropFeedbackStale:
      return "drop_feedback_stale";
    case Counter::kDropFeedbackOtherTurn:
      return "drop_feedback_other_turn";
    case Counter::kDropMrpStale:
      return "drop_mrp_stale";
    case Counter::kDropMrpForeign:
      return "drop_mrp_foreign";
    case Counter::kDropCorrupt:
      return "drop_corrupt";
    case Counter::kDropTtl:
      return "drop_ttl";
    case Counter::kDropGateAnswered:
      return "drop_gate_answered";
    case Counter::kDropOther:
      return "drop_other";
    case Counter::kCount:
      break;
  }
  return "unknown";
}

}  // namespace cepheus::fabric
