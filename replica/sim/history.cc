// Values number the writes, so each one is unique. read() knows three errors. The value was never
// written in that block, it is half of a write that no crash excuses, or a later one is known. A
// read without error becomes a promise for later reads. Each loss, flush or renewal visits all
// promises.
#include "replica/sim/history.h"

namespace cepheus::replica::sim {

std::uint64_t History::begin_write(Instant now, unsigned writer, std::size_t block,
                                   std::size_t count) {
  for (std::size_t b = block; b < block + count; ++b) blocks_[b].push_back({writes_.size()});
  writes_.push_back({writer, now, is_superseded(writer) ? now : kNever, {}});
  return writes_.size() - 1;
}

void History::acknowledge(Instant now, std::uint64_t value, bool is_durable) {
  Write& write = writes_[value];
  write.end = std::min(write.end, now);
  write.promise.made = std::min(write.promise.made, now);
  if (!is_durable || write.promise.lost <= disks_lost_) return;
  write.promise.is_flushed = true;
  write.promise.lost = kNever;
}

template <typename Change>
void History::change_promises(Change change) {
  for (Write& write : writes_) change(write.promise);
  for (auto& block : blocks_) {
    for (Written& written : block) {
      for (Reading& r : written.readings) change(r.promise);
    }
  }
}

void History::flushed(Instant since, unsigned writer) {
  change_promises([&](Promise& p) { p.flush(since, served_at(writer), disks_lost_); });
}

void History::lose_unflushed(Instant now) {
  last_loss_ = now;
  change_promises([now](Promise& p) { p.lose(now); });
}

void History::lose_all(Instant now) {
  last_loss_ = disks_lost_ = now;
  ++disk_losses_;
  change_promises([now](Promise& p) { p.lose_disk(now); });
}

void History::serve(Instant now, unsigned writer, const Epoch& epoch) {
  served_.resize(std::max<std::size_t>(served_.size(), writer + 1), kNever);
  epochs_.resize(served_.size());
  superseded_.resize(served_.size(), kNever);
  served_[writer] = std::min(served_[writer], now);
  epochs_[writer] = {disk_losses_, epoch};
  superseded_[writer] = kNever;
  for (unsigned other = 0; other < epochs_.size(); ++other) {
    if (epochs_[other] < epochs_[writer]) superseded_[other] = std::min(superseded_[other], now);
  }
  for (Write& write : writes_) {
    if (is_superseded(write.writer)) write.end = std::min(write.end, now);
  }
}

bool History::is_superseded(unsigned writer) const {
  return served_at(writer) != kNever &&
         std::ranges::any_of(epochs_, [&](const auto& other) { return epochs_[writer] < other; });
}

void History::resume(unsigned writer) {
  change_promises([this, writer](Promise& p) {
    const bool is_forgotten = p.lost <= disks_lost_ && p.made > superseded_[writer];
    if (!is_forgotten) p.renew(served_at(writer));
  });
}

std::uint64_t History::tear(std::uint64_t value) {
  torn_.push_back(value >= kTorn ? torn_[value - kTorn] : value);
  return kTorn + torn_.size() - 1;
}

std::optional<std::string> History::read(const Times& times, unsigned reader, std::size_t block,
                                         std::uint64_t value) {
  const Instant begin = times.begin;
  auto& written = blocks_[block];
  const std::string what = "block " + std::to_string(block) + " holds ";
  const bool is_torn = value >= kTorn;
  const bool is_excused = is_torn && value - kTorn < excused_torn_;
  if (is_torn) value = torn_[value - kTorn];
  const auto found = std::ranges::find(written, value, &Written::write);
  if (found == written.end()) {
    return what + "value " + std::to_string(value) + ", which was never written there";
  }
  const Write& source = writes_[value];
  const auto name = [this](std::uint64_t write) {
    return "write " + std::to_string(write) + " of writer " + std::to_string(writes_[write].writer);
  };
  if (is_torn && (!is_excused || source.promise.since() < begin || source.writer == reader)) {
    return what + "half of " + name(value);
  }
  for (const Written& other : written) {
    const Write& write = writes_[other.write];
    const bool came_after = write.begin > source.end;
    const bool is_known = came_after && write.promise.since() < begin;
    const auto shows_that = [&](const Reading& r) {
      const bool is_after = came_after || (other.write != value && r.begin > source.end);
      return is_after && r.promise.since() < begin;
    };
    const bool was_read_after = std::ranges::any_of(other.readings, shows_that);
    if (is_known || was_read_after) {
      return what + name(value) + ", although " + name(other.write) + " came after it and was " +
             (is_known ? "acknowledged" : "read already");
    }
  }
  if (is_torn) return std::nullopt;
  const Instant lost = last_loss_ > times.taken ? last_loss_ : kNever;
  found->readings.push_back({begin, {times.end, lost, false}});
  return std::nullopt;
}

}  // namespace cepheus::replica::sim
