// The page of metrics over HTTP, for Prometheus: GET /metrics. A process of its own, so that nothing
// a reader does reaches the data path.
//
// Bounded: so many requests at a time, a few more wait; each connection carries few requests. Each
// of them has to be there, and its answer has to be read, within 2 s. The page is made once a second
// at most, however many ask.
#pragma once

#include <functional>
#include <string>

#include "switch-emulator/tools/http_server.h"

namespace cepheus::tools {

// Serves until SIGINT or SIGTERM; prints where, once it does. kUnavailable if the address is taken
// or not ours.
wire::Result<void> serve_metrics(const HttpAddress& address, std::function<std::string()> page);

}  // namespace cepheus::tools
