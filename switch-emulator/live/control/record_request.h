// Records a fabric's packets: one recorder at a time, and only while it sends requests.
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

#include "switch-emulator/live/control/control_request.h"
#include "switch-emulator/live/control/task_queue.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/live/datapath/packet_recorder.h"

namespace cepheus::live {

class RecordingSession {
 public:
  // A recording ends without another request within this time.
  static constexpr wire::Duration kLease = std::chrono::seconds(2);

  RecordingSession(Datapath& datapath, TaskQueue& tasks) : datapath_(datapath), tasks_(tasks) {}
  nlohmann::json answer(const RecordRequest& request, wire::Instant now);

 private:
  static constexpr std::size_t kMostAtOnce = 1 << 14;  // sightings of an answer

  void begin(std::uint64_t recorder, std::uint32_t packets_per_second, wire::Instant now);
  void end();

  Datapath& datapath_;
  TaskQueue& tasks_;
  std::uint64_t recorder_ = 0;  // of the last recording
  std::shared_ptr<PacketRecorder> packets_;
};

}  // namespace cepheus::live
