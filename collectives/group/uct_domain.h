// The process's access to groups through UCX. UCX's constructors change a process, so only the
// module of uct_channel.cc links UCX, and uct_domain.cc loads that module when it is needed.
#pragma once

#include <mcast/mcast.h>

#include <memory>
#include <string>

#include "collectives/group/channel.h"

namespace cepheus::coll {

class UctDomain {
 public:
  // `device` null: the nearest. Null: `why` has the reason.
  static std::unique_ptr<UctDomain> open(const char* device, std::string& why);
  virtual ~UctDomain() = default;

  // The context of all channels, as mcast_context_create().
  virtual mcast_status_t open_context(const mcast_context_params_t& params,
                                      mcast_context_h* out) = 0;
  // See DirectChannel::open().
  virtual std::unique_ptr<Channel> open_channel(const mcast_group_params_t& params,
                                                Channel::Arrival arrival, void* arg,
                                                mcast_status_t& status) = 0;
};

// The module's one function. `directory`: the module's, where rc_mcast is. `is_ours`: the program
// had not loaded UCX, so its signal handlers go.
inline constexpr char kOpenUctDomain[] = "cepheus_open_uct_domain";
using OpenUctDomainFunction = std::unique_ptr<UctDomain> (*)(const std::string& directory,
                                                             const char* device, bool is_ours,
                                                             std::string& why);

}  // namespace cepheus::coll
