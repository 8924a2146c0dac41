// The user of a simulated writer: `depth` requests at once, each followed by the next one. Of them
// 55 % are writes, 37 % reads, 8 % flushes, of one to six blocks. All writers of a seed share one
// number of operations. read_all() stops them and reads every block once. Each read is checked
// against History, and no request may complete twice.
#include "replica/sim/world.h"

namespace cepheus::replica::sim {

using namespace std::chrono_literals;

void WriterHost::start_client() {
  has_client_ = true;
  for (unsigned i = 0; i < world_.plan.depth; ++i) {
    after(world_.soon(300), [this] { submit_next(); });
  }
}

void WriterHost::submit_next() {
  if (world_.operations_left == 0 || world_.faults_ended) return;
  --world_.operations_left;
  IoRequest request;
  const double dice = world_.random.fraction();
  request.kind = dice < 0.55 ? IoKind::kWrite : dice < 0.92 ? IoKind::kRead : IoKind::kFlush;
  if (request.kind != IoKind::kFlush) {
    const std::size_t first = world_.random.below(world_.plan.blocks);
    const std::size_t most = std::min<std::size_t>(world_.plan.blocks - first, 6);
    request.offset = first * kBlock;
    request.length = (1 + world_.random.below(most)) * kBlock;
    request.fua = request.kind == IoKind::kWrite && world_.random.chance(world_.plan.fua_share);
  }
  submit(request);
}

void WriterHost::complete(const WriterAction& action) {
  const auto at = open_.find(action.io.id);
  if (at == open_.end()) return world_.fail("a request was completed twice");
  const Io io = at->second;
  open_.erase(at);
  const Instant now = world_.events.now();
  if (action.status == IoStatus::kOk) {
    ++world_.outcome.acknowledged;
    if (io.request.kind == IoKind::kWrite) {
      world_.history.acknowledge(now, io.value, io.request.fua);
    } else if (io.request.kind == IoKind::kFlush) {
      world_.history.flushed(io.begin, index_);
    } else {
      const auto& [taken, found] = found_[io.request.id];
      for (std::size_t b = 0; b < found.size(); ++b) {
        const auto wrong = world_.history.read({io.begin, taken, now}, index_,
                                               io.request.offset / kBlock + b, found[b]);
        if (wrong) world_.fail("writer " + std::to_string(index_) + ": " + *wrong);
      }
    }
  }
  found_.erase(io.request.id);
  if (has_client_) after(world_.soon(800), [this] { submit_next(); });
}

void WriterHost::read_all() {
  has_client_ = false;
  for (std::size_t b = 0; b < world_.plan.blocks; b += 4) {
    after(Duration{1ms} * static_cast<int>(b + 1), [this, b] {
      const std::size_t blocks = std::min<std::size_t>(4, world_.plan.blocks - b);
      submit({.offset = b * kBlock, .length = blocks * kBlock});
    });
  }
}

void WriterHost::flush() { submit({.kind = IoKind::kFlush}); }

}  // namespace cepheus::replica::sim
