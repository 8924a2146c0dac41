#include "nic-emulator/engine/nic_profile.h"

#include <algorithm>
#include <array>

namespace cepheus::rnic {
namespace {

using namespace std::chrono_literals;

// A requester sends all that is posted. Circular comparisons of PSNs hold up to 2^23 packets.
constexpr std::uint32_t kNoWindow = 1 << 22;

// None of the emulated NIC's cautions after a loss (docs/protocol.md, "What the emulated NIC adds").
void set_window(NicConfig& nic, std::uint32_t packets, std::uint32_t ack_every) {
  nic.window_packets = nic.cautious_window = packets;
  nic.ack_every = ack_every;
  nic.manners.lacks_caution = true;
}

// Random within 1 to 4 times the code; the range doubles with each time-out. With code 14 it ends at
// 4.3 s.
void adapt_timeout(NicConfig& nic) {
  nic.manners.varies_timeout = true;
  nic.timeout_doublings = 6;
}

constexpr const char* kLinuxRxe = "Linux 6.1, drivers/infiniband/sw/rxe, and captures of it";
constexpr const char* kNvidiaAdp =
    "NVIDIA, adaptive retransmission (roce_tx_window_en, roce_adp_retrans_en); Linux commit "
    "d7fab916374c (roce_slow_restart_cnps)";
constexpr const char* kLinuxIrdma =
    "Linux, drivers/infiniband/hw/irdma, irdma_modify_qp_roce and irdma_query_qp";
constexpr const char* kSpecification = "InfiniBand, volume 1";

using enum NicProfile::Kind;
constexpr std::array kProfiles{
    NicProfile{"ours", "none: the emulated NIC", "nic-emulator/", kMake, [](NicConfig&) {}},
    NicProfile{"rxe",
               "window of 129 packets, AckReq every 66th; NAK after an RNR NAK; stale PSN in ACKs "
               "of early duplicates; believes ACKs of unsent packets",
               kLinuxRxe, kMake,
               [](NicConfig& nic) {
                 nic.manners.naks_after_rnr = true;
                 nic.manners.acks_stale_psn = true;
                 nic.manners.accepts_ack_of_unsent = true;
                 set_window(nic, 129, 66);
               }},
    NicProfile{"connectx",
               "no window of packets, AckReq every 256th; time-outs 1 to 4 times the code, ranges "
               "double up to 4 s; a CNP after each loss",
               kNvidiaAdp, kMake,
               [](NicConfig& nic) {
                 set_window(nic, kNoWindow, 256);
                 adapt_timeout(nic);
                 nic.manners.sends_cnp_after_loss = true;
               }},
    NicProfile{
        "irdma",
        "window of 1,024 packets; ignores the time-out code; no way back from RESET; queries "
        "return the PSNs of RTR and RTS",
        kLinuxIrdma, kMake,
        [](NicConfig& nic) {
          set_window(nic, 1024, 256);
          nic.manners.ignores_timeout_code = true;
          nic.manners.is_used_once = true;
          nic.manners.psn_query_stands_still = true;
        }},
    // Its firmware's window, time-outs and NAKs are described nowhere.
    NicProfile{"bnxt", "time-outs as connectx; all else is unknown, and as ours",
               "InfiniBand, volume 1, 9.7.6.1.3; nothing of Broadcom's own", kMake, adapt_timeout},

    // One manner each.
    NicProfile{"eager-acks", "acknowledges every packet", "InfiniBand, volume 1, 9.7.5.1.2",
               kManner, [](NicConfig& nic) { nic.manners.acks_every_packet = true; }},
    NicProfile{"rare-acks", "window of 128 packets, AckReq every 64th",
               "InfiniBand, volume 1, 9.7.3", kManner,
               [](NicConfig& nic) {
                 nic.window_packets = 128;
                 nic.ack_every = 64;
               }},
    NicProfile{"eager-naks", "a NAK for every packet behind a gap", kSpecification, kManner,
               [](NicConfig& nic) { nic.manners.naks_each_packet_of_gap = true; }},
    NicProfile{"naks-after-rnr", "a sequence NAK behind an RNR NAK", kLinuxRxe, kManner,
               [](NicConfig& nic) { nic.manners.naks_after_rnr = true; }},
    NicProfile{"silent-duplicates", "acknowledges duplicates only on AckReq", kSpecification,
               kManner, [](NicConfig& nic) { nic.manners.acks_duplicates_if_requested = true; }},
    NicProfile{"late-naks", "a NAK leaves 1 us to 1 ms after the gap, one at a time",
               "an assumption: devices name a longer one (local_ca_ack_delay of ibv_query_device)",
               kManner, [](NicConfig& nic) { nic.manners.longest_nak_wait = 1ms; }},
    NicProfile{"selective-repeat", "keeps 64 packets behind a gap",
               "NVIDIA, selective_repeat_forced_en", kManner,
               [](NicConfig& nic) { nic.manners.keeps_behind_gap = 64; }},
    NicProfile{"msn-completion", "an ACK completes no more messages than its MSN counts",
               "InfiniBand, volume 1, 9.7.7: a requester may use it", kManner,
               [](NicConfig& nic) { nic.manners.completes_by_msn = true; }},
    NicProfile{"fixed-timeouts",
               "time-outs between 1 and 4 times the code, never longer: it gives up on a member "
               "that stalls for longer than its retries",
               "InfiniBand, volume 1, 9.7.6.1.3", kFatal,
               [](NicConfig& nic) {
                 nic.manners.varies_timeout = true;
                 nic.timeout_doublings = 0;
               }},
    NicProfile{"finite-rnr",
               "gives up after 7 RNR NAKs in a row; a group's first receive may be later than that",
               kSpecification, kFatal,
               [](NicConfig& nic) { nic.manners.limits_rnr_retries = true; }},
};

}  // namespace

std::span<const NicProfile> nic_profiles() { return kProfiles; }

const NicProfile* find_nic_profile(std::string_view name) {
  const auto at = std::ranges::find(kProfiles, name, &NicProfile::name);
  return at == kProfiles.end() ? nullptr : &*at;
}

wire::Result<const NicProfile*> require_nic_profile(std::string_view name) {
  if (name.empty()) return &kProfiles.front();
  if (const NicProfile* const found = find_nic_profile(name)) return found;
  std::string text = "no make of NIC is named '" + std::string(name) + "': use one of";
  for (const NicProfile& profile : kProfiles) text += " " + std::string(profile.name);
  return wire::invalid(text);
}

}  // namespace cepheus::rnic
