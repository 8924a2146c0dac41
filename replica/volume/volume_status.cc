// The state of a volume's writer: for its replicas (progress_of()), for programs (JSON), and for
// people (failure(), missing_replicas()). Lost data are listed as ranges of bytes, adjoining chunks
// joined; the text names the first eight, the JSON all.
// A volume that has not ended has no failure. Bytes that are no UTF-8 are replaced.
#include <nlohmann/json.hpp>

#include "replica/volume/volume.h"

namespace cepheus::replica {
namespace {

// As Writer::Phase.
constexpr const char* kPhases[] = {"acquiring", "recovering", "serving", "fenced", "failed"};

struct Bytes {
  std::uint64_t offset = 0, length = 0;
};

std::vector<Bytes> ranges_of(const ChunkBitmap& chunks, const Geometry& geometry) {
  std::vector<Bytes> ranges;
  for (std::uint32_t c = 0; c < chunks.chunks(); ++c) {
    if (!chunks.has(c)) continue;
    const std::uint64_t at = geometry.chunk_offset(c);
    if (ranges.empty() || ranges.back().offset + ranges.back().length != at) {
      ranges.push_back({at, 0});
    }
    ranges.back().length += geometry.chunk_bytes(c);
  }
  return ranges;
}

}  // namespace

Progress Volume::progress_of(unsigned replica) const {
  return {engine_->is_in_sync(replica), engine_->lacking(replica), path_->copied_bytes(),
          copy_rate_};
}

std::string Volume::missing_replicas() const {
  std::string text;
  for (const ReplicaLink& link : links_) {
    if (link.is_welcomed()) continue;
    text += (text.empty() ? "" : "; ") + link.name() +
            (link.reason().empty() ? "" : ": " + link.reason());
  }
  if (!text.empty()) return "the volume needs absent replicas: " + text;
  if (path_ && !path_->last_failure().empty()) return path_->last_failure();
  return "the replicas are not equal yet: give open a longer time limit";
}

std::string Volume::failure() const {
  if (engine_->phase() == Writer::Phase::kFenced) return "another program has taken the volume";
  if (engine_->phase() != Writer::Phase::kFailed) return "";
  if (engine_->has_lost_disks()) {
    return "the disks of all replicas in sync are new, and all data of the volume is lost: remove "
           "each replica's file and its FILE.cepheus, serve it again with --create, and restore "
           "the "
           "data from a backup";
  }
  constexpr std::size_t kMostNamed = 8;
  const auto ranges = ranges_of(engine_->lost(), geometry_);
  std::string text =
      "all replicas in sync lost their memory, and with it data that was acknowledged and not "
      "flushed, in bytes";
  for (std::size_t i = 0; i < ranges.size() && i < kMostNamed; ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranges[i].offset) + " to " +
            std::to_string(ranges[i].offset + ranges[i].length - 1);
  }
  if (ranges.size() > kMostNamed) text += ", and more";
  return text + ": open the volume again, check these bytes, and write them again";
}

std::string Volume::status_json() const {
  nlohmann::json replicas = nlohmann::json::array(), in_sync = nlohmann::json::array();
  for (unsigned r = 0; r < links_.size(); ++r) {
    const ReplicaLink& link = links_[r];
    const bool is_alike = engine_->is_in_sync(r);
    if (is_alike) in_sync.push_back(r);
    nlohmann::json one = {{"address", link.name()},
                          {"state", is_alike             ? "in sync"
                                    : link.is_welcomed() ? "copying"
                                                         : "away"},
                          {"lacking_chunks", engine_->lacking(r)}};
    if (!link.reason().empty()) one["why"] = link.reason();
    replicas.push_back(std::move(one));
  }
  nlohmann::json lost = nlohmann::json::array();
  for (const Bytes& range : ranges_of(engine_->lost(), geometry_)) {
    lost.push_back({{"offset", range.offset}, {"length", range.length}});
  }
  const Epoch epoch = engine_->epoch();
  return nlohmann::json{{"volume", options_.volume},
                        {"role", "writer"},
                        {"phase", kPhases[static_cast<std::size_t>(engine_->phase())]},
                        {"failure", failure()},
                        {"lost", lost},
                        {"epoch", {{"number", epoch.number}, {"writer", epoch.writer}}},
                        {"config_version", engine_->config().version},
                        {"config_on_record", engine_->config_is_confirmed()},
                        {"in_sync", in_sync},
                        {"replicas", replicas},
                        {"chunk", geometry_.chunk},
                        {"chunks", geometry_.chunks()},
                        {"marked_chunks", engine_->marked()},
                        {"requests", engine_->under_way()},
                        {"requests_done", requests_done_},
                        {"copied_bytes", path_->copied_bytes()},
                        {"copy_bytes_per_second", copy_rate_},
                        {"groups", path_->groups_formed()},
                        {"multicast", to_string(options_.multicast)},
                        {"last_group_failure", path_->last_failure()}}
      // Names, and replicas' reasons, may have any bytes.
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cepheus::replica
