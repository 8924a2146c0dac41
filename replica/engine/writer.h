// The writer of a replicated volume, without I/O: all messages to replicas, their order, and the
// time of each acknowledgement. docs/replica.md has the rules and their reasons.
//
// Its life: collect promises from all replicas of the last configuration (kAcquiring); make chunks
// equal that may differ (kRecovering); serve requests (kServing). It ends for ever when another
// writer takes the volume (kFenced), or when the replicas have lost data that it acknowledged
// (kFailed).
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "replica/engine/chunk_bitmap.h"
#include "replica/engine/rules.h"
#include "replica/engine/volume_types.h"
#include "replica/engine/writer_action.h"

namespace cepheus::replica {

// Settings of a writer, with times that depend on each other.
struct WriterSettings {
  unsigned replicas = 3;
  Geometry geometry;
  unsigned depth = 64;          // requests at once
  std::uint64_t copy_rate = 0;  // bytes a second for replicas that return, 0: unlimited
  Duration ping = std::chrono::milliseconds(250);
  // A replica without a message for this long counts as dead, as does one with a broken connection.
  Duration silence = std::chrono::milliseconds(1000);
  // Time limit of the others after the first replica in sync has finished: this long, or as long as
  // that one took, if longer. The disk of a later one counts as hung.
  Duration disk = std::chrono::seconds(10);
  // An evicted replica may return after `rejoin`. Each failed return doubles that, up to the limit.
  Duration rejoin = std::chrono::milliseconds(500), rejoin_most = std::chrono::minutes(1);
  Duration reform = std::chrono::milliseconds(50);  // a failed group is formed again after this
  Duration clean = std::chrono::seconds(5);  // marks of chunks idle for this long are cleared
  Rules rules{};
};

class Writer {
 public:
  enum class Phase { kAcquiring, kRecovering, kServing, kFenced, kFailed };

  // `id` is random: it makes this writer's epochs unique.
  Writer(const WriterSettings& settings, std::uint64_t id);

  // False: `depth` requests are under way, or it has ended.
  bool submit(Instant now, const IoRequest& io, WriterActions& out);

  void on_connected(Instant now, unsigned replica, WriterActions& out);
  void on_disconnected(Instant now, unsigned replica, WriterActions& out);
  void on_answer(Instant now, unsigned replica, const Answer& answer, WriterActions& out);
  // All members have joined and been registered.
  void on_formed(Instant now, std::uint64_t generation, WriterActions& out);
  // `suspects` are the known cause. Without any, `all_answer`: every member could be read from. If
  // not, this host or the whole fabric may be cut off.
  void on_group_failed(Instant now, std::uint64_t generation, Members suspects, bool all_answer,
                       WriterActions& out);
  // Every member of the write's group has it; in the order of posting.
  void on_written(Instant now, std::uint64_t attempt, WriterActions& out);
  void on_read(Instant now, std::uint64_t attempt, bool ok, WriterActions& out);
  // `failed`: unreachable replicas among the source and the targets.
  void on_copied(Instant now, std::uint64_t attempt, Members failed, WriterActions& out);
  void on_timer(Instant now, WriterActions& out);  // spurious calls are harmless
  Instant deadline() const;                        // Instant::max(), if none

  Phase phase() const { return phase_; }
  bool has_ended() const { return phase_ == Phase::kFenced || phase_ == Phase::kFailed; }
  // kFailed: the chunks with lost acknowledged data.
  const ChunkBitmap& lost() const { return lost_; }
  // kFailed: all replicas in sync have new disks, so flushed data is lost, too.
  bool has_lost_disks() const { return has_lost_disks_; }
  Epoch epoch() const { return epoch_; }
  const Config& config() const { return config_; }
  bool config_is_confirmed() const { return is_confirmed_; }
  Members group() const { return is_formed_ ? group_ : Members{}; }
  bool is_connected(unsigned replica) const { return peers_[replica].is_connected; }
  bool is_in_sync(unsigned replica) const { return readable().has(replica); }
  // Chunks that the replica still lacks; for an absent one, the marked chunks.
  std::uint32_t lacking(unsigned replica) const;
  std::uint32_t marked() const;
  // Requests that were accepted and not yet completed.
  unsigned under_way() const { return under_way_; }
  void check_consistent() const;

