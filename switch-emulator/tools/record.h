// `cepheusctl record`: what a running fabric's switches and this user's MPI programs do, as a
// timeline for ui.perfetto.dev.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wire/result.h"

namespace cepheus::tools {

struct RecordOptions {
  std::string fabric_socket;
  std::string file;
  std::optional<double> seconds;              // else until interrupted
  std::uint32_t packets_per_second = 20'000;  // sampled; what is rare is recorded always
};

// Says on standard output when it has begun, and at the end what it has. Ends early, with a whole
// file, when the fabric does. Errors: the file, the fabric, or the reports' directory.
wire::Result<void> record(const RecordOptions& options);

}  // namespace cepheus::tools
