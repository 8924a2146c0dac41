// A switch's settings for lossless links: its buffer, and the headroom of each port.
#pragma once

#include <vector>

#include "net/shared_buffer.h"
#include "net/topology.h"

namespace cepheus::net {

struct BufferPlan {
  BufferConfig config;                 // with its bytes
  std::vector<wire::Bytes> headroom;   // by port; 0: its link is lossy
  std::vector<wire::Duration> repeat;  // by port: time between repeats of a pause
  std::size_t slots = 0;  // payload slots that frames of one port may hold before its neighbour is
                          // paused; 0: any number
  wire::Bytes least = 0;  // bytes of all headrooms, all reserves and a few frames

  bool has_lossless_ports() const { return least != 0; }
  // Whether the switch needs a queue before its link `out`: a frame from a lossless link may have
  // to wait before every other link.
  bool needs_queue(const LinkConfig& out) const {
    return !out.rate.is_unlimited() && (out.has_queue() || has_lossless_ports());
  }
};

// By switch, in the order of the topology and of its ports (Topology::plan). Empty if no link is
// lossless.
std::vector<BufferPlan> buffer_plans(const Topology& topology);

}  // namespace cepheus::net
