// What users wrote and read, block by block, and what a read may therefore find.
//
// A read may find what was written by a write W, unless another write W' of that block began after
// W had ended, and was acknowledged, or found by a read, before this read began. A write that is
// never acknowledged ends when a writer of a later epoch begins to serve: nothing of it may land after
// that. A writer that was stopped meanwhile may still believe that it serves.
//
// A loss of memory on all replicas in sync excuses what was not flushed, and towards later writers
// only. A writer that served before the loss and serves again after it says that nothing is lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica::sim {

class History {
 public:
  explicit History(std::size_t blocks) : blocks_(blocks, std::vector<Written>{{0, {}}}) {
    writes_.push_back({0, Instant{}, Instant{}, {Instant{}, kNever, true}});
  }

  // The value to write: no two writes have the same.
  std::uint64_t begin_write(Instant now, unsigned writer, std::size_t block, std::size_t count);
  // `is_durable`: it was written with FUA.
  void acknowledge(Instant now, std::uint64_t value, bool is_durable = false);
  // `writer` was told that all that was acknowledged before `since` is on disks.
  void flushed(Instant since, unsigned writer);
  // All replicas that had everything have lost what was not flushed.
  void lose_unflushed(Instant now);
  // `writer` serves from now on, or again, by a claim of that epoch.
  void serve(Instant now, unsigned writer, const Epoch& epoch);
  // ... again, after it could not for a while: it promises once more what it promised before.
  void resume(unsigned writer);
  Instant last_loss() const { return last_loss_; }

  // What is in a block whose writing was cut off in the middle. Only while no replica in sync went
  // on, and the writer did not either, may it ever be read.
  std::uint64_t tear(std::uint64_t value);
  void excuse_torn() { excused_torn_ = torn_.size(); }

  // Of a read: a replica had the value at `taken`.
  struct Times {
    Instant begin, taken, end;
  };
  // What is wrong with a read of `reader` that found `value` in `block`; nothing, if all is well.
  std::optional<std::string> read(const Times& times, unsigned reader, std::size_t block,
                                  std::uint64_t value);

 private:
  static constexpr Instant kNever = Instant::max();
  static constexpr std::uint64_t kTorn = std::uint64_t{1} << 62;
  // That something is found, or what came after it.
  struct Promise {
    Instant made = kNever;
    Instant lost = kNever;
    bool is_flushed = false;
    Instant since() const { return lost == kNever ? made : kNever; }
    void lose(Instant now) {
      if (!is_flushed) lost = std::min(lost, now);
    }
    // By a writer that serves since `served`.
    void renew(Instant served) {
      if (lost >= served) lost = kNever;
    }
    void flush(Instant since, Instant served) {
      if (made > since) return;
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
  // A write is whole in each block, and may be in some only.
  struct Written {
    std::size_t write = 0;
    Promise found{};  // made by a read
  };
  Instant served_at(unsigned writer) const {
    return writer < served_.size() ? served_[writer] : kNever;
  }

  std::vector<Write> writes_;  // by value; 0 is what is there at first
  std::vector<std::vector<Written>> blocks_;
  bool is_superseded(unsigned writer) const;

  std::vector<Instant> served_;  // by writer, since when
  std::vector<Epoch> epochs_;    // by writer, the last one that it served by
  std::vector<std::uint64_t> torn_;
  std::size_t excused_torn_ = 0;
  Instant last_loss_{};
};

}  // namespace cepheus::replica::sim
