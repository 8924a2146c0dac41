// Actions for a writer's driver, and its user's requests.
#pragma once

#include <vector>

#include "replica/engine/control_message.h"
#include "replica/engine/volume_types.h"

namespace cepheus::replica {

enum class IoKind : std::uint8_t { kRead, kWrite, kFlush };
enum class IoStatus : std::uint8_t {
  kOk,
  kFenced,  // another writer has the volume; a write may or may not have effect
  kLost,    // the replicas lost acknowledged data; a write may or may not have effect
};

// Precondition: offset and length are whole blocks inside the volume; 0 for kFlush.
struct IoRequest {
  std::uint64_t id = 0;  // the user's
  IoKind kind = IoKind::kRead;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool fua = false;  // kWrite: on all disks before it is acknowledged
};

struct WriterAction {
  enum class Kind : std::uint8_t {
    kSend,        // send `request` to `replica`
    kDisconnect,  // on `replica`: end its connection, and dial again after a while
    kForm,        // group `generation` of `members`: kJoin to each, then register it; on_formed()
    kDrop,        // the group, also one half formed: none of its work lands or completes any more
    kWrite,       // the data of `io` by the group; on_written()
    kRead,        // `io` from `replica`; on_read()
    kCopy,        // `io`'s bytes from `replica` to `members`; on_copied()
    kComplete,    // the user's request `io.id`, with `status`
  };
  Kind kind;
  unsigned replica = 0;
  Request request{};
  std::uint64_t generation = 0;
  Members members{};
  IoRequest io{};
  std::uint64_t attempt = 0;  // kWrite, kRead, kCopy: repeated in the event
  IoStatus status = IoStatus::kOk;
};
using WriterActions = std::vector<WriterAction>;

}  // namespace cepheus::replica
