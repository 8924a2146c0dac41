// The first request begins a recording, each further one extends its lease and takes the sightings
// so far. A request of another recorder is refused while the lease runs. If the datapath has ended
// the recording meanwhile, the request begins a new one, unless it is the end.
#include "switch-emulator/live/control/record_request.h"

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"

namespace cepheus::live {

using nlohmann::json;

void RecordingSession::begin(std::uint64_t recorder, std::uint32_t packets_per_second,
                             wire::Instant now) {
  recorder_ = recorder;
  const auto per_window = packets_per_second / static_cast<std::uint32_t>(std::chrono::seconds(1) /
                                                                          PacketRecorder::kWindow);
  packets_ = std::make_shared<PacketRecorder>(datapath_.switch_count(), now + kLease, per_window);
  tasks_.run([this] { datapath_.record(packets_); });
}

void RecordingSession::end() {
  tasks_.run([this] { datapath_.record(nullptr); });
  packets_.reset();
}

json RecordingSession::answer(const RecordRequest& request, wire::Instant now) {
  bool is_running = packets_ != nullptr && !packets_->is_over(now);
  if (is_running && request.recorder != recorder_) {
    return refusal("another program records this fabric: wait until it ends, or 2 s after it died");
  }
  // The datapath may have ended it meanwhile.
  is_running = is_running && packets_->extend(now + kLease);
  if (!is_running && request.end) return refusal("that recording has ended");
  if (!is_running) begin(request.recorder, request.packets_per_second, now);
  json events = json::array();
  for (const recording::Sighting& seen : packets_->take(kMostAtOnce)) {
    for (const std::uint64_t word : seen.words()) events.push_back(word);
  }
  const json answer = {{"ok", true},
                       {"counters", fabric::incident_names()},
                       {"events", std::move(events)},
                       {"lost", packets_->lost()},
                       {"passed_over", packets_->passed_over()}};
  if (request.end) end();
  return answer;
}

}  // namespace cepheus::live
