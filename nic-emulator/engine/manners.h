// What NICs may do differently on the wire and towards their program (docs/protocol.md, "Where NICs
// differ on the wire"). The defaults are the emulated NIC's. nic_profile.h has the makes.
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::rnic {

struct Manners {
  // --- As responder.
  bool acks_every_packet = false;             // also packets without AckReq
  bool acks_duplicates_if_requested = false;  // only duplicates with AckReq
  bool naks_each_packet_of_gap = false;       // not only the first behind it
  bool naks_after_rnr = false;                // on a packet behind one without a receive
  bool acks_stale_psn = false;                // on a duplicate before any new request
  bool sends_cnp_after_loss = false;          // for each gap, without a mark
  // Selective repeat: this many packets behind a gap are kept, and executed once it is filled.
  std::uint32_t keeps_behind_gap = 0;
  // A sequence NAK leaves after a random time between 1 us and this one. 0: at once.
  wire::Duration longest_nak_wait{0};
  // --- As requester.
  bool accepts_ack_of_unsent = false;  // an ACK of an unsent packet acknowledges all sent ones
  bool completes_by_msn = false;       // an ACK completes no more messages than its MSN counts
  bool varies_timeout = false;         // each time-out is between 1 and 4 times its value
  bool ignores_timeout_code = false;   // NicConfig::own_timeout_code counts
  bool limits_rnr_retries = false;     // 7 is a number like others, not "for ever"
  // Not one packet alone after an RNR wait or a time-out, and no more AckReq after a loss.
  bool lacks_caution = false;
  // --- Towards the program.
  bool is_used_once = false;            // RESET is ERR: no way back to INIT
  bool psn_query_stands_still = false;  // returns the PSNs of RTR and RTS

  bool operator==(const Manners&) const = default;

  // Hosts can set their PSNs (controller/psn_sync.h).
  bool can_set_psns() const { return !is_used_once && !psn_query_stands_still; }
};

}  // namespace cepheus::rnic
