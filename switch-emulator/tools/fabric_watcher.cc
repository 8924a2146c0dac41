#include "switch-emulator/tools/fabric_watcher.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/printable.h"

namespace cepheus::tools {
namespace {

constexpr std::chrono::milliseconds kBetweenViews{500};

}  // namespace

FabricWatcher::FabricWatcher(std::string fabric_socket, bool control)
    : control_(control), source_(std::move(fabric_socket)), thread_([this] { run(); }) {}

FabricWatcher::~FabricWatcher() {
  end();
  thread_.join();
}

void FabricWatcher::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::optional<FabricWatcher::View> FabricWatcher::next(std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  if (seen == 0) seen = view_.number;
  ++readers_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return view_.number > seen || ended_; });
  --readers_;
  return ended_ ? std::nullopt : std::optional(view_);
}

void FabricWatcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return readers_ > 0 || ended_; });
    if (ended_) return;
    lock.unlock();
    std::string text = look();
    lock.lock();
    view_ = {std::move(text), view_.number + 1};
    changed_.notify_all();
    changed_.wait_for(lock, kBetweenViews, [this] { return ended_; });
  }
}

std::string FabricWatcher::look() {
  auto view = source_.look();
  if (!view) return live::json_text({{"error", view.error().text}}, -1);
  (*view)["control"] = control_;
  return live::json_text(*view, -1);
}

}  // namespace cepheus::tools
