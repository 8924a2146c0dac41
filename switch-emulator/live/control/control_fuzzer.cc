// Any line on a fabric's control socket: refused in one line of JSON, or a request within its
// bounds. Requests about links are carried out.
//
// Input: after an even first byte, the line. After an odd one, numbers of the words of a line, so
// that mutations reach beyond the syntax.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "net/shapes.h"
#include "switch-emulator/live/control/control_connection.h"
#include "switch-emulator/live/control/link_request.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/printable.h"

namespace {

using namespace cepheus::live;  // NOLINT: a fuzzer's own file

const std::string kDeep(1024, '[');
const std::string kWords[] = {"{",
                              "}",
                              ":",
                              ",",
                              "[",
                              "]",
                              kDeep,
                              "\"",
                              "{\"ask\":\"status\"",
                              "{\"ask\":\"link\"",
                              "{\"ask\":\"record\"",
                              "{\"ask\":\"kill\"",
                              "{\"ask\":\"stop\"",
                              "{\"ask\":\"reload\"",
                              "{\"ask\":\"reset_counters\"",
                              ",\"link\":",
                              ",\"direction\":",
                              ",\"loss\":",
                              ",\"up\":",
                              ",\"recorder\":",
                              ",\"packets_per_second\":",
                              ",\"end\":",
                              ",\"host\":",
                              ",\"pid\":",
                              "\"h0\"",
                              "\"h7\"",
                              "\"leaf0\"",
                              "\"leaf0-spine1\"",
                              "\"spine1-leaf0#2\"",
                              "\"to-spine1\"",
                              "\"both\"",
                              "\"down\"",
                              "true",
                              "false",
                              "null",
                              "0",
                              "1",
                              "0.5",
                              "-0.0",
                              "1e-400",
                              "1e400",
                              "2147483648",
                              "4294967313",
                              "18446744073709551615",
                              "-9223372036854775808",
                              "\"\\ud800\"",
                              "\"\\u0000\"",
                              "\"\x7f\"",
                              "\"\xFF\""};

void require(bool holds) {
  if (!holds) std::abort();
}

std::string line_of(std::span<const std::uint8_t> bytes) {
  if (bytes.empty() || bytes[0] % 2 == 0) return {bytes.begin(), bytes.end()};
  std::string line;
  for (const std::uint8_t byte : bytes.subspan(1)) line += kWords[byte % std::size(kWords)];
  line.resize(std::min(line.size(), ControlConnection::kMaxRequests));
  return line;
}

class Fabric {
 public:
  Fabric() { datapath_.start(now_); }
  cepheus::wire::Result<void> set(const LinkRequest& request) {
    now_ += std::chrono::milliseconds(1);
    datapath_.poll(now_);
    return find_links(datapath_, request).map([&](const std::vector<std::uint32_t>& links) {
      set_links(datapath_, now_, links, request);
    });
  }
  const Datapath& datapath() const { return datapath_; }

 private:
  const cepheus::net::Topology topology_ = *cepheus::net::from_shape("leaf-spine:2x2x2");
  cepheus::wire::Instant now_{std::chrono::seconds(1)};
  Datapath datapath_{topology_, *topology_.plan()};
};

void check_refusal(const std::string& why) {
  const std::string line = json_text(refusal(why));
  require(!why.empty() && std::all_of(line.begin(), line.end(), [](char c) { return c >= ' '; }));
}

void check(const LinkRequest& request) {
  static Fabric fabric;
  const auto done = fabric.set(request);
  if (!done) return check_refusal(done.error().text);
  for (const Datapath::Cable& cable : fabric.datapath().cables()) {
    for (const std::uint32_t link : {cable.to_far, cable.to_near}) {
      const double loss = fabric.datapath().link_state(link).loss;
      require(loss >= 0 && loss <= 1);
    }
  }
}
void check(const RecordRequest& request) {
  require(request.packets_per_second >= 100 && request.packets_per_second <= 1'000'000);
}
void check(const KillRequest& request) { require(request.pid > 0); }
template <typename Request>
void check(const Request&) {}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = parse_control_request(line_of({data, size}));
  if (!request) {
    check_refusal(request.error().text);
  } else {
    std::visit([](const auto& parsed) { check(parsed); }, *request);
  }
  return 0;
}
