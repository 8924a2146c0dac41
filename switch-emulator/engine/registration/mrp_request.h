// A parsed control datagram.
#pragma once

#include "switch-emulator/engine/group_table.h"
#include "wire/ecn.h"
#include "wire/mrp.h"
#include "wire/roce.h"

namespace cepheus::fabric {

struct MrpRequest {
  const wire::UdpDatagram& datagram;
  const wire::MrpMessage& message;

  McstId id() const { return message.header.mcst_id; }
  std::uint16_t epoch() const { return message.header.epoch; }
  Leader leader() const {
    return {datagram.ip.source, message.header.instance, datagram.udp.source_port,
            wire::without_ecn(datagram.ip.tos)};
  }
};

}  // namespace cepheus::fabric
