// Tags of the messages. All messages travel on one private communicator of MPI_COMM_WORLD's ranks, so
// a tag names the program's communicator, too.
//
// Each rank receives the messages of a communicator at a block of tags that it has chosen itself. The
// ranks of a communicator exchange the blocks' numbers once. So no two communicators of a rank share
// a tag, and ranks need not agree on a number, whatever their other threads do meanwhile.
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <vector>

namespace cepheus::pmpi {

inline constexpr int kTagsOfBlock = 16;
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

}  // namespace cepheus::pmpi
