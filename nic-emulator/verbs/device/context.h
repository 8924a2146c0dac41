// An open device: the result of ibv_open_device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/device/async_events.h"
#include "nic-emulator/verbs/device/device.h"
#include "nic-emulator/verbs/device/limits.h"
#include "nic-emulator/verbs/device/live_nic.h"
#include "nic-emulator/verbs/device/report.h"

namespace cepheus::verbs {

// The program holds it from open() to close(), and so do the objects created in it: programs may
// close first and destroy later, or never.
class Context final : public verbs_context,
                      public std::enable_shared_from_this<Context>,
                      private Listener {
 public:
  // Errors as acquire_nic.
  static wire::Result<Context*> open();
  void close();
  ~Context();

  // Precondition: is_ours(context).
  static Context& of(ibv_context* context) {
    // As verbs_get_ctx(), without its check.
    auto* const extended = reinterpret_cast<char*>(context) - offsetof(verbs_context, context);
    return *static_cast<Context*>(reinterpret_cast<verbs_context*>(extended));
  }

  LiveNic& nic() { return *nic_; }
  std::shared_ptr<LiveNic> share_nic() { return nic_; }
  AsyncEvents& async_events() { return *async_events_; }
  std::uint32_t next_handle() { return handles_.fetch_add(1) + 1; }

  int query_port_attributes(std::uint8_t port, ibv_port_attr& attributes) const;
  void query_device_attributes(ibv_device_attr& attributes) const;

 private:
  Context(std::shared_ptr<LiveNic> nic, std::unique_ptr<AsyncEvents> async_events);
  void on_event(ibv_event_type type) override;
  void on_forked() override;

  std::shared_ptr<LiveNic> nic_;
  std::unique_ptr<AsyncEvents> async_events_;
  AsyncSource port_source_;
  std::shared_ptr<Context> held_by_program_;
  std::atomic<std::uint32_t> handles_{0};
};

// An errno, which it also sets, or 0: of `call()` on an object of `nic`.
template <typename Call>
int call_nic(const LiveNic& nic, Call call) {
  return guarded([&] {
    const int error = nic.is_abandoned() ? ENODEV : call();
    return error == 0 ? 0 : refuse_call(error);
  });
}

// For functions that create an object, if the engine refuses it.
inline std::nullptr_t refuse_creation(const char* what, const wire::Error& error) {
  log_verbose(std::string(what) + ": " + error.text);
  const bool is_full = error.code == wire::ErrorCode::kUnavailable;
  return refuse(is_full ? ENOMEM : to_errno(error.code));
}

// Counts one living user of an object that must outlive it.
class Reference {
 public:
  explicit Reference(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Reference() { --count_; }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  std::atomic<int>& count_;
};

// True: another object that `count` counts would be one too many. Threads that create objects at
// once may each get one more.
inline bool is_at_limit(const std::atomic<int>& count, std::uint32_t most) {
  return count.load() >= static_cast<int>(most);
}

}  // namespace cepheus::verbs
