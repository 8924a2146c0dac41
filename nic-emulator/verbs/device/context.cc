// Opens and closes the device, installs its operations in verbs_context, and answers queries of the
// device and of its port.
//
// The device has one port, one GID, one P_Key. Its limits are the engine's NicConfig and limits.h.
// The port's speed is the slowest InfiniBand speed that is not below the link's rate. In the child
// of a fork(), queries return ENODEV.
//
// A failed open prints its reason. If the fabric refuses a port to a rank of a job, only
// CEPHEUS_VERBOSE prints it.
#include "nic-emulator/verbs/device/context.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nic-emulator/engine/ack_timeout.h"
#include "nic-emulator/verbs/device/environment.h"
#include "nic-emulator/verbs/device/own_manners.h"
#include "nic-emulator/verbs/next_library.h"
#include "nic-emulator/verbs/queues/extended.h"
#include "nic-emulator/verbs/queues/qp_attributes.h"
#include "nic-emulator/verbs/queues/queue_pair.h"
#include "nic-emulator/verbs/queues/verbs_cq.h"

namespace cepheus::verbs {
namespace {

constexpr std::uint64_t kPageSizes = 0xFFFFF000;  // any: memory is the process's own
constexpr std::uint32_t kVendorId = 0xFFFFFF;     // unassigned; 0 for parts: no provider's quirks
constexpr std::uint8_t kAckDelay = 15;            // local CA ACK delay: 4.096 us * 2^15 = 134 ms
constexpr std::uint8_t kPhysLinkUp = 5;
constexpr std::uint8_t kPhysDisabled = 3;

struct Speed {
  std::uint64_t megabits;
  std::uint8_t width;  // 1: 1x, 2: 4x
  std::uint8_t code;   // 1: 2.5, 2: 5, 4: 10, 16: 14, 32: 25, 64: 50 Gb/s a lane
};
constexpr std::array kSpeeds{Speed{2'500, 1, 1},   Speed{5'000, 1, 2},    Speed{10'000, 1, 4},
                             Speed{14'000, 1, 16}, Speed{25'000, 1, 32},  Speed{40'000, 2, 4},
                             Speed{56'000, 2, 16}, Speed{100'000, 2, 32}, Speed{200'000, 2, 64}};

// The slowest speed that is not below the link's rate; 100 Gb/s for links without a rate.
Speed speed_of(wire::BitRate rate) {
  const std::uint64_t megabits = rate.is_unlimited() ? 100'000 : rate.bits_per_second / 1'000'000;
  const auto* at = std::find_if(kSpeeds.begin(), kSpeeds.end(),
                                [&](const Speed& s) { return s.megabits >= megabits; });
  return at == kSpeeds.end() ? kSpeeds.back() : *at;
}

int query_port_op(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes,
                  std::size_t size) {
  ibv_port_attr all{};
  if (const int error = Context::of(context).query_port_attributes(port, all); error != 0) {
    return refuse_call(error);
  }
  copy_answer(all, attributes, size);
  return 0;
}

int query_device_ex_op(ibv_context* context, const ibv_query_device_ex_input* input,
                       ibv_device_attr_ex* attributes, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return refuse_call(EINVAL);
  if (Context::of(context).nic().is_abandoned()) return refuse_call(ENODEV);
  ibv_device_attr_ex all{};
  Context::of(context).query_device_attributes(all.orig_attr);
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
  all.phys_port_cnt_ex = 1;
  copy_answer(all, attributes, size);
  return 0;
}

}  // namespace

wire::Result<Context*> Context::open() {
  auto nic = acquire_nic();
  if (!nic) return tl::unexpected(nic.error());
  auto events = AsyncEvents::create();
  if (!events) {
    release_nic(std::move(*nic));
    return tl::unexpected(events.error());
  }
  std::shared_ptr<Context> context(new Context(std::move(*nic), std::move(*events)));
  context->held_by_program_ = context;
  return context.get();
}

void Context::close() {
  const std::shared_ptr<Context> last = std::move(held_by_program_);
  if (last.use_count() > 1) log_verbose("ibv_close_device: objects of the device still exist");
}

Context::Context(std::shared_ptr<LiveNic> nic, std::unique_ptr<AsyncEvents> async_events)
    : verbs_context{}, nic_(std::move(nic)), async_events_(std::move(async_events)) {
  sz = sizeof(verbs_context);
  context.device = &the_device();
  context.cmd_fd = -1;
  context.async_fd = async_events_->fd();
  context.num_comp_vectors = 1;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  ::pthread_mutex_init(&context.mutex, nullptr);
  context.ops.poll_cq = poll_cq;
  context.ops.req_notify_cq = req_notify_cq;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_recv;
  context.ops.post_srq_recv = post_srq_recv;
  query_port = query_port_op;
  query_device_ex = query_device_ex_op;
  create_cq_ex = create_extended_cq;
  create_qp_ex = create_extended_qp;
  nic_->add_listener(*this);
}

Context::~Context() {
  nic_->remove_listener(*this);
  ::pthread_mutex_destroy(&context.mutex);
  release_nic(std::move(nic_));
}

void Context::on_event(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = kPort;
  async_events_->post(event, port_source_);
}

void Context::on_forked() {
  renew_after_fork(context.mutex);
  async_events_->on_forked();
}

int Context::query_port_attributes(std::uint8_t port, ibv_port_attr& a) const {
  if (port != kPort) return EINVAL;
  if (nic_->is_abandoned()) return ENODEV;
  const fabric::HostIdentity& identity = nic_->identity();
  const Speed speed = speed_of(identity.rate);
  a = {};
  a.state = nic_->is_up() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a.max_mtu = mtu_code(identity.mtu);
  a.active_mtu = a.max_mtu;
  a.gid_tbl_len = 1;
  a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  a.max_msg_sz = static_cast<std::uint32_t>(kMaxMessage);
  a.pkey_tbl_len = 1;
  a.max_vl_num = 1;
  a.active_width = speed.width;
  a.active_speed = speed.code;
  a.phys_state = nic_->is_up() ? kPhysLinkUp : kPhysDisabled;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

void Context::query_device_attributes(ibv_device_attr& a) const {
  const NicConfig& config = nic_->config();
  a = {};
  std::strncpy(a.fw_ver, CEPHEUS_VERSION, sizeof a.fw_ver - 1);
  a.node_guid = guid_of(nic_->identity().address);
  a.sys_image_guid = a.node_guid;
  a.max_mr_size = ~std::uint64_t{0};
  a.page_size_cap = kPageSizes;
  a.vendor_id = kVendorId;
  a.max_qp = static_cast<int>(config.max_qps);
  a.max_qp_wr = static_cast<int>(std::min(kMaxCap.max_send_wr, kMaxCap.max_recv_wr));
  a.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                       IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD |
                       IBV_DEVICE_SRQ_RESIZE;
  a.max_sge = static_cast<int>(std::min(kMaxCap.max_send_sge, kMaxCap.max_recv_sge));
  a.max_sge_rd = a.max_sge;
  a.max_cq = kMaxCqs;
  a.max_cqe = kMaxCqe;
  a.max_mr = static_cast<int>(config.max_regions);
  a.max_pd = kMaxPds;
  a.max_ah = kMaxAhs;
  a.max_qp_rd_atom = kMaxRdAtomic;
  a.max_qp_init_rd_atom = kMaxRdAtomic;
  a.max_res_rd_atom = static_cast<int>(config.max_qps) * kMaxRdAtomic;
  a.max_srq = static_cast<int>(config.max_srqs);
  a.max_srq_wr = static_cast<int>(kMaxCap.max_recv_wr);
  a.max_srq_sge = static_cast<int>(kMaxCap.max_recv_sge);
  a.atomic_cap = IBV_ATOMIC_HCA;
  a.max_pkeys = 1;
  a.local_ca_ack_delay = kAckDelay;
  a.phys_port_cnt = 1;
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  CEPHEUS_PASS_ON_UNLESS_OURS(device, ibv_open_device, device);
  return guarded([]() -> ibv_context* {
    auto opened = Context::open();
    if (!opened) {
      set_last_error(opened.error().text);
      const std::string text =
          std::string("can't open ") + kDeviceName + ": " + opened.error().text;
      // Some ranks of a job have no port: several share a host, or the fabric has fewer hosts. The
      // libraries that requested the device report these ranks.
      const bool is_one_of_many =
          opened.error().code == cepheus::wire::ErrorCode::kRefused && Environment::read().is_rank;
      is_one_of_many ? log_verbose(text) : print_line(text);
      return refuse(to_errno(opened.error().code));
    }
    return &(*opened)->context;
  });
}

CEPHEUS_EXPORT int ibv_close_device(ibv_context* context) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_close_device, context);
  return guarded([&] {
    Context::of(context).close();
    return 0;
  });
}

CEPHEUS_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_query_device, context, attributes);
  if (Context::of(context).nic().is_abandoned()) return refuse_call(ENODEV);
  Context::of(context).query_device_attributes(*attributes);
  return 0;
}

CEPHEUS_EXPORT int64_t cepheus_roce_latest_repeat(ibv_context* context, unsigned timeout_code,
                                                  int* ignores_code) {
  if (!is_ours(context)) return -1;
  const cepheus::rnic::NicConfig& nic = Context::of(context).nic().config();
  *ignores_code = nic.manners.ignores_timeout_code ? 1 : 0;
  const auto code = static_cast<std::uint8_t>(timeout_code & 31);
  const auto latest = cepheus::rnic::latest_repeat(nic, code);
  return std::chrono::ceil<std::chrono::microseconds>(latest).count();
}

CEPHEUS_EXPORT int64_t cepheus_roce_window(ibv_context* context) {
  if (!is_ours(context)) return -1;
  return Context::of(context).nic().config().window_packets;
}

CEPHEUS_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port,
                                  _compat_ibv_port_attr* attributes) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_query_port, context, port, attributes);
  // The caller's structure ends at the place of this newer field.
  return query_port_op(context, port, reinterpret_cast<ibv_port_attr*>(attributes),
                       offsetof(ibv_port_attr, port_cap_flags2));
}

CEPHEUS_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  return call_next<decltype(ibv_import_device)>("ibv_import_device", cmd_fd);
}
