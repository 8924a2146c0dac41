#include "nic-emulator/engine/nic_profile.h"

#include <algorithm>
#include <array>

namespace cepheus::rnic {
namespace {

// A requester sends all that is posted. Circular comparisons of PSNs hold up to 2^23 packets.
constexpr std::uint32_t kNoWindow = 1 << 22;

void set_window(NicConfig& nic, std::uint32_t packets, std::uint32_t ack_every) {
  nic.window_packets = nic.cautious_window = packets;
  nic.ack_every = ack_every;
}

constexpr std::array kProfiles{
    NicProfile{"ours", "none: the emulated NIC", "nic-emulator/", [](NicConfig&) {}},
    NicProfile{"rxe",
               "window of 129 packets, AckReq every 66th; NAK after an RNR NAK; stale PSN in ACKs "
               "of early duplicates; believes ACKs of unsent packets",
               "Linux 6.1, drivers/infiniband/sw/rxe, and captures of it",
               [](NicConfig& nic) {
                 nic.quirks.naks_after_rnr = true;
                 nic.quirks.acks_stale_psn = true;
                 nic.quirks.accepts_ack_of_unsent = true;
                 set_window(nic, 129, 66);
               }},
    NicProfile{"connectx", "no window of packets, AckReq every 256th",
               "NVIDIA, adaptive retransmission: roce_tx_window_en is 0 by default",
               [](NicConfig& nic) { set_window(nic, kNoWindow, 256); }},
    NicProfile{"irdma", "window of 1,024 packets", "Linux, irdma_modify_qp_roce: roce_cwnd 0x400",
               [](NicConfig& nic) { set_window(nic, 1024, 256); }},
};

}  // namespace

std::span<const NicProfile> nic_profiles() { return kProfiles; }

const NicProfile* find_nic_profile(std::string_view name) {
  const auto at = std::ranges::find(kProfiles, name, &NicProfile::name);
  return at == kProfiles.end() ? nullptr : &*at;
}

}  // namespace cepheus::rnic
