#include "switch-emulator/ports/access_port.h"

namespace cepheus::fabric {

std::string_view name(PortCounter c) {
  switch (c) {
    case PortCounter::kDropEgressFull:
      return "drop_egress_full";
    case PortCounter::kDropNoClient:
      return "drop_no_client";
    case PortCounter::kDropNoSlot:
      return "drop_no_slot";
    case PortCounter::kDropBadDescriptor:
      return "drop_bad_descriptor";
    case PortCounter::kDropRingCorrupt:
      return "drop_ring_corrupt";
    case PortCounter::kDoorbellAbused:
      return "doorbell_abused";
    case PortCounter::kDropMalformed:
      return "drop_malformed_frame";
    case PortCounter::kDropOversize:
      return "drop_oversize";
    case PortCounter::kDropTagged:
      return "drop_tagged";
    case PortCounter::kDropNoNeighbour:
      return "drop_no_neighbour";
    case PortCounter::kDropKernelFull:
      return "drop_kernel_full";
    case PortCounter::kDropLinkDown:
      return "drop_link_down";
    case PortCounter::kCopiedPayloads:
      return "copied_payloads";
    case PortCounter::kDoorbells:
      return "doorbells";
    case PortCounter::kArpAnswered:
      return "arp_answered";
    case PortCounter::kCount:
      break;
  }
  return "?";
}

}  // namespace cepheus::fabric
