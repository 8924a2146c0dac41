// The addresses of daemons: "HOST:PORT" or "unix:PATH".
#pragma once

#include <asio.hpp>
#include <functional>
#include <string>

#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::connections {

using Socket = asio::generic::stream_protocol::socket;

struct Address {
  std::string path;        // of a UNIX socket; empty: TCP
  std::string host, port;  // of TCP

  static wire::Result<Address> parse(const std::string& text);
  std::string to_string() const;
};

// `pattern` with a host's address for each %h.
std::string fill_in(const std::string& pattern, wire::Ipv4 host);

// Connects, and calls back once with the socket or the reason of the failure. A call of the result
// ends the attempt and closes its descriptor: the kernel would try for minutes.
using GiveUp = std::function<void()>;
GiveUp dial(asio::io_context& io, const Address& to,
            std::function<void(const asio::error_code&, Socket)> done);

}  // namespace cepheus::connections
