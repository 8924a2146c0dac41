// What a volume's writer says of itself.
#include <nlohmann/json.hpp>

#include "replica/volume/volume.h"

namespace cepheus::replica {
namespace {

const char* name_of(Writer::Phase phase) {
  switch (phase) {
    case Writer::Phase::kAcquiring:
      return "acquiring";
    case Writer::Phase::kRecovering:
      return "recovering";
    case Writer::Phase::kServing:
      return "serving";
    case Writer::Phase::kFenced:
      break;
  }
  return "fenced";
}

}  // namespace

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
    if (!link.complaint().empty()) one["why"] = link.complaint();
    replicas.push_back(std::move(one));
  }
  const Epoch epoch = engine_->epoch();
  return nlohmann::json{{"volume", options_.volume},
                        {"role", "writer"},
                        {"phase", name_of(engine_->phase())},
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
      .dump();
}

}  // namespace cepheus::replica
