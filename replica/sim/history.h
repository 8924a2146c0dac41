// Users' writes and reads by block, and the permitted results of a read.
//
// A read may find the value of a write W, unless another write W' of that block began after W had
// ended, and was acknowledged, or found by a read, before this read began. If W' overlaps W, a
// read of W' that began after W had ended shows that W' came after W too. A write without an
// acknowledgement ends when a writer of a later epoch begins to serve: it may not land after that.
// A writer that was stopped meanwhile may still assume that it serves.
//
// A loss of memory on all replicas in sync excuses lost unflushed data, and towards later writers
// only. A loss of all their disks excuses all lost data, likewise. A writer that served before the
// loss and serves again after it asserts that nothing is lost. But if another one served meanwhile,
// and new disks have forgotten that, it asserts only what it knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica::sim {

class History {
 public:
  explicit History(std::size_t blocks) : blocks_(blocks, std::vector<Written>{Written{}}) {
    writes_.push_back({0, Instant{}, Instant{}, {Instant{}, kNever, true}});
  }

  // The value to write, unique among all writes.
  std::uint64_t begin_write(Instant now, unsigned writer, std::size_t block, std::size_t count);
  // `is_durable`: it was written with FUA.
  void acknowledge(Instant now, std::uint64_t value, bool is_durable = false);
  // `writer` learned that all acknowledgements before `since` are on disks.
  void flushed(Instant since, unsigned writer);
  // All complete replicas have lost their unflushed data.
  void lose_unflushed(Instant now);
  // ... and all other data: their disks are new.
  void lose_all(Instant now);
  // `writer` serves from now on, or again, by a claim of that epoch.
  void serve(Instant now, unsigned writer, const Epoch& epoch);
  // Before it serves again, after an interruption: it renews its promises.
  void resume(unsigned writer);
  Instant last_loss() const { return last_loss_; }

  // The content of a block after an interrupted write. A read may find it only while no replica in
  // sync continued, nor the writer.
  std::uint64_t tear(std::uint64_t value);
  void excuse_torn() { excused_torn_ = torn_.size(); }

  // Of a read: a replica had the value at `taken`.
  struct Times {
    Instant begin, taken, end;
  };
  // The error in a read of `reader` that found `value` in `block`, if any.
  std::optional<std::string> read(const Times& times, unsigned reader, std::size_t block,
                                  std::uint64_t value);

 private:
  static constexpr Instant kNever = Instant::max();
  static constexpr std::uint64_t kTorn = std::uint64_t{1} << 62;
  // A promise that a value or a later one is found.
  struct Promise {
    Instant made = kNever;
    Instant lost = kNever;
    bool is_flushed = false;
    Instant since() const { return lost == kNever ? made : kNever; }
    void lose(Instant now) {
      if (!is_flushed) lost = std::min(lost, now);
    }
    void lose_disk(Instant now) {
      is_flushed = false;
      lose(now);
    }
    // By a writer that serves since `served`.
    void renew(Instant served) {
      if (lost >= served) lost = kNever;
    }
    // After the disks' loss at `gone`, acknowledgements of earlier flushes may still arrive.
    void flush(Instant since, Instant served, Instant gone) {
      if (made > since || lost <= gone) return;
      renew(served);
      is_flushed = is_flushed || lost == kNever;
    }
  };
  struct Write {
    unsigned writer = 0;
    Instant begin{};
    Instant end{};      // it has no effect after this
    Promise promise{};  // made when it is acknowledged
  };
  struct Reading {
    Instant begin{};
    Promise promise{};
  };
  // A write is whole in each block, and may be in some blocks only.
  struct Written {
    std::size_t write = 0;
    std::vector<Reading> readings{};  // that found it
  };
  Instant served_at(unsigned writer) const {
    return writer < served_.size() ? served_[writer] : kNever;
  }

  std::vector<Write> writes_;  // by value; 0 is the initial content
  std::vector<std::vector<Written>> blocks_;
  bool is_superseded(unsigned writer) const;
  template <typename Change>
  void change_promises(Change change);

  std::vector<Instant> served_;  // by writer, start of serving
  // By writer, of its last serving. New disks know no epoch, so numbers start again after a loss of
  // all disks: the number of such losses comes first.
  std::vector<std::pair<unsigned, Epoch>> epochs_;
  std::vector<Instant> superseded_;  // by writer, since when a later one has served
  std::vector<std::uint64_t> torn_;
  std::size_t excused_torn_ = 0;
  Instant last_loss_{}, disks_lost_{};
  unsigned disk_losses_ = 0;
};

}  // namespace cepheus::replica::sim
