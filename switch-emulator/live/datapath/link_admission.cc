#include "switch-emulator/live/datapath/link_admission.h"

namespace cepheus::live {

bool LinkAdmission::keep(Flight& flight) {
  wire::Frame& frame = flight.frame;
  const Hop& hop = flight.hop;
  if (frame.external == nullptr || frame.payload_len == 0) {
    frame.ref = wire::kNoBuffer;
    return true;
  }
  const bool lent =
      frame.ref == wire::kNoBuffer;  // the engine's own bytes are gone after this call
  if (lent && !pools_.keep_private(frame)) {
    ++drops_.no_slot;
    return false;
  }
  const bool has_share = !hop.is_own || own_slots_.has_space(hop.origin.host);
  if (hop.is_lossless && !hop.is_own) {
    slots_.add(frame.ref);
  } else if (!has_share || !slots_.try_add(frame.ref)) {
    if (lent) pools_.drop(frame.ref);
    ++drops_.share_used_up;
    return false;
  }
  if (hop.is_own) own_slots_.add(hop.origin.host);
  if (!lent) pools_.hold(frame.ref);
  return true;
}

bool LinkAdmission::put_on(Flight& flight) {
  const Hop& hop = flight.hop;
  if (!hop.is_lossless && !flights_.has_space(hop.origin.host)) {
    ++drops_.delay_line_full;
    return false;
  }
  if (!keep(flight)) return false;
  flights_.add(hop.origin.host);
  return true;
}

}  // namespace cepheus::live
