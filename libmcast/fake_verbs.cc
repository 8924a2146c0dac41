// The verbs and the datagram calls of the fake device: each does what a NIC would, and leaves posted
// work in its queue pair for the test. All contexts share one protection domain.
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "libmcast/device.h"
#include "libmcast/fake_device.h"

#undef ibv_query_port
#undef ibv_reg_mr

#define EXPORTED extern "C" __attribute__((visibility("default"), used))

struct cepheus_datagram_socket {};

namespace cepheus::mcast::fake {
namespace {

constexpr std::uint16_t kMrpPort = wire::kDefaultMrpUdpPort;
constexpr std::uint16_t kOwnPort = 49152;

Pair& pair_of(ibv_qp* qp) { return *static_cast<Pair*>(qp->qp_context); }

Posted posted(std::uint64_t wr_id, const ibv_sge* sge, int count) {
  Posted p;
  p.wr_id = wr_id;
  if (count == 0) return p;
  p.address = reinterpret_cast<void*>(sge->addr);
  p.length = sge->length;
  p.lkey = sge->lkey;
  return p;
}

const char* name_of(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return "RESET";
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    default:
      return "ERR";
  }
}

std::array<ibv_device, 4> the_devices;
ibv_context the_context;
cepheus_datagram_socket the_socket;

}  // namespace

// The calls, as members of a friend: each belongs to the verb of its name.
struct Calls {
  static Device& device() { return Device::instance(); }

  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const std::lock_guard lock(device().calls_mutex);
    Pair& pair = pair_of(qp);
    for (; wr != nullptr; wr = wr->next) {
      *bad = wr;
      if (device().sends_left == 0 || qp->state != IBV_QPS_RTS) return EINVAL;
      if (device().sends_left > 0) --device().sends_left;
      Posted p = posted(wr->wr_id, wr->sg_list, wr->num_sge);
      p.imm = ntohl(wr->imm_data);
      p.opcode = wr->opcode;
      p.remote_address = wr->wr.rdma.remote_addr;
      p.rkey = wr->wr.rdma.rkey;
      p.is_signaled = (wr->send_flags & IBV_SEND_SIGNALED) != 0;
      pair.sends.push_back(p);
    }
    return 0;
  }
  static int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    const std::lock_guard lock(device().calls_mutex);
    for (; wr != nullptr; wr = wr->next) {
      *bad = wr;
      if (qp->state == IBV_QPS_RESET) return EINVAL;
      if (device().receives_left == 0) return ENOMEM;
      if (device().receives_left > 0) --device().receives_left;
      pair_of(qp).receives.push_back(posted(wr->wr_id, wr->sg_list, wr->num_sge));
    }
    return 0;
  }
  static int poll(ibv_cq* cq, int most, ibv_wc* out) {
    const std::lock_guard lock(device().calls_mutex);
    int n = 0;
    auto& list = device().completions_;
    for (auto at = list.begin(); at != list.end() && n < most;) {
      if (at->first != cq) {
        ++at;
        continue;
      }
      out[n++] = at->second;
      at = list.erase(at);
    }
    return n;
  }
  static int arm(ibv_cq* cq, int) {
    const std::lock_guard lock(device().calls_mutex);
    auto& armed = device().armed_;
    if (std::find(armed.begin(), armed.end(), cq) == armed.end()) armed.push_back(cq);
    return 0;
  }
  static ibv_cq* fetch(const ibv_comp_channel& channel) {
    const std::lock_guard lock(device().calls_mutex);
    auto& fired = device().fired_;
    const auto at = std::ranges::find(fired, &channel, &ibv_cq::channel);
    if (at == fired.end()) return nullptr;
    eventfd_t unused = 0;
    eventfd_read(channel.fd, &unused);
    ibv_cq* const cq = *at;
    fired.erase(at);
    return cq;
  }
  static ibv_qp* create(ibv_pd* pd, ibv_qp_init_attr* init) {
    device().note_call("create");
    const std::lock_guard lock(device().calls_mutex);
    auto pair = std::make_unique<Pair>();
    ibv_qp& qp = pair->verbs;
    qp.context = pd->context;
    qp.qp_context = pair.get();
    qp.pd = pd;
    qp.send_cq = init->send_cq;
    qp.recv_cq = init->recv_cq;
    qp.qp_num = device().next_qpn++;
    qp.state = IBV_QPS_RESET;
    device().pairs.push_back(std::move(pair));
    return &qp;
  }
  static int destroy(ibv_qp* qp) {
    device().note_call("destroy");
    const std::lock_guard lock(device().calls_mutex);
    for (auto& pair : device().pairs) {
      if (pair && &pair->verbs == qp) pair.reset();
    }
    return 0;
  }
  static int modify(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
    device().note_call(name_of(attr->qp_state));
    const std::lock_guard lock(device().calls_mutex);
    Pair& pair = pair_of(qp);
    if (!device().comes_back && qp->state == IBV_QPS_ERR && attr->qp_state != IBV_QPS_ERR) {
      return EINVAL;
    }
    if (device().refuse_modify != 0 && attr->qp_state == device().refused_state) {
      return std::exchange(device().refuse_modify, 0);
    }
    if ((mask & IBV_QP_RQ_PSN) != 0) pair.receive_psn = pair.set_receive_psn = attr->rq_psn;
    if ((mask & IBV_QP_SQ_PSN) != 0) pair.send_psn = pair.set_send_psn = attr->sq_psn;
    if ((mask & IBV_QP_PATH_MTU) != 0) pair.mtu = attr->path_mtu;
    if ((mask & IBV_QP_DEST_QPN) != 0) pair.remote_qpn = attr->dest_qp_num;
    if ((mask & IBV_QP_AV) != 0) {
      pair.path = attr->ah_attr;
      pair.remote = ipv4_of(attr->ah_attr.grh.dgid);
    }
    qp->state = attr->qp_state;
    pair.states.push_back(attr->qp_state);
    if (attr->qp_state == IBV_QPS_ERR) device().flush(pair);
    if (attr->qp_state == IBV_QPS_RESET) {
      pair.sends.clear();
      pair.receives.clear();
    }
    return 0;
  }
  static int next_event(ibv_async_event* out) {
    if (device().events_.empty()) {
      errno = EAGAIN;
      return -1;
    }
    *out = device().events_.front();
    device().events_.pop_front();
    return 0;
  }
  static int transmit(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    const std::lock_guard lock(device().datagrams_mutex);
    device().datagrams.emplace_back(bytes, bytes + size);
    if (const auto publication = wire::Publication::parse({bytes, size})) {
      device().published.push_back(*publication);
    } else if (const auto of_sender = wire::SenderGroupMessage::parse({bytes, size})) {
      device().sent_of_sender_groups_.push_back(*of_sender);
    } else if (const auto message = wire::MrpMessage::parse({bytes, size})) {
      device().sent_.push_back(*message);
    }
    return 0;
  }
  static ssize_t receive(void* data, std::size_t capacity, std::uint32_t* from,
                         std::uint16_t* port) {
    const std::lock_guard lock(device().datagrams_mutex);
    if (device().incoming_.empty()) {
      errno = EAGAIN;
      return -1;
    }
    const auto [sender, bytes] = device().incoming_.front();
    device().incoming_.pop_front();
    const std::size_t n = std::min(capacity, bytes.size());
    std::memcpy(data, bytes.data(), n);
    *from = sender.value();
    *port = kMrpPort;
    return static_cast<ssize_t>(n);
  }
};

}  // namespace cepheus::mcast::fake

