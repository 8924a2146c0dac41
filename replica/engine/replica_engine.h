// One replica of a volume: which writer it serves, and what of that must outlive it.
//
// Its data is not its matter: writers reach it past this engine, by the NIC. So a promise to a new
// writer is worth something only if the ways of the old one are closed first: kFence.
#pragma once

#include <vector>

#include "replica/engine/chunk_bitmap.h"
#include "replica/engine/control_message.h"
#include "replica/engine/rules.h"

namespace cepheus::replica {

// What lies on the replica's disk beside the data.
struct ReplicaRecord {
  Epoch promised;
  Config config;
  Loss loss = Loss::kNone;
  ChunkBitmap marks;

  // Of a replica that nobody has written to.
  static ReplicaRecord fresh(const Geometry& geometry, unsigned replicas);
  // What it says after a restart, `host`: of the host as well.
  void note_restart(bool host);
};

// What the driver is to do: one after the other, each done before the next is begun.
struct ReplicaAction {
  enum class Kind {
    kFence,   // end the group's and the writer's queue pairs: nothing of theirs lands afterwards
    kHangUp,  // end the other connection, `link`
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

  // `link` numbers the driver's connections, never one twice.
  void on_request(std::uint64_t link, const Request& request, ReplicaActions& out);
  void on_hang_up(std::uint64_t link, ReplicaActions& out);

  const ReplicaRecord& record() const { return record_; }
  bool has_writer() const { return link_ != 0; }
  // Where memory and disk may differ.
  ChunkBitmap unflushed() const;

 private:
  void promise(std::uint64_t link, const Request& request, ReplicaActions& out);
  void answer(std::uint64_t link, const Request& request, Verdict verdict, ReplicaActions& out);

  Geometry geometry_;
  Rules rules_;
  ReplicaRecord record_;
  // With a new disk it is copied what is not marked, too: until the flush after it was named.
  bool may_hold_unmarked_;
  std::uint64_t link_ = 0;  // whose promise was the last one, 0: nobody's
};

}  // namespace cepheus::replica