 private:
  using Kind = WriterAction::Kind;

  struct Peer {
    bool is_connected = false;
    bool has_promised = false;
    bool is_fresh = false;      // was never in sync: lacks everything
    bool is_syncing = false;    // gets all writes, and copies of the chunks that it missed
    bool has_todo = false;      // `todo` was set when the group was formed
    bool is_flushed = false;    // ... and copied, and flushed
    bool is_hung = false;       // its disk hung: it returns once a flush has ended there
    bool flushes_late = false;  // while it is copied: requests don't wait for its flushes
    Config config{};            // from its promise
    Loss loss = Loss::kNone;
    ChunkBitmap marks;
    ChunkBitmap todo;
    Instant last_message{}, next_ping{}, rejoin_at{};
    Duration rejoin{};        // from its next eviction until it may return
    Instant refused_since{};  // by a replica out of sync; 0: it was not
  };

  enum class OpState : std::uint8_t {
    kFree,
    kWaiting,  // for an earlier one that overlaps
    kMarking,  // for the bitmaps' marks
    kReady,    // for a group
    kPosted,
    kFlushing,  // for the disks
    kDone,      // waits for the configuration to be on record
  };
  struct Op {
    OpState state = OpState::kFree;
    bool is_copy = false;
    IoRequest io{};
    std::uint64_t order = 0;  // of arrival
    std::uint64_t post = 0;   // of the first sending; 0: not sent yet
    std::uint64_t attempt = 0;
    std::uint64_t covers = 0;  // flushes: `acks_` at its beginning, set there
    bool is_flushed = false;
    unsigned replica = 0;  // reads, copies: the source
    Members targets{};     // copies
  };

  // A request to several replicas, until all have answered.
  struct Round {
    enum class Purpose : std::uint8_t { kMark, kConfig, kFlush, kSyncFlush, kClean, kTrial };
    Purpose purpose{};
    Request request{};
    Members waiting{};
    std::size_t op = 0;  // kFlush
    unsigned peer = 0;   // kSyncFlush, kTrial
    Instant started{};
    Instant until = Instant::max();  // replicas that still wait then hang
  };

  enum class ChunkState : std::uint8_t { kClear, kMarking, kMarked };
  struct Chunk {
    ChunkState state = ChunkState::kClear;
    std::uint32_t writes = 0;  // under way
    Instant last_write{};
    std::uint64_t ack = 0;  // number of the last acknowledgement of data that may be in memory only
  };

  // writer.cc: requests
  void advance(Instant now, WriterActions& out);
  bool may_go(const Op& op) const;
  void admit(Instant now, Op& op, WriterActions& out);
  void post_ready(Instant now, WriterActions& out);
  void post(Instant now, Op& op, WriterActions& out);
  void finish(Instant now, Op& op, IoStatus status, WriterActions& out);
  void note_acknowledged(const Op& op);
  void finish_done(Instant now, WriterActions& out);
  void start_flush(Instant now, std::size_t op, WriterActions& out);
  void forgive_silence(Instant now);
  Op* posted(std::uint64_t attempt);
  void count_writes(const IoRequest& io, int change, Instant now);
  ChunkRange chunks_of(const IoRequest& io) const;
  bool are_marked(ChunkRange range) const;
  ChunkBitmap unflushed() const;

  // writer_rounds.cc: requests to replicas
  void send_request(unsigned replica, Request request, WriterActions& out);
  void start_round(Instant now, Round round, WriterActions& out);
  void start_flush_of(Instant now, unsigned replica, Round::Purpose purpose, WriterActions& out);
  bool is_requested(unsigned replica, Round::Purpose purpose) const;
  // The replica is being copied, and must flush once more before it is in sync: a flush was
  // acknowledged without it.
  void flush_again(unsigned replica);
  bool may_be_late(const Round& round) const;
  void evict_hung(Instant now, WriterActions& out);
  void leave_rounds(Instant now, unsigned replica, WriterActions& out);
  void end_round(Instant now, const Round& round, WriterActions& out);
  void mark(Instant now, ChunkRange range, WriterActions& out);
  ChunkBitmap marks() const;
  ChunkBitmap lacking_marks(const Peer& peer) const;
  void send_marks(unsigned replica, WriterActions& out);
  void start_cleaning(Instant now, WriterActions& out);
  void clean(WriterActions& out);

