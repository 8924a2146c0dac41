#include "switch-emulator/tools/fabric_watcher.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/control_protocol.h"
#include "switch-emulator/live/printable.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{500};
// Rates of a view are those since the last one, unless nobody has looked for so long.
constexpr double kForgetSeconds = 3;

}  // namespace

FabricWatcher::FabricWatcher(std::string fabric_socket, bool control)
    : fabric_socket_(std::move(fabric_socket)), control_(control), thread_([this] { run(); }) {}

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
    changed_.wait_for(lock, kInterval, [this] { return ended_; });
  }
}

std::string FabricWatcher::look() {
  const auto answer = live::ask(fabric_socket_, {{"ask", "status"}});
  const auto refused = [this](const std::string& why) {
    before_.reset();
    return live::json_text({{"error", why}}, -1);
  };
  if (!answer) return refused(answer.error().text);
  const auto found = answer->find("status");
  if (found == answer->end()) return refused("the fabric sent no status");
  auto status = live::status_from_json(*found);
  if (!status) return refused(status.error().text);
  const double seconds =
      std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
  live::Snapshot now{std::move(*status), seconds};
  if (before_ && seconds - before_->seconds > kForgetSeconds) before_.reset();
  json view = live::fabric_view(now, before_ ? &*before_ : nullptr);
  view["control"] = control_;
  before_ = std::move(now);
  return live::json_text(view, -1);
}

}  // namespace cepheus::tools
