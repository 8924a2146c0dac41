// The hosts of a communicator's ranks, and the rank of each host that is the member of its group.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cepheus::coll {

// A rank's identity. Plain bytes: all ranks run the same build.
struct Identity {
  std::uint64_t host;         // equal: the same host
  std::int32_t can_lead;      // it has a NIC
  std::uint32_t settings;     // fingerprint of the parameters that all ranks must share
  char reason[152];           // if it can't lead, why
  char gpu_runtime[32] = "";  // that it has loaded, and nobody can ask about memory; "": none
};

struct Placement {
  enum class Shape : std::uint8_t {
    kFlat,     // each rank has a host of its own
    kHosts,    // some share one
    kOneHost,  // all do
    kNone      // multicast is impossible, see `reason`
  };
  Shape shape = Shape::kNone;
  std::string reason;
  // Once placed, see forget_ranks():
  std::vector<std::vector<int>> hosts;  // ranks of each; the first is the member
  std::vector<int> host_of;             // by rank: index of its host

  // In the order of ranks. The leader of a host is its first rank that can be one.
  static Placement of(const std::vector<Identity>& ranks);

  std::vector<int> leaders() const;
  bool may_multicast() const { return shape == Shape::kFlat || shape == Shape::kHosts; }
  // Each rank of each communicator has a placement, so what is read no more goes: 60 bytes a rank.
  void forget_ranks();
};

}  // namespace cepheus::coll