  // writer_succession.cc: claims, promises, the configuration to continue from
  void try_to_begin(Instant now, WriterActions& out);
  Config latest() const;
  std::optional<Config> find_last() const;
  bool has_been_written(const Config& last) const;
  bool may_be_a_later_one(const Config& last) const;
  Loss least_loss(Members members) const;
  void begin_from(Instant now, const Config& last, WriterActions& out);
  void on_promise(unsigned replica, const Answer& answer);
  void on_refusal(Instant now, unsigned replica, const Answer& answer, WriterActions& out);
  void claim_again(Instant now, const Epoch& after);
  void start_again(Instant now, const Epoch& after, WriterActions& out);
  void repeat_writes();
  bool has_lost_data(Instant now, const Config& last, bool is_forgotten, WriterActions& out);

  // writer_membership.cc: configurations, groups
  void end(Instant now, Phase phase, WriterActions& out);
  void propose(Instant now, Members members, WriterActions& out);
  void evict(Instant now, unsigned replica, WriterActions& out);
  void leave_config(Instant now, unsigned replica, WriterActions& out);
  void keep_group(Instant now, WriterActions& out);
  Members doubtful(Instant now) const;
  void drop_group(WriterActions& out);
  void take_back_posted();
  // A replica returns, and the group with it is not formed yet.
  bool is_one_returning() const;
  template <typename Is>
  Members peers_that(Is is) const {
    Members members;
    for (unsigned r = 0; r < peers_.size(); ++r) {
      if (is(peers_[r])) members = members.with(r);
    }
    return members;
  }
  Members wanted() const;
  // Members of the configuration, without a replica that is being added.
  Members in_sync() const;
  Members promised() const;
  Members readable() const;  // in sync, and on record as such

  // writer_copy.cc: making replicas equal
  void make_todo();
  void begin_serving(Instant now, WriterActions& out);
  void keep_copying(Instant now, WriterActions& out);
  void keep_growing(Instant now, WriterActions& out);

  WriterSettings settings_;
  Phase phase_ = Phase::kAcquiring;
  bool has_served_ = false;
  Epoch epoch_;
  Config config_;
  bool is_confirmed_ = false;
  Config
      known_;  // the last one that this writer knows to have been on record, at first a found one
  // Members of a found configuration that may not have been on record. It goes on record with all
  // of them before this writer's own first one, `first_`; until then no member may be evicted.
  Members unrecorded_, first_;
  std::optional<unsigned> growing_;  // new replica in config_ until that is confirmed
  std::vector<Peer> peers_;
  std::vector<Op> ops_;  // the last one is for copies
  std::vector<Round> rounds_;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> sorted_;  // scratch
  unsigned under_way_ = 0;
  std::uint64_t order_ = 0, posts_ = 0, attempts_ = 0, serials_ = 0;
  std::uint64_t acks_ = 0, flushed_ = 0;  // acknowledgements up to flushed_ are on disks
  ChunkBitmap lost_;
  bool has_lost_disks_ = false;
  std::uint64_t generation_ = 0;
  bool has_group_ = false, is_formed_ = false;
  // A group that fails before this time counts as the second failure in a row, after one without a
  // known cause. No write has completed since.
  Instant in_a_row_until_{};
  Members group_;
  Instant looked_at_{};  // by on_timer(), which comes at least once a ping
  Instant form_at_{}, copy_at_{}, clean_at_{}, promise_at_ = Instant::max();
  Instant clean_before_{};  // chunks last written before this are flushed by the current round
  unsigned next_reader_ = 0;
};

}  // namespace cepheus::replica
