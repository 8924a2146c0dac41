// A replica's record on disk, beside its data: its identity, and its engine's durable state.
//
// One file has two slots; a save overwrites and synchronises the older one. So a save costs one
// fdatasync and no new file, because marks delay writes. If a save is interrupted, the other slot
// is whole; a checksum tells them apart. A chunk's mark has to survive the host: after a power
// failure everywhere only marks tell where replicas may differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replica/control/messages.h"
#include "replica/engine/replica_engine.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::replica {

// Compares bytes: the first half of their SHA-256.
Digest digest_of(std::span<const std::uint8_t> bytes);
// Computes the digests of the request in `digests`; its range lies in `data`.
void make_digests(Digests& digests, std::span<const std::uint8_t> data);

struct StoredReplica {
  std::string volume;
  Geometry geometry;
  std::uint8_t place = 0, count = 0;  // in the volume's list; count 0: not yet assigned by a writer
  std::string boot;  // of the host at the last save; "" if memory is lost with the program
  ReplicaRecord record;

  // Why it does not serve this writer.
  std::optional<std::string> refusal(const VolumeHello& hello) const;
};

// This host's boot id, which changes with each start.
std::string boot_id();

std::vector<std::uint8_t> encode_record(const StoredReplica& stored, std::uint64_t sequence);
// Empty if the bytes are damaged or no record.
struct DecodedRecord {
  std::uint64_t sequence = 0;
  StoredReplica stored;
};
std::optional<DecodedRecord> decode_record(std::span<const std::uint8_t> slot);

class RecordFile {
 public:
  // With its first content, durable when it returns. Refused if the file exists.
  static wire::Result<RecordFile> create(const std::string& path, const StoredReplica& stored);
  // Refused while another RecordFile has it open, in any process.
  static wire::Result<RecordFile> open(const std::string& path);

  // The content when it was opened.
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
// Makes a new file's name survive the host.
int synchronise_directory_of(const std::string& path);

}  // namespace cepheus::replica
