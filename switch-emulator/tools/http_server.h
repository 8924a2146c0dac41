// An HTTP server with few workers and short time limits, in its own process, so that readers can't
// affect the data path.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "wire/result.h"

namespace httplib {
class Server;
}

namespace cepheus::tools {

struct HttpAddress {
  std::string host;
  std::uint16_t port = 0;  // 0: any free one

  bool is_loopback() const;
};
// "127.0.0.1:9464", "[::1]:9464", ":9464" for every interface. kInvalid for other texts.
wire::Result<HttpAddress> parse_http_address(const std::string& text);

struct HttpLimits {
  std::size_t workers = 2;  // requests at a time
  std::size_t waiting = 8;  // connections beyond them; more wait in the kernel's own short queue
  std::size_t requests_per_connection = 16;
  std::size_t request_bytes = 16 << 10;  // headers and body, as they come
  // Time limits: for the first byte of a request; from there for all of it; for the peer to read an
  // answer, or one of several events, plus a second for each MiB.
  std::chrono::milliseconds time_limit{2000};
};

// Serves until SIGINT or SIGTERM. `set_up` adds the handlers; `on_address` is called with
// "http://ADDRESS:PORT" once it serves, `ending` before it waits for all requests at the end.
// kUnavailable if the address is in use or not this machine's.
wire::Result<void> serve_http(
    const HttpAddress& address, const HttpLimits& limits,
    const std::function<void(httplib::Server&)>& set_up,
    const std::function<void(const std::string&)>& on_address,
    const std::function<void()>& ending = [] {});

}  // namespace cepheus::tools
