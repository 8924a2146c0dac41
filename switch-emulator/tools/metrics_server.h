// The page of metrics over HTTP, for Prometheus: GET /metrics. Runs in its own process, so that
// readers can't affect the data path.
//
// Bounded: a fixed number of requests at a time, a few more wait; each connection carries few
// requests. Each request must arrive, and its answer must be read, within 2 s. The page is made at
// most once a second.
#pragma once

#include <functional>
#include <string>

#include "switch-emulator/tools/http_server.h"

namespace cepheus::tools {

// Serves until SIGINT or SIGTERM; prints its address once it does. kUnavailable if the address is
// in use or not this machine's.
wire::Result<void> serve_metrics(const HttpAddress& address, std::function<std::string()> page);

}  // namespace cepheus::tools
