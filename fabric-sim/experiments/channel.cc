#include "fabric-sim/experiments/channel.h"

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {
Channel::Channel(Testbed& testbed, std::size_t from, std::size_t to)
    : source_(testbed, testbed.network().host(from)), sink_(testbed, testbed.network().host(to)) {
  connect(source_.host(), source_.qpn(), {sink_.host().address(), sink_.qpn(), kFirstPsn});
  connect(sink_.host(), sink_.qpn(), {source_.host().address(), source_.qpn(), kFirstPsn});
  sink_.begin();
}

}  // namespace cepheus::sim
