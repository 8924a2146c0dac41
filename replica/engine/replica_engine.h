// One replica of a volume: the writer that it serves, and the state that must survive it.
//
// Writers reach its data through the NIC, without this engine. So before a promise to a new writer,
// the old writer's queue pairs must be closed: kFence.
#pragma once

#include <vector>

#include "replica/engine/chunk_bitmap.h"
#include "replica/engine/control_message.h"
#include "replica/engine/rules.h"

namespace cepheus::replica {

// The replica's record on disk, beside the data.
struct ReplicaRecord {
  Epoch promised;
  Config config;
  Loss loss = Loss::kNone;
  ChunkBitmap marks;

  // Of a replica that was never written to.
  static ReplicaRecord fresh(const Geometry& geometry, unsigned replicas);
  // After a restart of the program; `host`: of the host.
  void note_restart(bool host);
};

// Actions for the driver: in order, each completed before the next one begins.
struct ReplicaAction {
  enum class Kind {
    kFence,  // close the group's and the writer's queue pairs: none of their data lands afterwards
    kDisconnect,  // end the other connection, `link`
    kSaveRecord,  // promised, config, loss; durable when it returns
    kSaveMarks,   // the bitmap
    kFlush,       // the data; outside `chunks` memory and disk are alike
    kJoin,        // make ready for group `generation`
    kAnswer,      // to `link`
  };
  Kind kind;
  std::uint64_t link = 0;
  std::uint64_t generation = 0;
  Answer answer{};
  ChunkBitmap chunks{};
};
using ReplicaActions = std::vector<ReplicaAction>;

class ReplicaEngine {
 public:
  ReplicaEngine(const Geometry& geometry, ReplicaRecord record, const Rules& rules = {});

  // `link` numbers the driver's connections, never twice the same.
  void on_request(std::uint64_t link, const Request& request, ReplicaActions& out);
  void on_disconnected(std::uint64_t link, ReplicaActions& out);

  const ReplicaRecord& record() const { return record_; }
  bool has_writer() const { return link_ != 0; }
  // Chunks that may differ between memory and disk. Only marked chunks are written. A mark is cleared
  // when this replica, too, has flushed since.
  const ChunkBitmap& unflushed() const { return record_.marks; }

 private:
  void promise(std::uint64_t link, const Request& request, ReplicaActions& out);
  void answer(std::uint64_t link, const Request& request, Verdict verdict, ReplicaActions& out);

  Geometry geometry_;
  Rules rules_;
  ReplicaRecord record_;
  std::uint64_t link_ = 0;  // connection of the last promise, 0: none
};

}  // namespace cepheus::replica
