// What users wrote and read, block by block, and what a read may therefore find.
//
// A read may find what was written by a write W, unless another write W' of that block began after
// W had ended, and was acknowledged, or found by a read, before this read began. A write that is
// never acknowledged ends when a later writer begins to serve: nothing of it may land after that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "replica/engine/volume_types.h"

namespace cepheus::replica::sim {

class History {
 public:
  explicit History(std::size_t blocks) : blocks_(blocks, std::vector<Written>{{0, kNever}}) {
    writes_.push_back({0, Instant{}, Instant{}, Instant{}, true, false, true});
  }

  // The value to write: no two writes have the same.
  std::uint64_t begin_write(Instant now, unsigned writer, std::size_t block, std::size_t count) {
    for (std::size_t b = block; b < block + count; ++b) {
      blocks_[b].push_back({writes_.size(), kNever});
    }
    writes_.push_back({writer, now, kNever, kNever, false, false, false});
    return writes_.size() - 1;
  }
  void acknowledge(Instant now, std::uint64_t value) {
    Write& write = writes_[value];
    write.is_acknowledged = true;
    if (write.is_lost) return;
    write.known = std::min(write.known, now);
    write.end = std::min(write.end, now);
  }
  // All that was acknowledged before `since` is on disks.
  void flushed(Instant since) {
    for (Write& write : writes_) {
      if (write.is_acknowledged && write.end <= since) write.is_flushed = true;
    }
  }
  // All replicas that had everything have lost what was not flushed: nobody promised more, nor
  // for what is acknowledged only now.
  void lose_unflushed() {
    for (Write& write : writes_) {
      if (write.is_flushed || write.begin == Instant{}) continue;
      write.is_lost = true;
      write.known = kNever;
    }
    for (auto& block : blocks_) {
      for (Written& written : block) {
        if (writes_[written.write].is_lost) written.found = kNever;
      }
    }
  }
  // `writer` serves from now on.
  void serve(Instant now, unsigned writer) {
    has_served_.resize(std::max<std::size_t>(has_served_.size(), writer + 1));
    has_served_[writer] = true;
    for (Write& write : writes_) {
      const bool had_its_turn = write.writer < has_served_.size() && has_served_[write.writer];
      if (write.writer != writer && had_its_turn) write.end = std::min(write.end, now);
    }
  }
  // What is wrong with a read that began at `begin` and found `value` in `block`; nothing, if all
  // is well.
  std::optional<std::string> read(Instant begin, Instant now, std::size_t block,
                                  std::uint64_t value);
  std::uint64_t writes() const { return writes_.size() - 1; }

 private:
  static constexpr Instant kNever = Instant::max();
  struct Write {
    unsigned writer = 0;
    Instant begin{};
    Instant end{};    // it has no effect after this
    Instant known{};  // acknowledged then
    bool is_flushed = false;
    bool is_lost = false;
    bool is_acknowledged = false;
  };
  // A write is whole in each block, and may be in some only.
  struct Written {
    std::size_t write = 0;
    Instant found{};  // by a read that ended then
  };
  std::vector<Write> writes_;  // by value; 0 is what is there at first
  std::vector<std::vector<Written>> blocks_;
  std::vector<bool> has_served_;  // by writer
};

}  // namespace cepheus::replica::sim
