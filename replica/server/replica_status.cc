// A replica's status text.
#include <nlohmann/json.hpp>

#include "replica/server/replica_server.h"

namespace cepheus::replica {

constexpr const char* kLosses[] = {"none", "program", "memory", "all"};  // as Loss

std::string ReplicaServer::status() const {
  const ReplicaRecord& record = engine_->record();
  nlohmann::json members = nlohmann::json::array();
  for (unsigned r = 0; r < stored_.count; ++r) {
    if (record.config.members.has(r)) members.push_back(r);
  }
  nlohmann::json out = {
      {"volume", stored_.volume},
      {"role", "replica"},
      {"size", stored_.geometry.size},
      {"block", stored_.geometry.block},
      {"chunk", stored_.geometry.chunk},
      {"chunks", stored_.geometry.chunks()},
      {"place", stored_.place},
      {"count", stored_.count},
      {"promised", {{"number", record.promised.number}, {"writer", record.promised.writer}}},
      {"config",
       {{"epoch", record.config.epoch.number},
        {"writer", record.config.epoch.writer},
        {"version", record.config.version},
        {"members", members}}},
      {"loss", kLosses[static_cast<std::size_t>(record.loss)]},
      {"marked_chunks", record.marks.count()},
      {"has_writer", engine_->has_writer()},
      {"group", data_path_.state()}};
  if (engine_->has_writer()) {
    out["sync"] = {{"in_sync", progress_.is_in_sync},
                   {"lacking_chunks", progress_.lacking},
                   {"copied_bytes", progress_.copied_bytes},
                   {"copy_bytes_per_second", progress_.copy_rate}};
  }
  // The name may have any bytes.
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cepheus::replica
