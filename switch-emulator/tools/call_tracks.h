// Collective calls of this user's programs as tracks of a recording: one for each rank of each
// communicator, at its host where that is known.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "support/recording/trace_file.h"
#include "support/reports/recorded_calls.h"

namespace cepheus::tools {

class CallTracks {
 public:
  // The process of the host that has this address, if any.
  using HostOf = std::function<std::optional<std::uint32_t>(std::uint32_t address)>;

  // `file` outlives it; calls that began before `since_ns` belong to an earlier recording.
  CallTracks(recording::TraceFile& file, std::string directory, std::int64_t since_ns,
             HostOf host_of);
  // Writes what is new in all rings.
  void look();

  std::uint64_t calls() const { return calls_; }
  std::uint64_t lost() const;  // overwritten before they were read

 private:
  static constexpr std::uint32_t kFirstProgram = 2'000'000;  // process

  struct Program {
    reports::CallRingReader ring;
    std::uint32_t process = 0;
    std::map<std::string, recording::Track> tracks;  // by communicator and rank
    std::map<recording::Track, std::string> last_path;
  };

  void add(Program& program, const reports::CallRingReader::Call& call);
  recording::Track track_of(Program& program, const reports::CallText& text);
  std::uint32_t process_of(const reports::CallRingReader& ring);

  recording::TraceFile& file_;
  const std::string directory_;
  const std::int64_t since_ns_;
  const HostOf host_of_;
  std::map<std::string, Program> programs_;  // by their ring's path
  std::uint32_t threads_ = 0;
  std::uint32_t strangers_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace cepheus::tools
