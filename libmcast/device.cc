// open() tries the devices in the order of their distance to the process's cores (device_choice.h),
// and takes the first one with a port that can serve. The reasons of the others make up the error,
// if none does. A path MTU that no device can have ends the search at once.
//
// Functions that only the emulated NIC has are found by dlsym(): keys of the program's choice, how
// late it repeats a packet, its window, and its last error.
#include "libmcast/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "support/locality/device_choice.h"
#include "support/locality/machine.h"

namespace cepheus::mcast {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

std::uint32_t bytes_of(ibv_mtu mtu) { return 128u << mtu; }  // IBV_MTU_256 = 1 ... IBV_MTU_4096 = 5

Expected<void> check_mtu(std::uint32_t most) {
  if (most == 0 || wire::is_path_mtu(most)) return {};
  return fail(MCAST_ERR_INVALID,
              "path MTU " + std::to_string(most) + ": use 256, 512, 1024, 2048 or 4096");
}

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

// The reason that a device library in this process gives for a missing device.
std::string hint() {
  using LastError = const char* (*)();
  const auto roce = reinterpret_cast<LastError>(dlsym(RTLD_DEFAULT, "cepheus_roce_last_error"));
  const char* text = roce != nullptr ? roce() : nullptr;
  return text != nullptr && *text != '\0' ? std::string(" (") + text + ")" : std::string();
}

}  // namespace

wire::Ipv4 ipv4_of(const ibv_gid& gid) {
  if (!std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), gid.raw)) return {};
  return {gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]};
}

ibv_gid gid_of(wire::Ipv4 address) {
  ibv_gid gid{};
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), gid.raw);
  for (int i = 0; i < 4; ++i) {
    gid.raw[12 + i] = static_cast<std::uint8_t>(address.value() >> (24 - 8 * i));
  }
  return gid;
}

Expected<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  std::vector<std::string> names;
  std::vector<std::size_t> order;  // indices in which to try them
  for (int i = 0; list && i < count; ++i) {
    names.emplace_back(ibv_get_device_name(list.get()[i]));
    if (options.name.empty() || names.back() == options.name) order.push_back(names.size() - 1);
  }
  if (names.empty()) {
    return fail(MCAST_ERR_NO_DEVICE,
                "this host has no RDMA device" + hint() +
                    ": load its driver, or run on an emulated fabric (cepheus-run)");
  }
  if (order.empty()) {
    return fail(MCAST_ERR_NO_DEVICE, "there is no RDMA device called " + options.name +
                                         ": ibv_devices lists the devices");
  }
  std::optional<locality::DeviceChoice> choice;  // null: there is none, or it can't be made
  if (order.size() > 1) {
    if (const auto machine = locality::Machine::load()) {
      choice.emplace(machine->topology(), machine->cores_of_process().get(), names);
      order = choice->order();
    }
  }
  bool is_by_route = false;  // an earlier one does not serve because of the route
  const auto why = [&](std::size_t i) -> std::string {
    if (is_by_route) return "by the route to groups";
    if (!options.name.empty()) return "named by the user";
    if (names.size() == 1) return "the only one";
    return choice ? choice->why(i) : "the first that serves; hwloc can't find the nearest";
  };
  std::string tried;
  for (const std::size_t i : order) {
    std::unique_ptr<Device> device(new Device);
    const auto opened = device->open_port(list.get()[i], options);
    if (opened) {
      device->why_ = why(i);
      return device;
    }
    if (opened.error().status == MCAST_ERR_INVALID) return tl::unexpected(opened.error());
    is_by_route |= device->is_off_route_;
    tried += (tried.empty() ? "" : "; ") + names[i] + ": " + opened.error().text;
  }
  return fail(MCAST_ERR_NO_DEVICE, "no RDMA device can serve: " + tried + hint());
}

Expected<void> Device::open_port(ibv_device* device, const DeviceOptions& options) {
  name_ = ibv_get_device_name(device);
  marks_ = options.marks;
  context_.reset(ibv_open_device(device));
  if (!context_) return fail(MCAST_ERR_NO_DEVICE, errno_text("it can't be opened", errno));
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context_.get(), &attributes)) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("it can't be queried", error));
  }
  vendor_id_ = attributes.vendor_id;
  std::string why = "it has no port";
  for (std::uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
    ibv_port_attr found{};
    if (ibv_query_port(context_.get(), port, &found) != 0 || found.state != IBV_PORT_ACTIVE) {
      why = "no port is active";
      continue;
    }
    if (found.link_layer != IBV_LINK_LAYER_ETHERNET) {
      why = "its ports are not Ethernet";
      continue;
    }
    port_ = port;
    if (const auto chosen = choose_gid(options); !chosen) {
      why = chosen.error().text;
      continue;
    }
    if (const auto checked = check_mtu(options.path_mtu); !checked) {
      return tl::unexpected(checked.error());
    }
    most_mtu_ = options.path_mtu;
    // A work request's length field has 32 bits.
    max_message_ = std::min<std::size_t>(found.max_msg_sz, std::size_t{1} << 31);
    max_work_requests_ = static_cast<std::uint32_t>(std::max(attributes.max_qp_wr, 1));
    max_completions_ = static_cast<std::uint32_t>(std::max(attributes.max_cqe, 1));
    pd_.reset(ibv_alloc_pd(context_.get()));
    if (!pd_) return fail(MCAST_ERR_NO_DEVICE, errno_text("no protection domain", errno));
    return {};
  }
  return fail(MCAST_ERR_NO_DEVICE, why);
}

