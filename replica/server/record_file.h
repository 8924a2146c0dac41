// A replica's record on disk, beside its data: who it is, and what its engine must not forget.
//
// Two slots of one file, of which the older is overwritten and synchronised: one fdatasync a save, and no new file, since
// marks are on the way of writes. Whatever is interrupted, the other slot is whole; a checksum says which is. The mark of
// a chunk has to survive the host: after a loss of power everywhere nothing else says where replicas may differ.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replica/engine/replica_engine.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::replica {

struct StoredReplica {
  std::string volume;
  Geometry geometry;
  std::uint8_t place = 0, count = 0;  // in the volume's list; count 0: no writer has said yet
  std::string boot;  // of the host, when it was saved; "" if its memory went with the program
  ReplicaRecord record;
};

// This host's, which changes with each start.
std::string boot_id();

std::vector<std::uint8_t> encode_record(const StoredReplica& stored, std::uint64_t sequence);
// Nothing, if it is damaged, or none.
struct DecodedRecord {
  std::uint64_t sequence = 0;
  StoredReplica stored;
};
std::optional<DecodedRecord> decode_record(std::span<const std::uint8_t> slot);

class RecordFile {
 public:
  // With its first content, durable when it returns. Refused if there is such a file.
  static wire::Result<RecordFile> create(const std::string& path, const StoredReplica& stored);
  // Refused while another RecordFile has it open, in any process.
  static wire::Result<RecordFile> open(const std::string& path);

  // As it was opened.
  const StoredReplica& stored() const { return stored_; }
  // Durable when it returns; an errno.
  int save(const StoredReplica& stored);

 private:
  RecordFile(wire::UniqueFd file, std::size_t slot) : file_(std::move(file)), slot_(slot) {}

  wire::UniqueFd file_;
  std::size_t slot_;  // bytes of each
  std::uint64_t sequence_ = 0;
  StoredReplica stored_;
};

wire::Error failed(const std::string& path, int error);  // errno
// What a new file's name needs to survive the host.
int synchronise_directory_of(const std::string& path);

}  // namespace cepheus::replica
