// What browsers may ask of the fabric's picture (web_server.h): who may, and what a POST is for the
// fabric. Without sockets.
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

  // An empty token: whoever calls this machine by its address may read.
  WebRequests(const HttpAddress& listen, bool control, std::string token)
      : listen_(listen), control_(control), token_(std::move(token)) {}

  const std::string& token() const { return token_; }
  // Why it is not answered, or nothing: for everything, and for what the fabric says.
  std::optional<HttpRefusal> refuse(const httplib::Request& request) const;
  std::optional<HttpRefusal> refuse_reading(const httplib::Request& request) const;
  // The control socket's requests (live/control_request.h) that POST /link and POST /kill are.
  Answerable<nlohmann::json> link_request(const httplib::Request& request) const;
  Answerable<nlohmann::json> kill_request(const httplib::Request& request) const;

 private:
  Answerable<nlohmann::json> body_of(const httplib::Request& request) const;

  const HttpAddress listen_;
  const bool control_;
  const std::string token_;
};

}  // namespace cepheus::tools
