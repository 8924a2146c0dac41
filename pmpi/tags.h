// Tags of the messages. All messages travel on one private communicator of MPI_COMM_WORLD's ranks, so
// a tag names the program's communicator, too.
//
// Each rank receives the messages of a communicator at a block of tags that it has chosen itself. The
// ranks of a communicator exchange the blocks' numbers once. So no two communicators of a rank share
// a tag, and ranks need not agree on a number, whatever their other threads do meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace cepheus::pmpi {

inline constexpr int kTagsOfBlock = 19;
inline constexpr int kNoBlock = -1;

// This process's blocks. Thread-safe.
class TagBlocks {
 public:
  // MPI has the tags from 0 to `greatest`.
  explicit TagBlocks(int greatest) : count_(greatest / kTagsOfBlock) {}
  // kNoBlock: none is left. A block that was given back comes last: a message for its former owner may
  // be under way.
  int take();
  void give_back(int block);

 private:
  const int count_;
  std::mutex mutex_;
  std::set<int> taken_;
  int next_ = 0;
};

// The blocks at which the ranks of a communicator receive.
class Addresses {
 public:
  // By rank. An empty list: not known yet.
  void set(std::vector<int> blocks);
  bool is_known() const { return !blocks_.empty(); }
  int block(int rank) const {
    return blocks_[blocks_.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  int tag(int rank, int purpose) const { return block(rank) * kTagsOfBlock + purpose; }

 private:
  std::vector<int> blocks_;  // one, if all are equal
};

inline int TagBlocks::take() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (taken_.size() >= static_cast<std::size_t>(std::max(count_, 0))) return kNoBlock;
  for (;;) {
    const int block = next_;
    next_ = next_ + 1 < count_ ? next_ + 1 : 0;
    if (taken_.insert(block).second) return block;
  }
}

inline void TagBlocks::give_back(int block) {
  const std::lock_guard<std::mutex> guard(mutex_);
  taken_.erase(block);
}

inline void Addresses::set(std::vector<int> blocks) {
  blocks_ = std::move(blocks);
  if (std::ranges::adjacent_find(blocks_, std::not_equal_to<>()) != blocks_.end()) return;
  if (blocks_.size() > 1) blocks_ = std::vector<int>(1, blocks_.front());  // and frees the memory
}

}  // namespace cepheus::pmpi
