// Requests of browsers to the fabric's web page (web_server.h): permissions, and the translation of
// POSTs for the fabric. Without sockets.
#pragma once

#include <httplib.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "switch-emulator/tools/http_server.h"

namespace cepheus::tools {

struct HttpRefusal {
  int status = 0;
  std::string why;
};
template <typename T>
using Answerable = tl::expected<T, HttpRefusal>;

class WebRequests {
 public:
  static constexpr std::size_t kMostBody = 4096;  // bytes of a POST, unpacked

  // An empty token: requests that name this machine by its address may read.
  WebRequests(const HttpAddress& listen, bool control, std::string token)
      : listen_(listen), control_(control), token_(std::move(token)) {}

  const std::string& token() const { return token_; }
  // Why it is refused, or nothing: for all requests, and for those with the fabric's data.
  std::optional<HttpRefusal> refuse(const httplib::Request& request) const;
  std::optional<HttpRefusal> refuse_reading(const httplib::Request& request) const;
  // Translates POST /link and POST /kill into the control socket's requests
  // (live/control/control_request.h).
  Answerable<nlohmann::json> link_request(const httplib::Request& request) const;
  Answerable<nlohmann::json> kill_request(const httplib::Request& request) const;

 private:
  Answerable<nlohmann::json> body_of(const httplib::Request& request) const;

  const HttpAddress listen_;
  const bool control_;
  const std::string token_;
};

}  // namespace cepheus::tools
