// Any request to the fabric's web page: refused with a reason, or accepted by the fabric's control
// socket as one that the page may send.
//
// Input: a byte of flags, then Host, content type, token and body, separated by zeros.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "switch-emulator/live/control/control_request.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/tools/web_request.h"

namespace {

using namespace cepheus;  // NOLINT: a fuzzer's own file
using nlohmann::json;

const std::string kToken = "0123456789abcdef0123456789abcdef";
enum Flags : std::uint8_t { kControl = 1, kHasToken = 2, kRightToken = 4, kRightType = 8 };

void require(bool holds) {
  if (!holds) std::abort();
}

std::string take_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return std::string(part);
}

void check(const tools::HttpRefusal& refusal) {
  require((refusal.status == 400 || refusal.status == 403) && !refusal.why.empty());
}

template <typename Kind>
void check(const tools::Answerable<json>& request, std::string_view kind, bool may_change) {
  require(!request || may_change);
  if (!request) return check(request.error());
  require(request->at("ask") == kind);
  const std::string line = live::json_text(*request);
  require(line.find('\n') == std::string::npos);
  const auto parsed = live::parse_control_request(line);
  require(!parsed || std::holds_alternative<Kind>(*parsed));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t flags = data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  httplib::Request request;
  request.headers.emplace("Host", take_part(rest));
  const std::string type = take_part(rest), token = take_part(rest);
  request.headers.emplace("Content-Type", (flags & kRightType) != 0 ? "application/json" : type);
  request.params.emplace("token", (flags & kRightToken) != 0 ? kToken : token);
  request.body = rest;

  const bool has_token = (flags & kHasToken) != 0, has_control = (flags & kControl) != 0;
  const tools::WebRequests requests({"127.0.0.1", 8080}, has_control, has_token ? kToken : "");
  if (const auto refusal = requests.refuse(request)) check(*refusal);
  const auto reading = requests.refuse_reading(request);
  const bool knows_token = request.params.find("token")->second == kToken;
  require(reading.has_value() == (has_token && !knows_token));
  if (reading) check(*reading);
  const bool may_change = has_control && !reading;
  check<live::LinkRequest>(requests.link_request(request), "link", may_change);
  check<live::KillRequest>(requests.kill_request(request), "kill", may_change);
  return 0;
}
