// The picture of a fabric in a browser: one page without outside resources, kept up to date by
// server-sent events (live/fabric_view.h).
//
//   GET /  /page.css  /page.js      the page
//   GET /view.json                  one view
//   GET /events                     a view twice a second, until the reader goes
//   POST /link  {"link", "loss" | "up"}   as `cepheusctl link`
//   POST /kill  {"host", "pid"}           the process at that host, if it still is that one
//
// POST only with `control`. A token must then be given, and wherever others than this machine's
// users may come: it is drawn anew each time and printed behind the page's address.
#pragma once

#include <string>

#include "switch-emulator/tools/http_server.h"

namespace cepheus::tools {

struct WebOptions {
  HttpAddress listen{"127.0.0.1", 8080};
  std::string fabric_socket;
  bool control = false;
};

// Serves until SIGINT or SIGTERM; prints where, once it does. A fabric that is not there may come.
wire::Result<void> serve_web(const WebOptions& options);

}  // namespace cepheus::tools
