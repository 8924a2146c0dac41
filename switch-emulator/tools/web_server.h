// A fabric in a browser: one page without external resources, updated by server-sent events
// (live/status/fabric_view.h).
//
//   GET /  /page.css  /page.js      the page
//   GET /view.json                  one view
//   GET /events                     a view twice a second, until the reader disconnects
//   POST /link  {"link", "loss" | "up"}   as `cepheusctl link`
//   POST /kill  {"host", "pid"}           kills the process at that host, if it is still its client
//
// POST only with `control`. It requires a token, as do addresses that other machines can reach. The
// token is new for each run and printed behind the page's address.
#pragma once

#include <string>

#include "switch-emulator/tools/http_server.h"

namespace cepheus::tools {

struct WebOptions {
  HttpAddress listen{"127.0.0.1", 8080};
  std::string fabric_socket;
  bool control = false;
};

// Serves until SIGINT or SIGTERM; prints its address once it does. The fabric may start later.
wire::Result<void> serve_web(const WebOptions& options);

}  // namespace cepheus::tools
