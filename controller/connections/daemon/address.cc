// A text with the prefix "unix:" is a path; any other is divided at its last colon. dial() resolves
// and connects without blocking, and TCP sockets send without delay. The function that gives up
// closes the socket, so the callback comes with an error.
#include "controller/connections/daemon/address.h"

#include <sys/un.h>

#include <memory>

namespace cepheus::connections {
namespace {

constexpr std::string_view kUnix = "unix:";

template <typename AnySocket>
void close(AnySocket& socket) {
  asio::error_code ignored;
  socket.close(ignored);
}

}  // namespace

wire::Result<Address> Address::parse(const std::string& text) {
  Address address;
  if (text.starts_with(kUnix)) {
    address.path = text.substr(kUnix.size());
    if (address.path.empty() || address.path.size() >= sizeof(sockaddr_un{}.sun_path)) {
      return wire::invalid("'" + text + "': a UNIX socket's path has 1 to " +
                           std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) + " characters");
    }
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return wire::invalid("'" + text + "' is neither HOST:PORT nor unix:PATH");
  }
  address.host = text.substr(0, colon);
  address.port = text.substr(colon + 1);
  return address;
}

std::string Address::to_string() const {
  return path.empty() ? host + ":" + port : std::string(kUnix) + path;
}

std::string fill_in(const std::string& pattern, wire::Ipv4 host) {
  std::string text = pattern;
  const std::string name = host.to_string();
  for (std::size_t at = 0; (at = text.find("%h", at)) != std::string::npos; at += name.size()) {
    text.replace(at, 2, name);
  }
  return text;
}

GiveUp dial(asio::io_context& io, const Address& to,
            std::function<void(const asio::error_code&, Socket)> done) {
  if (!to.path.empty()) {
    auto socket = std::make_shared<asio::local::stream_protocol::socket>(io);
    socket->async_connect(to.path, [socket, done = std::move(done)](const asio::error_code& error) {
      done(error, Socket(std::move(*socket)));
    });
    return [socket] { close(*socket); };
  }
  auto resolver = std::make_shared<asio::ip::tcp::resolver>(io);
  auto socket = std::make_shared<asio::ip::tcp::socket>(io);
  auto is_given_up = std::make_shared<bool>(false);
  resolver->async_resolve(to.host, to.port, [=](const asio::error_code& error, auto found) {
    if (error || *is_given_up) return done(error, Socket(std::move(*socket)));
    asio::async_connect(*socket, found, [=](const asio::error_code& failed, const auto&) {
      asio::error_code ignored;
      if (!failed) socket->set_option(asio::ip::tcp::no_delay(true), ignored);
      done(failed, Socket(std::move(*socket)));
    });
    static_cast<void>(resolver);  // lives until it has answered
  });
  return [socket, is_given_up] {
    *is_given_up = true;
    close(*socket);
  };
}

}  // namespace cepheus::connections
