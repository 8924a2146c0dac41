// Topologies that a few numbers describe: a star, a leaf-spine fabric, a fat-tree.
#pragma once

#include <string_view>

#include "net/topology.h"

namespace cepheus::net {

// Hosts h0.. leaf by leaf, at leaf0..; every leaf has a trunk to every spine0...
Topology leaf_spine(std::size_t leaves, std::size_t spines, std::size_t hosts_per_leaf,
                    const LinkConfig& link = {});

// k-ary fat-tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008): k pods of k/2 edge and k/2
// aggregation switches, (k/2)^2 core switches, k/2 hosts an edge switch, k^3/4 in all; hosts pod by
// pod. `pods`: fewer than k of them. Precondition: k is even and at least 2.
Topology fat_tree(std::size_t k, const LinkConfig& link = {}, std::size_t pods = 0);

// "star:8", "leaf-spine:4x2x4" (leaves, spines, hosts a leaf), "fat-tree:4". Other text, or more
// than 65536 hosts, gives kInvalid with the forms to write.
wire::Result<Topology> from_shape(std::string_view text);

}  // namespace cepheus::net
