// `cepheusctl record`: activities of a running fabric's switches and of this user's MPI programs,
// as a timeline for ui.perfetto.dev.
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
  std::uint32_t packets_per_second = 20'000;  // sampled; rare packets are recorded always
};

// Prints a line when it begins, and a summary at the end. If the fabric ends earlier, it ends with
// a complete file. Errors: the file, the fabric, or the reports' directory.
wire::Result<void> record(const RecordOptions& options);

}  // namespace cepheus::tools
