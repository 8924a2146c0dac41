// Reading needs the token, if there is one; without one the Host header must name this machine,
// which defeats DNS rebinding. Changing needs --control, the token, and a JSON body of kMostBody
// bytes at most, which forms of other pages can't send. Only known keys are passed on. Tokens are
// compared in constant time.
#include "switch-emulator/tools/web_request.h"

namespace cepheus::tools {
namespace {

using httplib::Request;
using nlohmann::json;

constexpr int kForbidden = 403, kBadRequest = 400;

// Constant time, wherever they differ.
bool is_same(const std::string& given, const std::string& token) {
  if (given.size() != token.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ token[i]);
  }
  return difference == 0;
}

tl::unexpected<HttpRefusal> refusal(int status, std::string why) {
  return tl::unexpected(HttpRefusal{status, std::move(why)});
}

}  // namespace

// A foreign page could make its own name resolve to this machine. So without a token, requests must
// name this machine by its address.
std::optional<HttpRefusal> WebRequests::refuse(const Request& request) const {
  if (!token_.empty()) return std::nullopt;
  std::string host = request.get_header_value("Host");
  const std::size_t colon = host.rfind(':');
  if (colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    host.resize(colon);
  }
  if (host == "localhost" || host == "[::1]" || host == listen_.host) return std::nullopt;
  return HttpRefusal{kForbidden, "this page is served to this machine: open it by its address"};
}

std::optional<HttpRefusal> WebRequests::refuse_reading(const Request& request) const {
  if (token_.empty() || is_same(request.get_param_value("token"), token_)) return std::nullopt;
  return HttpRefusal{kForbidden, "the token is missing or wrong: open the address as printed"};
}

// Forms of other pages can't send this type.
Answerable<json> WebRequests::body_of(const Request& request) const {
  if (!control_) return refusal(kForbidden, "read only: start cepheusctl web with --control");
  if (auto refused = refuse_reading(request)) return tl::unexpected(std::move(*refused));
  const bool is_json = request.get_header_value("Content-Type") == "application/json" &&
                       request.body.size() <= kMostBody;
  json body = is_json ? json::parse(request.body, nullptr, false) : json();
  if (!body.is_object()) return refusal(kBadRequest, "send a JSON object");
  return body;
}

Answerable<json> WebRequests::link_request(const Request& request) const {
  auto body = body_of(request);
  if (!body) return tl::unexpected(std::move(body.error()));
  json link = {{"ask", "link"}, {"direction", "both"}};
  for (const char* key : {"link", "loss", "up"}) {
    if (const auto found = body->find(key); found != body->end()) link[key] = std::move(*found);
  }
  return link;
}

Answerable<json> WebRequests::kill_request(const Request& request) const {
  const auto body = body_of(request);
  if (!body) return tl::unexpected(body.error());
  const auto host = body->find("host"), pid = body->find("pid");
  if (host == body->end() || !host->is_string() || pid == body->end() ||
      !pid->is_number_integer()) {
    return refusal(kBadRequest, "name a host and the process there");
  }
  return json{{"ask", "kill"}, {"host", *host}, {"pid", *pid}};
}

}  // namespace cepheus::tools
