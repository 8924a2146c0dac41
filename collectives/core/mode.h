// The parameter `mode`. Without the C++ library: the component's file reads it.
#pragma once

namespace cepheus::coll {

enum class Mode : int { kOff = 0, kTry = 1, kRequire = 2 };
inline constexpr const char* kModes[] = {"off", "try", "require"};
inline constexpr char kModeHelp[] =
    "Choose when to multicast; off: never; try: if the network can, else Open MPI's own "
    "algorithms run; require: end the job with an error if the network can't";

}  // namespace cepheus::coll
