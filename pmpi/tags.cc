#include "pmpi/tags.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cepheus::pmpi {

int TagBlocks::take() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (taken_.size() >= static_cast<std::size_t>(std::max(count_, 0))) return kNoBlock;
  for (;;) {
    const int block = next_;
    next_ = next_ + 1 < count_ ? next_ + 1 : 0;
    if (taken_.insert(block).second) return block;
  }
}

void TagBlocks::give_back(int block) {
  const std::lock_guard<std::mutex> guard(mutex_);
  taken_.erase(block);
}

void Addresses::set(std::vector<int> blocks) {
  blocks_ = std::move(blocks);
  if (std::ranges::adjacent_find(blocks_, std::not_equal_to<>()) != blocks_.end()) return;
  if (blocks_.size() > 1) blocks_ = std::vector<int>(1, blocks_.front());  // and frees the memory
}

}  // namespace cepheus::pmpi
