// One host of a fabric that attacks on request, as fast as a core lets it.
//
//     hostile_host SOCKET HOST VICTIM FRIEND [USER]
//
// Attaches to the fabric at SOCKET as HOST, as the user with that number. Each line on standard
// input names its attack from now on (kAttacks, below, or "rest"); it prints "doing NAME" when it
// starts. VICTIM is the address of a host of another user's group, and two more of its hosts follow
// it. FRIEND is an accomplice's. Ends at the end of its input.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "tests/hostile/attacks.h"
#include "tests/hostile/floods.h"

namespace cepheus::hostile {
namespace {

using wire::Opcode;

constexpr std::size_t kSmall = 16;
constexpr std::uint16_t kDiscard = 9;  // RFC 863

struct NamedAttack {
  const char* name;
  std::unique_ptr<Attack> (*start)(const Scenario& scenario);
};

template <Opcode kOpcode, std::size_t kBytes>
Made at_victim(const Scenario& scenario) {
  return flood_with_roce(scenario, scenario.victim, kOpcode, kBytes);
}

constexpr NamedAttack kAttacks[] = {
    {"cpu-load", load_a_core},
    {"unicast", at_victim<Opcode::kRcSendOnly, kSmall>},
    {"unicast-4k", at_victim<Opcode::kRcSendOnly, kLarge>},
    {"ack", at_victim<Opcode::kRcAcknowledge, 0>},
    {"cnp", at_victim<Opcode::kCnp, kSmall>},
    {"at-friend",
     [](const Scenario& p) { return flood_with_roce(p, p.friendly, Opcode::kRcSendOnly, kLarge); }},
    {"datagrams-4k",
     [](const Scenario& p) { return flood_with_datagrams(p, p.victim, kDiscard, kLarge); }},
    {"spoofed", flood_in_anothers_name},
    {"unknown-group", flood_unknown_group},
    {"arp", flood_with_arp},
    {"mrp-garbage",
     [](const Scenario& p) {
       return flood_with_datagrams(p, kNoGroup, wire::kDefaultMrpUdpPort, 200);
     }},
    {"register", flood_with_new_groups},
    {"register-again", flood_with_repeats},
    {"install-again", flood_with_installs},
    {"remove-again", flood_with_removes},
    {"probe", flood_with_probes},
    {"own-group", flood_own_group},
    {"own-reduction", flood_own_reduction},
    {"reduction-nak", request_results_by_nak},
    {"reduction-rnr", request_results_by_rnr},
    {"reduction-again", repeat_a_contribution},
    {"reduction-pair", stream_by_a_reduction},
    {"reduction-pair-nak", stream_results_twice},
    {"descriptors", send_nonsense},
    {"indices", corrupt_indices},
    {"words", corrupt_words},
    {"spy", look_for_others_bytes},
    {"doorbell", ring_for_nothing},
    {"control", request_without_end},
    {"connect", connect_silently},
};

bool has_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

int run_attacks(const Scenario& scenario) {
  std::string name;
  while (std::getline(std::cin, name)) {
    const bool rests = name == "rest";
    const auto* found = std::find_if(std::begin(kAttacks), std::end(kAttacks),
                                     [&](const NamedAttack& each) { return each.name == name; });
    if (found == std::end(kAttacks) && !rests) {
      std::fprintf(stderr, "hostile_host: there is no attack '%s'\n", name.c_str());
      return 2;
    }
    const auto attack = rests ? nullptr : found->start(scenario);
    std::printf("doing %s\n", name.c_str());
    std::fflush(stdout);
    while (!rests && !has_input()) attack->step();
  }
  return 0;
}

}  // namespace
}  // namespace cepheus::hostile

int main(int argc, char** argv) {
  using cepheus::wire::Ipv4;
  const bool is_usage = argc == 5 || argc == 6;
  const auto address = [&](int n) { return is_usage ? Ipv4::parse(argv[n]) : std::nullopt; };
  const auto victim = address(3), friendly = address(4);
  if (!victim || !friendly) {
    std::fprintf(stderr, "usage: hostile_host SOCKET HOST VICTIM FRIEND [USER]\n");
    return 2;
  }
  if (argc == 6 && setuid(static_cast<uid_t>(std::strtoul(argv[5], nullptr, 10))) != 0) {
    std::perror("hostile_host: can't become that user");
    return 1;
  }
  try {
    return cepheus::hostile::run_attacks({argv[1], argv[2], *victim, *friendly});
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "hostile_host: %s\n", error.what());
    return 1;
  }
}
