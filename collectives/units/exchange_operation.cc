// Each round begins once the last one's message is here. Its sends stay under way until the end, and
// read blocks_, which only grows in use.
#include "collectives/units/exchange_operation.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace cepheus::coll {

void ExchangeOperation::begin(const Team& team, const std::vector<std::size_t>& bytes,
                              const std::byte* own) {
  finish();
  team_ = &team;
  bytes_ = &bytes;
  blocks_.resize(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}));
  here_ = 1;
  here_bytes_ = bytes_between(0, 1);
  std::memcpy(blocks_.data(), own, here_bytes_);
}

void ExchangeOperation::finish() {
  for (Messages& each : sends_) each.forget();
  rounds_ = sent_ = 0;
  receive_.forget();
  is_in_round_ = false;
}

std::size_t ExchangeOperation::bytes_between(int first, int end) const {
  std::size_t sum = 0;
  for (int place = first; place < end; ++place)
    sum += (*bytes_)[static_cast<std::size_t>(member(place))];
  return sum;
}

Code ExchangeOperation::start_round() {
  is_in_round_ = true;
  const int count = std::min(here_, team_->size() - here_);
  failed_member_ = member(here_);
  Code rc = receive_.receive(blocks_.data() + here_bytes_, bytes_between(here_, here_ + count),
                             failed_member_, Tag::kBlocks, *team_);
  if (rc != Code::kDone) return rc;
  failed_member_ = member(team_->size() - here_);
  if (sends_.size() == rounds_) sends_.emplace_back();
  return sends_[rounds_++].send(blocks_.data(), bytes_between(0, count), failed_member_,
                                Tag::kBlocks, *team_);
}

Code ExchangeOperation::progress() {
  Code rc = Code::kDone;
  while (here_ < team_->size()) {
    if (!is_in_round_) rc = start_round();
    if (rc != Code::kDone) return rc;
    if (!receive_.test(rc)) return Code::kPending;
    failed_member_ = member(here_);
    is_in_round_ = false;
    if (rc != Code::kDone) return rc;
    const int count = std::min(here_, team_->size() - here_);
    here_bytes_ += bytes_between(here_, here_ + count);
    here_ += count;
  }
  for (; sent_ < rounds_; ++sent_) {
    if (!sends_[sent_].test(rc)) return Code::kPending;
    failed_member_ = member(team_->size() - (1 << sent_));
    if (rc != Code::kDone) return rc;
  }
  return Code::kDone;
}

void ExchangeOperation::copy_to(std::byte* memory) const {
  // The last places are the first members.
  const std::size_t before = bytes_between(team_->size() - team_->self(), team_->size());
  const std::size_t own = blocks_.size() - before;
  std::memcpy(memory, blocks_.data() + own, before);
  std::memcpy(memory + before, blocks_.data(), own);
}

}  // namespace cepheus::coll
