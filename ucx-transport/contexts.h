// libmcast's contexts of a memory domain: interfaces of one worker that have equal settings share
// one, so that one call progresses their groups.
#pragma once

#include <mcast/mcast.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ucx-transport/uct_layout.h"

namespace cepheus::uct {

// mcast_context_params_t's, as variables of UCX have them. 0 and "": libmcast's default.
struct ContextConfig {
  char* key_file;
  char* mcst_pool;
  int gid_index;
  unsigned mrp_port;
  size_t path_mtu;
  size_t max_eager_memory;
  double register_timeout, register_silence, progress_timeout, link_outage;  // seconds
  unsigned traffic_class, service_level, flow_label;
};

// They last as long as the domain, because memory that is registered with it belongs to them.
class Contexts {
 public:
  // `device` "": the nearest. Blocks while libmcast opens the device. mcast_last_error() has the
  // text.
  mcast_status_t open(uct_worker_h worker, const std::string& device, const ContextConfig& config,
                      mcast_context_h* out);

 private:
  struct Settings {
    explicit Settings(uct_worker_h of, std::string on, const ContextConfig& config);
    mcast_context_params_t params() const;
    bool operator==(const Settings&) const = default;

    uct_worker_h worker;  // it progresses the context
    std::string device, key_file, mcst_pool;
    int gid_index;
    unsigned mrp_port;
    size_t path_mtu, max_eager_memory;
    unsigned register_timeout_ms, register_silence_ms, progress_timeout_ms, link_outage_ms;
    unsigned traffic_class, service_level, flow_label;
  };
  struct Destroy {
    void operator()(mcast_context_h context) const { mcast_context_destroy(context); }
  };
  struct Entry {
    Settings settings;
    std::unique_ptr<mcast_context, Destroy> context;
  };
  std::mutex mutex_;  // workers of several threads may share a domain
  std::vector<Entry> entries_;
};

}  // namespace cepheus::uct
