// What each switch of a topology has to know of its lossless links: its buffer, and the headroom of
// each port.
#pragma once

#include <string>
#include <vector>

#include "net/shared_buffer.h"
#include "net/topology.h"

namespace cepheus::net {

struct BufferPlan {
  BufferConfig config;                 // with its bytes
  std::vector<wire::Bytes> headroom;   // by port; 0: its link is lossy
  std::vector<wire::Duration> repeat;  // by port: of a pause's word, while it lasts
  wire::Bytes least = 0;               // what headrooms, reserves and a few frames take

  bool has_lossless_ports() const { return least != 0; }
  // Whether a queue stands before the switch's link `out`: a frame that came by a lossless link may
  // have to wait before any other.
  bool needs_queue(const LinkConfig& out) const {
    return !out.rate.is_unlimited() && (out.has_queue() || has_lossless_ports());
  }
};

// By switch, in the topology's order and its ports' (Topology::plan). Empty if no link is lossless.
std::vector<BufferPlan> buffer_plans(const Topology& topology);

}  // namespace cepheus::net
