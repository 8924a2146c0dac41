#include "switch-emulator/engine/group/turn.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "switch-emulator/engine/check.h"
#include "wire/situation.h"

namespace cepheus::fabric {

// RNR timer codes, from 10.24 ms to 81.92 ms; two more double the time.
constexpr std::uint8_t kFirstHandoverTimer = 20, kLastHandoverTimer = 26, kDouble = 2;

void MessageEnds::note(Psn psn, Psn acknowledged) {
  const std::int32_t ahead = distance(acknowledged, psn);
  if (ahead <= 0) return;
  if (static_cast<std::uint32_t>(ahead) > size()) {
    grow(acknowledged, static_cast<std::uint32_t>(ahead));
  }
  words_[slot(psn) / kWordBits] |= bit(psn);
}

std::uint32_t MessageEnds::take(Psn from, Psn to) {
  const std::int64_t all = size();  // later PSNs are in none of the slots
  std::int64_t left = std::min<std::int64_t>(distance(from, to), all);
  std::uint32_t count = 0;
  for (Psn psn = from + 1; left > 0;) {  // up to the end of its word
    const std::uint32_t place = slot(psn) % kWordBits;
    const std::int64_t bits = std::min<std::int64_t>(kWordBits - place, left);
    const std::uint64_t mask = (~std::uint64_t{0} >> (kWordBits - bits)) << place;
    std::uint64_t& word = words_[slot(psn) / kWordBits];
    count += static_cast<std::uint32_t>(std::popcount(word & mask));
    word &= ~mask;
    left -= bits;
    psn = psn + bits;
  }
  return count;
}
void MessageEnds::clear() {
  if (words_.size() > kFirstWords) words_ = std::vector<std::uint64_t>(kFirstWords);
  std::ranges::fill(words_, 0);
}

void MessageEnds::grow(Psn acknowledged, std::uint32_t ahead) {
  MessageEnds larger;
  larger.words_.resize(std::bit_ceil(ahead) / kWordBits);
  for (std::uint32_t i = 1; i <= size(); ++i) {
    const Psn psn = acknowledged + i;
    if (has(psn)) larger.words_[larger.slot(psn) / kWordBits] |= bit(psn);
  }
  words_ = std::move(larger.words_);
}

void Turn::begin(const Newcomer& newcomer, bool counts_turns) {
  if (source_ != kNoPath) finish(newcomer.first - 1, counts_turns);
  if (awaits_handover()) CEPHEUS_SITUATION("a turn ends whose last source was not ready for it");
  previous_ = source_;
  source_ = newcomer.path;
  is_source_host_ = newcomer.is_host;
  source_ip_ = newcomer.source;
  base_ = newcomer.first;
  port_base_ = newcomer.port_first;
  length_ = 0;
  agg_ = base_ - 1;
  messages_ = 0;
  handover_timer_ = 0;
  ends_->clear();
  naks_.reset();
  gate_.on_admitted();
  paths_[source_].acked = base_ - 1;
  find_slowest();
}

// The gate is open, so all of the turn's messages have arrived everywhere.
void Turn::finish(Psn end, bool counts_turns) {
  PathTurns& source = paths_[source_];
  if (is_source_host_) {
    const auto packets = static_cast<std::uint32_t>(distance(base_, end + 1));
    if (counts_turns) source.packets = source.packets + packets;
    source.messages = source.messages + messages_ + ends_->take(agg_, end);
  }
  source.acked = end;
}

bool Turn::on_data(Psn psn, bool ends_message) {
  gate_.on_old_source();
  if (ends_message) ends_->note(psn, agg_);
  if (slowest_ == kNoPath && psn == min_ + 1) min_ = psn;
  const std::int32_t ahead = distance(sent(), psn);  // at most the data window
  if (ahead <= 0) return false;
  length_ += ahead;
  ended_ = ends_message;
  return true;
}

void Turn::set_acked(PathNo path, Psn psn) {
  if (acked(path) == psn) return;
  paths_[path].acked = psn;
  if (path == slowest_) find_slowest(path + std::size_t{1});
}

Psn Turn::acknowledge() {
  const Psn to = min();
  if (after(to, agg_)) {
    messages_ += ends_->take(agg_, to);
    agg_ = to;
  }
  return agg_;
}

void Turn::await_handover(Instant now) {
  if (awaits_handover()) return;
  handover_timer_ = kFirstHandoverTimer;
  handover_since_ms_ = handover_repeat_ms_ = milliseconds(now.time_since_epoch());
}

bool Turn::is_handover_past(Instant now, Duration limit) {
  const std::uint32_t ms = milliseconds(now.time_since_epoch());
  if (ms - handover_repeat_ms_ > milliseconds(limit / 2)) handover_since_ms_ = ms;
  handover_repeat_ms_ = ms;
  return ms - handover_since_ms_ > milliseconds(limit);
}

std::uint8_t Turn::next_handover_timer() {
  const std::uint8_t timer = handover_timer_;
  handover_timer_ = std::min<std::uint8_t>(timer + kDouble, kLastHandoverTimer);
  return timer;
}

bool Turn::jump(std::uint64_t packets) {
  if (source_ == kNoPath || !is_finished() || gate_.holds() || agg_ != sent()) return false;
  const auto steps = static_cast<std::int64_t>(packets);
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (i != source_) paths_[i].acked = acked(i) + steps;
  }
  min_ = min_ + steps;
  agg_ = agg_ + steps;
  length_ += steps;
  messages_ += static_cast<std::uint32_t>(packets);
  naks_.reset();
  return true;
}

