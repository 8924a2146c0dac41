// Which groups of a context an asynchronous event of its device ends.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "wire/types.h"

namespace cepheus::mcast {

struct EventReach {
  bool all = false;
  std::optional<wire::Qpn> qpn;  // only the group of this queue pair
};

// `port`: the context's own. Events of the device's other ports are ignored.
inline EventReach reach_of(const ibv_async_event& event, std::uint8_t port) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      return {true, {}};
    case IBV_EVENT_PORT_ERR:
      return {event.element.port_num == port, {}};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return {false, wire::Qpn(event.element.qp->qp_num)};
    default:
      return {};  // news that need no answer
  }
}

}  // namespace cepheus::mcast
