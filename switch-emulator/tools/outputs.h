// The outputs of cepheusctl's subcommands, as text or JSON. They fail if no fabric answers, or if it
// refuses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/status.h"
#include "wire/result.h"

namespace cepheus::tools {

struct OutputOptions {
  std::string socket = live::kDefaultSocket;
  bool as_json = false;
  std::optional<double> watch_seconds;  // with it, a JSON document has one line
};

bool is_terminal();  // standard output
bool may_colour();

wire::Result<std::string> show(const std::vector<live::View>& views, const OutputOptions& options);
std::string describe(const OutputOptions& options);  // all readings
wire::Result<std::string> late(const OutputOptions& options);
// `svg`: the file of a drawing; "-": standard output; empty: no drawing.
wire::Result<std::string> map_of(const OutputOptions& options, const std::string& svg);
// In Prometheus's text format.
wire::Result<std::string> metrics(const OutputOptions& options);
wire::Result<std::string> answer_to(const nlohmann::json& request, const OutputOptions& options);
// These need no fabric.
wire::Result<std::string> explanation(const OutputOptions& options);
wire::Result<std::string> nearest(const OutputOptions& options,
                                  const std::vector<std::string>& devices);

}  // namespace cepheus::tools