void Turn::on_path_added() {
  paths_.emplace_back().acked = sent();
  if (slowest_ != kNoPath && !before(sent(), min_)) return;
  slowest_ = static_cast<PathNo>(paths_.size() - 1);
  min_ = sent();
}

void Turn::on_path_removed(PathNo gone, PathNo last) {
  paths_[gone] = paths_[last];
  paths_.pop_back();
  for (PathNo* const number : {&source_, &previous_}) {
    if (*number == gone) {
      *number = kNoPath;
    } else if (*number == last) {
      *number = gone;
    }
  }
  if (source_ != kNoPath && previous_ == kNoPath && awaits_handover())
    CEPHEUS_RARE_SITUATION("a last source that is not ready leaves");
  gate_.renumber(gone, last);
  find_slowest();
}

// The slowest path is the first of several equally slow ones. When it moves, the paths before `from`
// need no second check. All are searched only when all have acknowledged one more packet: at most
// once for each packet, which needed as many copies as there are paths.
void Turn::find_slowest(std::size_t from) {
  for (std::size_t i = from; from > 0 && i < paths_.size(); ++i) {
    if (i == source_ || acked(static_cast<PathNo>(i)) != min_) continue;
    slowest_ = static_cast<PathNo>(i);
    return;
  }
  slowest_ = kNoPath;
  for (PathNo i = 0; i < paths_.size(); ++i) {
    if (i == source_) continue;
    if (slowest_ == kNoPath || before(acked(i), acked(slowest_))) slowest_ = i;
  }
  min_ = slowest_ != kNoPath ? acked(slowest_) : sent();
}

void Turn::check_consistent(std::size_t paths, std::size_t max_held) const {
  must(paths_.size() == paths, "the turn knows other paths than the tree");
  for (PathNo i = 0; i < paths; ++i) {
    if (i == source_) continue;
    must(!after(acked(i), sent()), "a path acknowledged more than was sent");
    must(slowest_ != kNoPath && !before(acked(i), min()), "a path is behind the slowest");
  }
  must(source_ == kNoPath || source_ < paths, "the source is no path");
  must(slowest_ == kNoPath || (slowest_ < paths && slowest_ != source_),
       "the slowest path is none, or the source");
  must(slowest_ == kNoPath || acked(slowest_) == min_, "the minimum is out of date");
  must(!after(agg_, sent()), "the source was sent an ACK for unsent packets");
  gate_.check_consistent(paths, max_held);
}

}  // namespace cepheus::fabric
