#include "fabric-sim/checked/nic_plan.h"

#include <array>

#include "fabric-sim/core/random.h"

namespace cepheus::sim {
namespace {

constexpr std::uint64_t kNicStream = 0x4'1C0F'07E5;  // the rest of the seed's plan stays as it is

// An ACK of every 64th packet or so, and of a message's last.
void ask_seldom(rnic::NicConfig& nic, std::uint32_t ack_every) {
  nic.window_packets = 128;
  nic.ack_every = ack_every;
}

using Make = void (*)(rnic::NicConfig& nic);
constexpr std::array<Make, 7> kMakes{
    [](rnic::NicConfig&) {},
    [](rnic::NicConfig& nic) { nic.manners.acks_every_packet = true; },
    [](rnic::NicConfig& nic) { ask_seldom(nic, 64); },
    [](rnic::NicConfig& nic) { nic.manners.naks_each_packet_of_gap = true; },
    [](rnic::NicConfig& nic) { nic.manners.naks_after_rnr = true; },
    [](rnic::NicConfig& nic) { nic.manners.acks_duplicates_if_asked = true; },
    [](rnic::NicConfig& nic) {  // rdma_rxe
      nic.manners.naks_after_rnr = true;
      nic.manners.acks_stale_psn = true;
      nic.manners.believes_ack_of_unsent = true;
      ask_seldom(nic, 66);
    },
};

}  // namespace

void use_other_nics(ScenarioPlan& plan) {
  Random random(plan.seed ^ kNicStream);
  for (rnic::NicConfig& nic : plan.nics) kMakes[random.below(kMakes.size())](nic);
}

}  // namespace cepheus::sim
