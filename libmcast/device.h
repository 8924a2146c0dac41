// One port of a verbs device that can serve: active, Ethernet, with a RoCE v2 IPv4 GID.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libmcast/failure.h"
#include "libmcast/gid_choice.h"
#include "libmcast/nic_timing.h"
#include "wire/times.h"
#include "wire/types.h"

namespace cepheus::mcast {

// Owners of libibverbs' objects.
struct VerbsDeleter {
  void operator()(ibv_context* p) const { ibv_close_device(p); }
  void operator()(ibv_pd* p) const { ibv_dealloc_pd(p); }
  void operator()(ibv_comp_channel* p) const { ibv_destroy_comp_channel(p); }
  void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  void operator()(ibv_qp* p) const { ibv_destroy_qp(p); }
};

struct MrDeleter {
  std::atomic<std::uint64_t>* registered_bytes =
      nullptr;  // of the device, which outlives the region

  void operator()(ibv_mr* p) const {
    registered_bytes->fetch_sub(p->length, std::memory_order_relaxed);
    ibv_dereg_mr(p);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, VerbsDeleter>;
using PdHandle = std::unique_ptr<ibv_pd, VerbsDeleter>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, VerbsDeleter>;
using CqHandle = std::unique_ptr<ibv_cq, VerbsDeleter>;
using QpHandle = std::unique_ptr<ibv_qp, VerbsDeleter>;
using MrHandle = std::unique_ptr<ibv_mr, MrDeleter>;

// Marks of a group's packets, by which networks choose queues (InfiniBand specification, A17.4).
struct PacketMarks {
  std::uint8_t traffic_class = 106;  // IPv4 TOS: the DSCP is 26. UCX has the same default.
  std::uint8_t service_level = 0;    // the priority of a VLAN tag
  std::uint32_t flow_label = 0;      // 20 bits, from which NICs derive a UDP source port; 0: none
};

struct DeviceOptions {
  std::string name = {};       // empty: of the usable devices the nearest to the process's cores
  int gid_index = -1;          // -1: the one on the route to the groups
  std::uint32_t path_mtu = 0;  // at most, bytes; 0: the port's active MTU
  PacketMarks marks = {};
  wire::Ipv4Prefix groups = wire::kDefaultMcstPool;  // their addresses
};

// The time without an answer after which a waiting receiver fails. A longer limit for sends also
// extends this one.
constexpr wire::Duration receiver_time_limit(std::optional<wire::Duration> requested) {
  return std::max(requested.value_or(wire::Duration(0)), wire::times::kReceiverGivesUp);
}

class Device {
 public:
  // MCAST_ERR_NO_DEVICE lists the ports and the reason why each one does not serve.
  static Expected<std::unique_ptr<Device>> open(const DeviceOptions& options);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  const std::string& name() const { return name_; }
  const std::string& why() const { return why_; }  // this device and no other
  wire::Ipv4 ipv4() const { return gid_.address; }
  std::uint32_t vendor_id() const { return vendor_id_; }
  std::uint8_t port() const { return port_; }
  int gid_index() const { return gid_.index; }
  const Gid& gid() const { return gid_; }
  std::uint32_t path_mtu() const;  // bytes; queries the port: its MTU may have changed
  const PacketMarks& marks() const { return marks_; }
  std::size_t max_message() const { return max_message_; }                // bytes
  std::uint32_t max_work_requests() const { return max_work_requests_; }  // of one queue
  std::uint32_t max_completions() const { return max_completions_; }      // of one completion queue

  // How late the device may repeat a packet with a time-out code. Only an emulated NIC reports that.
  struct Repeats {
    wire::Duration latest;
    bool ignores_code;
  };
  std::optional<Repeats> repeats(std::uint8_t ack_timeout) const;
  // Packets that a queue pair has under way at most. 0: only an emulated NIC reports that.
  std::uint32_t window() const;
  bool is_up() const;                       // queries the port
  std::uint64_t registered_bytes() const {  // in regions that were registered here
    return registered_bytes_.load(std::memory_order_relaxed);
  }

  // `access` as ibv_reg_mr. MCAST_ERR_NO_MEMORY names the limit that is usually in the way.
  Expected<MrHandle> register_memory(void* address, std::size_t length, int access) const;
  // The same at address 0 under the caller's key. MCAST_ERR_INVALID: the key is in use, or the
  // device does not offer the choice.
  Expected<MrHandle> register_memory_as(std::uint32_t key, void* address, std::size_t length,
                                        int access) const;

 private:
  Device() = default;
  Expected<MrHandle> registered(ibv_mr* region, std::size_t length) const;
  Expected<void> open_port(ibv_device* device, const DeviceOptions& options);
  Expected<void> choose_gid(const DeviceOptions& options);

  // Destroyed in reverse order.
  ContextHandle context_;
  PdHandle pd_;
  std::string name_, why_;
  std::uint8_t port_ = 0;
  Gid gid_;
  bool is_off_route_ = false;   // a port can't serve because of the kernel's routes alone
  std::uint32_t most_mtu_ = 0;  // bytes; 0: no limit but the port's
  PacketMarks marks_;
  std::size_t max_message_ = 0;
  std::uint32_t vendor_id_ = 0;
  std::uint32_t max_work_requests_ = 0;
  std::uint32_t max_completions_ = 0;
  mutable std::atomic<std::uint64_t> registered_bytes_{0};
};

// The IPv4 address in an IPv4-mapped GID, ::ffff:a.b.c.d; unset if it is none.
wire::Ipv4 ipv4_of(const ibv_gid& gid);
ibv_gid gid_of(wire::Ipv4 address);

}  // namespace cepheus::mcast
