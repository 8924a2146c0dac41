// Each struct is read up to the caller's size, checked field by field, and converted; 0 and null
// mean the default. The first wrong field is the error, with its name and range. The fabric's key
// is read here, from key_file or $CEPHEUS_KEY_FILE.
//
// Combinations are refused that no group could have: regions on eager lanes, per_request with
// same_key, sender groups with either. Limits: kMaxDepth requests of a kind, kMostOutage
// milliseconds.
#include "libmcast/parameters.h"

#include <mcast/reduce.h>
#include <mcast/senders.h>

#include <bit>
#include <cstdlib>

#include "controller/virtual_qpns.h"
#include "libmcast/sized.h"
#include "wire/sender_group.h"

namespace cepheus::mcast {
namespace {

constexpr unsigned kMaxDepth = 16384;
constexpr unsigned kUsualReductionWindow = 64;
constexpr std::uint32_t kMostOutage = 30'000;  // ms

static_assert(MCAST_CHOSEN_QPN_FIRST == mrp::kChosenQpns.first);
static_assert(MCAST_CHOSEN_QPN_LAST == mrp::kChosenQpns.last);

// The key that the fabric's switches have, from `named` or else $CEPHEUS_KEY_FILE; null if neither
// names a file.
Expected<std::shared_ptr<const wire::MrpKey>> fabric_key(const char* named) {
  const char* path = named != nullptr ? named : std::getenv("CEPHEUS_KEY_FILE");
  if (path == nullptr || *path == '\0') return nullptr;
  auto key = wire::MrpKey::read(
      path, std::string("the key file (key_file, $CEPHEUS_KEY_FILE): can't read ") + path);
  if (!key) return fail(MCAST_ERR_INVALID, key.error().text);
  return std::make_shared<const wire::MrpKey>(std::move(*key));
}

Expected<PacketMarks> marks_of(const mcast_context_params_t& p) {
  const auto out_of_range = [](const char* name, std::uint32_t value, const char* range) {
    return fail(MCAST_ERR_INVALID,
                std::string(name) + " " + std::to_string(value) + ": use " + range);
  };
  if (p.traffic_class > 255) return out_of_range("traffic_class", p.traffic_class, "0 to 255");
  if (p.service_level > 7) return out_of_range("service_level", p.service_level, "0 to 7");
  if (p.flow_label > 0xFFFFF) return out_of_range("flow_label", p.flow_label, "0 to 1048575");
  return PacketMarks{static_cast<std::uint8_t>(p.traffic_class),
                     static_cast<std::uint8_t>(p.service_level), p.flow_label};
}

}  // namespace

Expected<ContextConfig> context_config(const mcast_context_params_t* params) {
  auto read_params = read_sized(params, mcast_context_params_t MCAST_CONTEXT_PARAMS_INIT);
  if (!read_params) return tl::unexpected(read_params.error());
  const mcast_context_params_t& p = *read_params;
  ContextConfig config;
  if (p.device != nullptr) config.device.name = p.device;
  if (p.gid_index < -1 || p.gid_index > 255) {
    return fail(MCAST_ERR_INVALID, "gid_index " + std::to_string(p.gid_index) +
                                       ": use -1 (by the route to groups) or 0 to 255");
  }
  config.device.gid_index = p.gid_index;
  config.device.path_mtu = p.path_mtu;
  const auto marks = marks_of(p);
  if (!marks) return tl::unexpected(marks.error());
  config.device.marks = *marks;
  if (p.mrp_port == wire::kRoceUdpPort) {
    return fail(MCAST_ERR_INVALID, "mrp_port 4791 is RoCE's own: use another");
  }
  if (p.mrp_port != 0) config.mrp_port = p.mrp_port;
  if (p.register_timeout_ms != 0) {
    config.register_timeout = std::chrono::milliseconds(p.register_timeout_ms);
  }
  if (p.register_silence_ms != 0) {
    config.register_silence = std::chrono::milliseconds(p.register_silence_ms);
  }
  if (p.mcst_pool != nullptr) {
    const auto pool = wire::Ipv4Prefix::parse(p.mcst_pool);
    if (!pool || !pool->is_unicast()) {
      return fail(MCAST_ERR_INVALID, std::string("mcst_pool '") + p.mcst_pool +
                                         "': use a unicast block such as 198.18.0.0/15");
    }
    config.pool = config.device.groups = *pool;
  }
  auto key = fabric_key(p.key_file);
  if (!key) return tl::unexpected(key.error());
  config.key = std::move(*key);
  if (p.max_eager_memory != 0) config.max_eager_memory = p.max_eager_memory;
  if (p.link_outage_ms > kMostOutage) {
    return fail(MCAST_ERR_INVALID, "link_outage_ms " + std::to_string(p.link_outage_ms) +
                                       ": use at most " + std::to_string(kMostOutage));
  }
  if (p.link_outage_ms != 0) config.link_outage = std::chrono::milliseconds(p.link_outage_ms);
  if (p.progress_timeout_ms != 0) {
    config.progress_timeout = std::chrono::milliseconds(p.progress_timeout_ms);
  }
  return config;
}

namespace {

Expected<void> check_sender_group(const mcast_group_params_t& p) {
  if (p.sender_group == 0) {
    if (p.virtual_qpn == 0) return {};
    return fail(MCAST_ERR_INVALID, "virtual_qpn: only sender groups have one, set sender_group");
  }
  if (p.lane != MCAST_LANE_BULK) {
    return fail(MCAST_ERR_INVALID, "sender_group: only bulk lanes have one fixed sender");
  }
  if (p.same_key != 0 || p.per_request != 0) {
    return fail(MCAST_ERR_INVALID,
                "sender_group: its WRITEs name regions by number, without same_key or per_request");
  }
  const bool is_virtual =
      p.virtual_qpn >= wire::kFirstSenderGroupQpn && p.virtual_qpn <= wire::kLastSenderGroupQpn;
  if (p.virtual_qpn != 0 && !is_virtual) {
    return fail(MCAST_ERR_INVALID, "virtual_qpn " + std::to_string(p.virtual_qpn) +
                                       ": use one of 0xC00000 to 0xFFFFFE");
  }
  return {};
}

// 0 on other lanes.
Expected<std::uint16_t> reduction_window_of(const mcast_group_params_t& p) {
  if (p.lane != MCAST_LANE_REDUCTION) {
    if (p.floating_sums != 0)
      return fail(MCAST_ERR_INVALID, "floating_sums: only of reduction lanes");
    if (p.reduction_window == 0) return std::uint16_t{0};
    return fail(MCAST_ERR_INVALID, "reduction_window: only of reduction lanes");
  }
  const unsigned window = p.reduction_window != 0 ? p.reduction_window : kUsualReductionWindow;
  if (!std::has_single_bit(window) || window < MCAST_REDUCTION_PACKETS ||
      window > wire::MrpReduction::kMostWindow) {
    return fail(MCAST_ERR_INVALID, "reduction_window " + std::to_string(window) +
                                       ": use a power of two from 8 to 256");
  }
  return static_cast<std::uint16_t>(window);
}

}  // namespace

Expected<GroupConfig> group_config(const mcast_group_params_t* params, const Device& device) {
  auto read_params = read_sized(params, mcast_group_params_t MCAST_GROUP_PARAMS_INIT);
  if (!read_params) return tl::unexpected(read_params.error());
  const mcast_group_params_t& p = *read_params;
  GroupConfig config;
  if (p.lane != MCAST_LANE_EAGER && p.lane != MCAST_LANE_BULK && p.lane != MCAST_LANE_REDUCTION) {
    return fail(MCAST_ERR_INVALID,
                "lane: use MCAST_LANE_EAGER, MCAST_LANE_BULK or MCAST_LANE_REDUCTION");
  }
  config.lane = p.lane;
  if (p.max_eager != 0) config.max_eager = p.max_eager;
  if (config.lane == MCAST_LANE_EAGER && config.max_eager > device.max_message()) {
    return fail(MCAST_ERR_INVALID, "max_eager " + std::to_string(config.max_eager) +
                                       ": the device sends at most " +
                                       std::to_string(device.max_message()) + " bytes");
  }
  if (p.recv_depth != 0) config.depths.receive = p.recv_depth;
  if (p.send_depth != 0) config.depths.send = p.send_depth;
  if (config.depths.receive > kMaxDepth || config.depths.send > kMaxDepth) {
    return fail(MCAST_ERR_INVALID,
                "send_depth and recv_depth: use at most " + std::to_string(kMaxDepth));
  }
  if (p.same_key != 0 && config.lane != MCAST_LANE_BULK) {
    return fail(MCAST_ERR_INVALID, "same_key: only bulk lanes have regions");
  }
  if (p.per_request != 0 && (config.lane != MCAST_LANE_BULK || p.same_key != 0)) {
    return fail(MCAST_ERR_INVALID, "per_request: of bulk lanes, and without same_key");
  }
  if (const auto checked = check_sender_group(p); !checked) return tl::unexpected(checked.error());
  const auto window = reduction_window_of(p);
  if (!window) return tl::unexpected(window.error());
  config.reduction_window = *window;
  if (p.floating_sums != 0) config.reduction_kind = wire::MrpReduction::kOrdered;
  if (p.lost_member != MCAST_LOST_MEMBER_EVICTED && p.lost_member != MCAST_LOST_MEMBER_ENDS_GROUP) {
    return fail(MCAST_ERR_INVALID,
                "lost_member: use MCAST_LOST_MEMBER_EVICTED or MCAST_LOST_MEMBER_ENDS_GROUP");
  }
  config.lost_member = p.lost_member == MCAST_LOST_MEMBER_ENDS_GROUP ? mrp::LostMember::kEndsGroup
                                                                     : mrp::LostMember::kEvicted;
  config.same_key = p.same_key != 0;
  config.per_request = p.per_request != 0;
  config.sender_group = p.sender_group != 0;
  config.virtual_qpn = wire::Qpn(p.virtual_qpn);
  config.recv_cb = p.recv_cb;
  config.recv_arg = p.recv_arg;
  return config;
}

}  // namespace cepheus::mcast