using cepheus::mcast::fake::Calls;
using cepheus::mcast::fake::Device;

EXPORTED ibv_device** ibv_get_device_list(int* count) {
  static std::array<ibv_device*, cepheus::mcast::fake::the_devices.size() + 1> list{};
  list.fill(nullptr);
  const Device& device = Device::instance();
  *count = device.is_there ? static_cast<int>(device.names.size()) : 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i) {
    list[i] = &cepheus::mcast::fake::the_devices.at(i);
    std::snprintf(list[i]->name, sizeof list[i]->name, "%s", device.names[i].c_str());
  }
  return list.data();
}
EXPORTED void ibv_free_device_list(ibv_device**) {}
EXPORTED const char* ibv_get_device_name(ibv_device* device) { return device->name; }
EXPORTED ibv_context* ibv_open_device(ibv_device* device) {
  if (Device::instance().on_open) Device::instance().on_open();
  ++Device::instance().opened;
  ibv_context& context = cepheus::mcast::fake::the_context;
  context = {};
  context.device = device;
  static const int events = ::eventfd(0, EFD_CLOEXEC);  // nothing comes here
  context.async_fd = events;
  context.ops.post_send = Calls::post_send;
  context.ops.post_recv = Calls::post_receive;
  context.ops.poll_cq = Calls::poll;
  context.ops.req_notify_cq = Calls::arm;
  return &context;
}
EXPORTED int ibv_close_device(ibv_context*) {
  --Device::instance().opened;
  return 0;
}
EXPORTED int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  *out = {};
  out->phys_port_cnt = Device::instance().ports;
  out->max_qp_wr = 1024;
  out->max_cqe = 65536;
  return 0;
}
EXPORTED int ibv_query_port(ibv_context* context, std::uint8_t, _compat_ibv_port_attr* attr) {
  auto* out = reinterpret_cast<ibv_port_attr*>(attr);
  Device& device = Device::instance();
  device.note_call("port");
  const bool is_active = device.is_up && context->device->name != device.without_port;
  out->state = is_active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out->link_layer = device.is_ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  out->active_mtu = device.mtu;
  out->max_msg_sz = static_cast<std::uint32_t>(device.max_message);
  out->gid_tbl_len = static_cast<int>(std::max<std::size_t>(device.gids.size(), 1));
  return 0;
}
EXPORTED int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                               ibv_gid_entry* out, std::uint32_t, std::size_t) {
  const Device& device = Device::instance();
  out->gid_type = IBV_GID_TYPE_ROCE_V2;
  if (device.gids.empty()) {
    out->gid = cepheus::mcast::gid_of(device.address);
    return 0;
  }
  const Device::GidEntry& entry = device.gids.at(index);
  out->gid = cepheus::mcast::gid_of(entry.address);
  out->ndev_ifindex = entry.interface;
  return entry.device == context->device->name && entry.port == port ? 0 : ENODATA;
}
EXPORTED ibv_pd* ibv_alloc_pd(ibv_context* context) {
  static ibv_pd pd;
  pd = {context, 1};
  return &pd;
}
EXPORTED int ibv_dealloc_pd(ibv_pd*) { return 0; }
EXPORTED ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t,
                                  unsigned access) {
  static std::uint32_t keys = 0;
  Device::instance().note_call("memory");
  if (Device::instance().is_memory_read_only && (access & IBV_ACCESS_LOCAL_WRITE) != 0) {
    errno = EFAULT;
    return nullptr;
  }
  ++Device::instance().regions;
  Device::instance().registrations.push_back(access);
  const std::uint32_t key = ++keys;
  return new ibv_mr{pd->context, pd, address, length, key, key, key};
}
EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, address, length, 0, static_cast<unsigned>(access));
}
EXPORTED ibv_mr* cepheus_roce_reg_mr_as(ibv_pd* pd, void* address, std::size_t length,
                                        std::uint64_t iova, std::uint32_t key, unsigned access) {
  Device& device = Device::instance();
  device.note_call("memory");
  if (device.refuse_chosen_keys != 0) {
    errno = device.refuse_chosen_keys;
    return nullptr;
  }
  ++device.regions;
  device.registrations.push_back(access);
  device.chosen.push_back({iova, key});
  return new ibv_mr{pd->context, pd, address, length, key, key, key};
}
EXPORTED std::int64_t cepheus_roce_latest_repeat(ibv_context*, unsigned, int* ignores_code) {
  *ignores_code = 0;
  return Device::instance().latest_repeat;
}
EXPORTED std::int64_t cepheus_roce_window(ibv_context*) { return Device::instance().window; }
EXPORTED int ibv_dereg_mr(ibv_mr* mr) {
  Device::instance().note_call("memory");
  --Device::instance().regions;
  delete mr;
  return 0;
}
EXPORTED ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (!Device::instance().has_channels) return nullptr;
  return new ibv_comp_channel{context, eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE), 0};
}
EXPORTED int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete channel;
  return 0;
}
EXPORTED int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  *cq = Calls::fetch(*channel);
  *cq_context = nullptr;
  return *cq != nullptr ? 0 : -1;
}
EXPORTED void ibv_ack_cq_events(ibv_cq*, unsigned) {}
EXPORTED ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel,
                               int) {
  auto* cq = new ibv_cq{};
  cq->channel = channel;
  cq->context = context;
  cq->cqe = entries;
  return cq;
}
EXPORTED int ibv_destroy_cq(ibv_cq* cq) {
  delete cq;
  return 0;
}
EXPORTED ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return Calls::create(pd, init);
}
EXPORTED int ibv_destroy_qp(ibv_qp* qp) { return Calls::destroy(qp); }
EXPORTED int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return Calls::modify(qp, attr, mask);
}
EXPORTED int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  const auto& pair = *static_cast<cepheus::mcast::fake::Pair*>(qp->qp_context);
  const bool is_frozen = Device::instance().has_frozen_psns;
  attr->sq_psn = is_frozen ? pair.set_send_psn : pair.send_psn;
  attr->rq_psn = is_frozen ? pair.set_receive_psn : pair.receive_psn;
  return 0;
}
EXPORTED int ibv_get_async_event(ibv_context*, ibv_async_event* out) {
  return Calls::next_event(out);
}
EXPORTED void ibv_ack_async_event(ibv_async_event*) {}

EXPORTED int cepheus_datagram_open(ibv_context*, std::uint16_t, std::uint16_t, std::uint8_t,
                                   cepheus_datagram_socket** out) {
  *out = &cepheus::mcast::fake::the_socket;
  return Device::instance().is_emulated ? 0 : EOPNOTSUPP;
}
EXPORTED std::uint16_t cepheus_datagram_port(const cepheus_datagram_socket*) {
  return cepheus::mcast::fake::kOwnPort;
}
EXPORTED int cepheus_datagram_send(cepheus_datagram_socket*, std::uint32_t, std::uint16_t,
                                   const void* data, std::size_t size) {
  return Calls::transmit(data, size);
}
EXPORTED ssize_t cepheus_datagram_recv(cepheus_datagram_socket*, void* data, std::size_t capacity,
                                       std::uint32_t* from, std::uint16_t* from_port) {
  return Calls::receive(data, capacity, from, from_port);
}
EXPORTED void cepheus_datagram_close(cepheus_datagram_socket*) {}
