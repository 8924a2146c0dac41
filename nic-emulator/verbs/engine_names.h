// The engine's names, in which the driver speaks all the time. Where both have a class of one name
// (QueuePair, SharedReceiveQueue: the NIC's, and what a program holds of it) the driver's own is
// meant here.
#pragma once

namespace cepheus::rnic {}

namespace cepheus::verbs {

using namespace rnic;

}  // namespace cepheus::verbs
