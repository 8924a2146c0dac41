#include "switch-emulator/live/record_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/control_protocol.h"

namespace cepheus::live {
namespace {

using nlohmann::json;

constexpr std::uint64_t kFewest = 100, kMost = 1'000'000;  // packets a second

}  // namespace

void RecordDesk::begin(std::uint64_t recorder, std::uint32_t packets_per_second,
                       wire::Instant now) {
  recorder_ = recorder;
  const auto per_window = packets_per_second / static_cast<std::uint32_t>(std::chrono::seconds(1) /
                                                                          PacketRecorder::kWindow);
  packets_ = std::make_shared<PacketRecorder>(datapath_.switch_count(), now + kLease, per_window);
  errands_.run([this] { datapath_.record(packets_); });
}

void RecordDesk::end() {
  errands_.run([this] { datapath_.record(nullptr); });
  packets_.reset();
}

json RecordDesk::answer(const json& request, wire::Instant now) {
  const auto recorder = request.find("recorder");
  if (recorder == request.end() || !recorder->is_number_unsigned()) {
    return refusal("who records? {\"ask\": \"record\", \"recorder\": a number of one's own}");
  }
  const auto who = recorder->get<std::uint64_t>();
  const auto wanted = request.find("packets_per_second");
  const bool has_rate = wanted != request.end() && wanted->is_number_unsigned();
  const auto rate = has_rate ? std::clamp(wanted->get<std::uint64_t>(), kFewest, kMost) : 20'000;
  bool is_running = packets_ != nullptr && !packets_->is_over(now);
  if (is_running && who != recorder_) {
    return refusal("somebody else records this fabric: wait for the end, or for 2 s if he died");
  }
  // The datapath may have ended it since.
  is_running = is_running && packets_->extend(now + kLease);
  const auto ending = request.find("end");
  const bool ends = ending != request.end() && *ending == true;
  if (!is_running && ends) return refusal("that recording has ended");
  if (!is_running) begin(who, static_cast<std::uint32_t>(rate), now);
  json events = json::array();
  for (const recording::Sighting& seen : packets_->take(kMostAtOnce)) {
    for (const std::uint64_t word : seen.words()) events.push_back(word);
  }
  const json answer = {{"ok", true},
                       {"counters", fabric::incident_names()},
                       {"events", std::move(events)},
                       {"lost", packets_->lost()},
                       {"passed_over", packets_->passed_over()}};
  if (ends) end();
  return answer;
}

}  // namespace cepheus::live
