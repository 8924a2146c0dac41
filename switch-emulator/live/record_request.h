// Who records what a fabric's packets do: one at a time, and only as long as he asks.
//
//   {"ask": "record", "recorder": 17, "packets_per_second": 20000}
//       -> {"ok": true, "counters": [names], "events": [four numbers each (recording::Sighting)],
//           "lost": n, "passed_over": n}
//   {"ask": "record", "recorder": 17, "end": true}    -> the same, and that was the end
//
// Counts are those since the recording began; nodes are switches by their number.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "switch-emulator/live/control_request.h"
#include "switch-emulator/live/datapath.h"
#include "switch-emulator/live/packet_recorder.h"
#include "switch-emulator/live/task_queue.h"

namespace cepheus::live {

class RecordSession {
 public:
  // Without another question within this time a recording has ended.
  static constexpr wire::Duration kLease = std::chrono::seconds(2);

  RecordSession(Datapath& datapath, TaskQueue& tasks) : datapath_(datapath), tasks_(tasks) {}
  nlohmann::json answer(const RecordRequest& request, wire::Instant now);

 private:
  static constexpr std::size_t kMostAtOnce = 1 << 14;  // sightings of an answer

  void begin(std::uint64_t recorder, std::uint32_t packets_per_second, wire::Instant now);
  void end();

  Datapath& datapath_;
  TaskQueue& tasks_;
  std::uint64_t recorder_ = 0;  // whose it is
  std::shared_ptr<PacketRecorder> packets_;
};

}  // namespace cepheus::live
