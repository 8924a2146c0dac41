// A context is found by all settings, worker and device included. The search is linear, and the
// lock is held while libmcast opens a device. Times in seconds become milliseconds, 1 at least; 0
// and less mean libmcast's default. An MRP_PORT beyond 65535 is refused. No context ends before its
// domain.
#include "ucx-transport/contexts.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cepheus::uct {
namespace {

std::string text(const char* from) { return from != nullptr ? from : ""; }
const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
// 0 is libmcast's default, and no time that the user gave.
unsigned milliseconds(double seconds) {
  constexpr double kMost = std::numeric_limits<unsigned>::max();
  return seconds <= 0 ? 0 : static_cast<unsigned>(std::clamp(seconds * 1e3, 1.0, kMost));
}

}  // namespace

Contexts::Settings::Settings(uct_worker_h of, std::string on, const ContextConfig& config)
    : worker(of),
      device(std::move(on)),
      key_file(text(config.key_file)),
      mcst_pool(text(config.mcst_pool)),
      gid_index(config.gid_index),
      mrp_port(config.mrp_port),
      path_mtu(config.path_mtu),
      max_eager_memory(config.max_eager_memory),
      register_timeout_ms(milliseconds(config.register_timeout)),
      register_silence_ms(milliseconds(config.register_silence)),
      progress_timeout_ms(milliseconds(config.progress_timeout)),
      link_outage_ms(milliseconds(config.link_outage)),
      traffic_class(config.traffic_class),
      service_level(config.service_level),
      flow_label(config.flow_label) {}

mcast_context_params_t Contexts::Settings::params() const {
  mcast_context_params_t out = MCAST_CONTEXT_PARAMS_INIT;
  out.device = or_null(device);
  out.gid_index = gid_index;
  out.mrp_port = static_cast<uint16_t>(mrp_port);
  out.path_mtu = static_cast<uint32_t>(path_mtu);
  out.register_timeout_ms = register_timeout_ms;
  out.mcst_pool = or_null(mcst_pool);
  out.key_file = or_null(key_file);
  out.max_eager_memory = max_eager_memory;
  out.progress_timeout_ms = progress_timeout_ms;
  out.register_silence_ms = register_silence_ms;
  out.link_outage_ms = link_outage_ms;
  out.traffic_class = traffic_class;
  out.service_level = service_level;
  out.flow_label = flow_label;
  return out;
}

mcast_status_t Contexts::open(uct_worker_h worker, const std::string& device,
                              const ContextConfig& config, mcast_context_h* out) {
  if (config.mrp_port > std::numeric_limits<uint16_t>::max()) {
    ucs_error("rc_mcast: MRP_PORT is a UDP port, 65535 at most");
    return MCAST_ERR_INVALID;
  }
  Settings settings(worker, device, config);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, settings, &Entry::settings);
  if (found != entries_.end()) {
    *out = found->context.get();
    return MCAST_OK;
  }
  const mcast_context_params_t params = settings.params();
  const mcast_status_t status = mcast_context_create(&params, out);
  if (status == MCAST_OK) entries_.push_back({std::move(settings), {*out, {}}});
  return status;
}

}  // namespace cepheus::uct
