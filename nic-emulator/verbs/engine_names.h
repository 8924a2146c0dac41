// The engine's names, which the driver uses everywhere. Where both have a class of one name
// (QueuePair, SharedReceiveQueue: the NIC's, and the program's handle), the driver's own is meant
// here.
#pragma once

namespace cepheus::rnic {}

namespace cepheus::verbs {

using namespace rnic;

}  // namespace cepheus::verbs
