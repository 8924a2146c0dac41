// Late members of reductions as spans of a recording, each at its host's row. A member that was late
// only between two looks at the fabric is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "support/recording/timeline.h"
#include "support/recording/trace_file.h"
#include "switch-emulator/live/status/late.h"

namespace cepheus::tools {

class LateTracks {
 public:
  static constexpr std::uint32_t kThread = recording::Timeline::kFirstOwnThread;

  // `file` and `nodes` outlive it. A span begins at `since_ns` at the earliest.
  LateTracks(recording::TraceFile& file, const std::vector<recording::Node>& nodes,
             std::int64_t since_ns)
      : file_(file), nodes_(nodes), since_ns_(since_ns) {}
  // Writes the spans of members that are late no more. These end at the look before.
  void look(const live::FabricStatus& status);
  // Writes the others, marked as unfinished.
  void close();

 private:
  struct Span {
    recording::Place begin;
    std::int64_t end_ns = 0;
    std::uint64_t unit = 0;
    recording::TraceFile::Json args;
  };
  // A group and its epoch, a switch, and the name of the host or trunk there.
  using Member = std::tuple<wire::McstId, std::uint16_t, std::string, std::string>;

  // Of its host, or of the switch with the trunk that leads to it. None: it came after the first look.
  std::optional<recording::Track> track_of(const live::LateMember& late);
  void write(const Span& span);

  recording::TraceFile& file_;
  const std::vector<recording::Node>& nodes_;
  const std::int64_t since_ns_;
  std::set<recording::Track> named_;
  std::map<Member, Span> late_;
};

}  // namespace cepheus::tools
