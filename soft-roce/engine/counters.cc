#include "soft-roce/engine/counters.h"

namespace cepheus::rnic {

std::string_view name(Counter c) {
  switch (c) {
    case Counter::kTxPackets:
      return "tx_packets";
    case Counter::kTxBytes:
      return "tx_bytes";
    case Counter::kTxRetransmitted:
      return "tx_retransmitted";
    case Counter::kRxPackets:
      return "rx_packets";
    case Counter::kRxBytes:
      return "rx_bytes";
    case Counter::kRxDropMalformed:
      return "rx_drop_malformed";
    case Counter::kRxDropIcrc:
      return "rx_drop_icrc";
    case Counter::kRxDropNotMine:
      return "rx_drop_not_mine";
    case Counter::kRxDropUnknownQp:
      return "rx_drop_unknown_qp";
    case Counter::kRxDropQpState:
      return "rx_drop_qp_state";
    case Counter::kRxDropWrongSource:
      return "rx_drop_wrong_source";
    case Counter::kRxDropPkey:
      return "rx_drop_pkey";
    case Counter::kRxDropQkey:
      return "rx_drop_qkey";
    case Counter::kRxDropNoReceive:
      return "rx_drop_no_receive";
    case Counter::kRxDropLength:
      return "rx_drop_length";
    case Counter::kRxDropAccess:
      return "rx_drop_access";
    case Counter::kRxDropIncomplete:
      return "rx_drop_incomplete";
    case Counter::kRxDropUnsupported:
      return "rx_drop_unsupported";
    case Counter::kRxDropStaleAck:
      return "rx_drop_stale_ack";
    case Counter::kRxDropStaleRequest:
      return "rx_drop_stale_request";
    case Counter::kRxDuplicate:
      return "rx_duplicate";
    case Counter::kRxOutOfSequence:
      return "rx_out_of_sequence";
    case Counter::kTxReadResponse:
      return "tx_read_response";
    case Counter::kTxAtomicAck:
      return "tx_atomic_ack";
    case Counter::kTxAck:
      return "tx_ack";
    case Counter::kTxNakSequence:
      return "tx_nak_sequence";
    case Counter::kTxNakFatal:
      return "tx_nak_fatal";
    case Counter::kTxRnrNak:
      return "tx_rnr_nak";
    case Counter::kRxReadResponse:
      return "rx_read_response";
    case Counter::kRxAtomicAck:
      return "rx_atomic_ack";
    case Counter::kRxMissingResult:
      return "rx_missing_result";
    case Counter::kRxAck:
      return "rx_ack";
    case Counter::kRxNakSequence:
      return "rx_nak_sequence";
    case Counter::kRxNakFatal:
      return "rx_nak_fatal";
    case Counter::kRxRnrNak:
      return "rx_rnr_nak";
    case Counter::kRxCnp:
      return "rx_cnp";
    case Counter::kAckTimeouts:
      return "ack_timeouts";
    case Counter::kRetriesExceeded:
      return "retries_exceeded";
    case Counter::kRnrRetriesExceeded:
      return "rnr_retries_exceeded";
    case Counter::kCount:
      break;
  }
  return "unknown";
}

}  // namespace cepheus::rnic