Expected<void> Device::choose_gid(const DeviceOptions& options) {
  ibv_port_attr port{};
  if (const int error = ibv_query_port(context_.get(), port_, &port)) {
    return fail(MCAST_ERR_NO_DEVICE, errno_text("its port can't be queried", error));
  }
  const int wanted = options.gid_index;
  const int first = std::max(wanted, 0);
  const int last = wanted >= 0 ? std::min(wanted + 1, port.gid_tbl_len) : port.gid_tbl_len;
  std::vector<Gid> gids;
  for (int index = first; index < last; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_.get(), port_, static_cast<std::uint32_t>(index), &entry, 0) !=
        0) {
      continue;  // an empty entry
    }
    const wire::Ipv4 address = ipv4_of(entry.gid);
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || address.is_unset()) continue;
    gids.push_back({index, address, entry.ndev_ifindex});
  }
  if (wanted >= 0 && gids.empty()) {
    return fail(MCAST_ERR_NO_DEVICE, "GID " + std::to_string(wanted) +
                                         " is not a RoCE v2 address over IPv4: show_gids or "
                                         "ibv_devinfo -v list them");
  }
  const Expected<Gid> chosen =
      wanted >= 0 ? Expected<Gid>(gids[0]) : choose_by_route(gids, options.groups);
  if (!chosen) {
    is_off_route_ = !gids.empty();
    return tl::unexpected(chosen.error());
  }
  gid_ = *chosen;
  return {};
}

std::uint32_t Device::path_mtu() const {
  ibv_port_attr now{};
  const bool is_known = ibv_query_port(context_.get(), port_, &now) == 0;
  const std::uint32_t ports = bytes_of(is_known ? now.active_mtu : IBV_MTU_256);
  return most_mtu_ != 0 ? std::min(most_mtu_, ports) : ports;
}

std::optional<Device::Repeats> Device::repeats(std::uint8_t ack_timeout) const {
  // nic-emulator/verbs/device/own_manners.h
  using Query = std::int64_t(ibv_context*, unsigned, int*);
  auto* const call = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, "cepheus_roce_latest_repeat"));
  int ignores_code = 0;
  const std::int64_t us = call != nullptr ? call(context_.get(), ack_timeout, &ignores_code) : -1;
  if (us < 0) return std::nullopt;
  return Repeats{std::chrono::microseconds(us), ignores_code != 0};
}

std::uint32_t Device::window() const {
  // nic-emulator/verbs/device/own_manners.h
  using Query = std::int64_t(ibv_context*);
  auto* const call = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, "cepheus_roce_window"));
  const std::int64_t packets = call != nullptr ? call(context_.get()) : 0;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, packets));
}

bool Device::is_up() const {
  ibv_port_attr attributes{};
  return ibv_query_port(context_.get(), port_, &attributes) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

Expected<MrHandle> Device::register_memory(void* address, std::size_t length, int access) const {
  return registered(ibv_reg_mr(pd_.get(), address, length, access), length);
}

Expected<MrHandle> Device::register_memory_as(std::uint32_t key, void* address, std::size_t length,
                                              int access) const {
  // nic-emulator/verbs/memory/chosen_key.h
  using Register = ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, std::uint32_t, unsigned);
  auto* const call = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "cepheus_roce_reg_mr_as"));
  ibv_mr* region = nullptr;
  if (call != nullptr) {
    region = call(pd_.get(), address, length, 0, key, static_cast<unsigned>(access));
    if (region == nullptr && errno == EBUSY) {
      return fail(MCAST_ERR_INVALID,
                  "key " + std::to_string(key) +
                      " is in use on this device: number the same_key regions of "
                      "all groups of a process apart");
    }
  }
  if (call == nullptr || (region == nullptr && errno == EOPNOTSUPP)) {
    return fail(MCAST_ERR_INVALID, name_ +
                                       " lets no program choose keys: create the group without "
                                       "same_key, on a fabric of write_mode \"regions\"");
  }
  return registered(region, length);
}

Expected<MrHandle> Device::registered(ibv_mr* made, std::size_t length) const {
  const int error = errno;
  MrHandle region(made, {&registered_bytes_});
  if (region) {
    registered_bytes_.fetch_add(region->length, std::memory_order_relaxed);
    return region;
  }
  std::string text = errno_text("registering " + std::to_string(length) + " bytes", error);
  if (error == ENOMEM) text += ": raise the limit of locked memory (ulimit -l)";
  return fail(error == EFAULT || error == EINVAL ? MCAST_ERR_INVALID : MCAST_ERR_NO_MEMORY, text);
}

}  // namespace cepheus::mcast
