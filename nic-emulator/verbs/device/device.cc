// NicHolder keeps the process's NIC. Attaching has five steps, and the first that fails is the
// error: environment, NIC profile, port, congestion control, NIC with its thread. A later
// attachment requests the host that this process had before.
//
// fork(): the handler locks the holder and then each NIC, so no change is half done. The child
// abandons all NICs and may attach as another host. If a signal handler forks amid such a change,
// the child renews what the lost thread held.
//
// At exit, each NIC takes in packets that have arrived, and sends their acknowledgements. If
// another thread holds the lock then, that is left out.
#include "nic-emulator/verbs/device/device.h"

#include <endian.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <forward_list>
#include <mutex>
#include <new>

#include "nic-emulator/engine/congestion_text.h"
#include "nic-emulator/engine/nic_profile.h"
#include "nic-emulator/verbs/cancellation.h"
#include "nic-emulator/verbs/device/environment.h"
#include "nic-emulator/verbs/device/report.h"

namespace cepheus::verbs {
namespace {

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  field[text.copy(field, n)] = '\0';
}

// Nothing of a NIC that the program never used.
void print_counters(LiveNic& nic) {
  if (!is_verbose()) return;
  const std::string counters = nic.counters_text(true);
  if (!counters.empty()) print_line("counters of " + nic.identity().name + ":\n" + counters);
}

// One line of a job: its figures are not those of the emulated NIC.
void announce(const rnic::NicProfile& profile, const Environment& environment) {
  if (&profile == rnic::nic_profiles().data()) return;
  const std::string text = std::string(kDeviceName) + " has the manners of " +
                           std::string(profile.name) +
                           " (CEPHEUS_NIC_PROFILE): " + std::string(profile.manners);
  environment.is_rank && !environment.is_first_rank ? log_verbose(text) : print_line(text);
}

// The process's NIC, and older ones without a fabric while a user holds them. Never destroyed:
// their threads may outlive static destructors.
class NicHolder {
 public:
  static NicHolder& instance() {
    static NicHolder* const holder = created_ = new NicHolder;
    return *holder;
  }
  // Null if this process never used a NIC.
  static NicHolder* existing() { return created_; }

  wire::Result<std::shared_ptr<LiveNic>> acquire() {
    const std::scoped_lock lock(mutex_);
    auto nic = attached();
    if (nic) pinned_.reset();  // from here on the caller's reference keeps it alive
    return nic;
  }

  std::shared_ptr<LiveNic> current() {
    const std::scoped_lock lock(mutex_);
    return nics_.empty() ? nullptr : nics_.front().nic.lock();
  }

  void release(std::shared_ptr<LiveNic> nic) {
    // Under the lock: the next acquire finds the port free again.
    const std::scoped_lock lock(mutex_);
    if (nic.use_count() == 1) print_counters(*nic);
    nic.reset();
  }

  wire::Ipv4 address() {
    const std::scoped_lock lock(mutex_);
    if (!address_.is_unset()) return address_;
    // Kept until the program opens the device or ends: the program has seen the address, so no
    // other process may get it.
    if (auto nic = attached()) {
      pinned_ = *nic;
    } else {
      set_last_error(nic.error().text);
      log_verbose(nic.error().text);
    }
    return address_;
  }

  void at_exit() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (const Attached& each : nics_) {
      const std::shared_ptr<LiveNic> nic = each.nic.lock();
      if (!nic || nic->is_abandoned()) continue;
      nic->finish_received();
      print_counters(*nic);
    }
  }

 private:
  struct Attached {
    std::weak_ptr<LiveNic> nic;
    // Between the handlers of one fork(), under the mutex:
    std::shared_ptr<LiveNic> forking;
    bool is_whole = false;
  };

  NicHolder() {
    ::pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(false); },
                     [] { instance().after_fork(true); });
  }

  wire::Result<std::shared_ptr<LiveNic>> attached() {
    if (!nics_.empty()) {
      if (auto nic = nics_.front().nic.lock(); nic && nic->is_up()) return nic;
    }
    const Environment environment = Environment::read();
    if (environment.fabric.empty()) {
      return wire::unavailable(
          "CEPHEUS_FABRIC is not set; set it to the socket of a running cepheus-switch");
    }
    if (!environment.refusal.empty()) {
      return wire::fail(wire::ErrorCode::kRefused, environment.refusal);
    }
    const auto profile = rnic::require_nic_profile(environment.nic_profile);
    if (!profile) return wire::invalid("CEPHEUS_NIC_PROFILE: " + profile.error().text);
    auto port = attach(environment);
    if (!port) return tl::unexpected(port.error());
    const auto congestion =
        rnic::parse_congestion(environment.congestion, (*port)->identity().rate);
    if (!congestion) {
      return wire::invalid("CEPHEUS_CONGESTION: " + congestion.error().text);
    }
    auto nic = LiveNic::start(std::move(*port), *congestion, **profile);
    if (!nic) return tl::unexpected(nic.error());
    std::shared_ptr<LiveNic> shared = std::move(*nic);
    const fabric::HostIdentity& identity = shared->identity();
    log_verbose("attached to " + environment.fabric + " as " + identity.name + ", " +
                identity.address.to_string());
    announce(**profile, environment);
    nics_.remove_if([](const Attached& each) { return each.nic.expired(); });
    nics_.push_front({shared, nullptr, false});
    host_ = identity.name;
    address_ = identity.address;
    return shared;
  }

  wire::Result<std::unique_ptr<fabric::HostPort>> attach(const Environment& environment) const {
    fabric::HostPort::Options options;
    options.fabric = environment.fabric;
    options.or_any = environment.or_any;
    options.reservation = environment.reservation;
    if (environment.attach_timeout.count() > 0) options.busy_timeout = environment.attach_timeout;
    if (environment.or_any && !host_.empty()) {
      // Any host would work, but programs remember the GUID that they saw before.
      options.host = host_;
      auto again = fabric::HostPort::attach(options);
      if (again || again.error().code != wire::ErrorCode::kRefused) return again;
    }
    options.host = environment.host;
    return fabric::HostPort::attach(options);
  }

  void before_fork() {
    const Uncancelled uncancelled;
    const int held = InnerLocks::held();
    const bool is_locked = mutex_.lock_for_fork(held);
    locked_forks_ = locked_forks_ << 1 | (is_locked ? 1 : 0);
    if (!is_locked) return;
    for (Attached& each : nics_) {
      each.forking = each.nic.lock();
      each.is_whole = each.forking && each.forking->lock_for_fork(held);
    }
  }

  void after_fork(bool in_child) {
    const Uncancelled uncancelled;
    const bool is_locked = (locked_forks_ & 1) != 0;
    locked_forks_ >>= 1;
    if (!is_locked) {
      if (in_child) abandon_in_the_middle();
      return;
    }
    for (Attached& each : nics_) {
      const std::shared_ptr<LiveNic> nic = std::move(each.forking);
      if (nic && in_child) nic->abandon(each.is_whole);
      if (each.is_whole) nic->unlock_after_fork();
    }
    if (in_child) {
      // The child may attach a port of its own, as another host.
      nics_.clear();
      pinned_.reset();
      host_.clear();
      address_ = wire::Ipv4();
    }
    mutex_.unlock();
  }

  // In the child of a fork that could not lock the mutex.
  void abandon_in_the_middle() {
    for (const Attached& each : nics_) {
      if (const auto nic = each.nic.lock()) nic->abandon(false);
    }
    if (mutex_.is_in_use_here()) return;  // by the thread that the signal handler interrupted
    // A thread that is not in this process had it, and may have left anything half done.
    mutex_.renew();
    new (&nics_) std::forward_list<Attached>;
    new (&pinned_) std::shared_ptr<LiveNic>;
    new (&host_) std::string;
    address_ = wire::Ipv4();
  }

  static inline std::atomic<NicHolder*> created_{nullptr};

  // For the forks that this thread is in, the innermost last: whether it has locked the mutex.
  [[gnu::tls_model("initial-exec")]] static inline thread_local std::uint64_t locked_forks_ = 0;

  ForkMutex mutex_{false};
  // Newest first. A list: a signal handler that forks may find it in the middle of a change.
  std::forward_list<Attached> nics_;
  std::shared_ptr<LiveNic> pinned_;
  std::string host_;  // the last host of this process
  wire::Ipv4 address_;
};

__attribute__((destructor)) void flush_at_exit() {
  if (NicHolder* holder = NicHolder::existing(); holder != nullptr) holder->at_exit();
}

}  // namespace

Device& the_device() {
  static Device* const device = [] {
    static const int nobodys_operations = 0;
    auto* d = new Device();
    d->node_type = IBV_NODE_CA;
    d->transport_type = IBV_TRANSPORT_IB;
    set_text(d->name, kDeviceName);
    set_text(d->dev_name, kUverbsName);
    set_text(d->dev_path, "/sys/class/infiniband_verbs/uverbs_cepheus0");
    set_text(d->ibdev_path, "/sys/class/infiniband/cepheus0");
    d->operations = &nobodys_operations;
    return d;
  }();
  return *device;
}

ibv_gid gid_of(wire::Ipv4 address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const std::uint32_t big_endian = htobe32(address.value());
  std::memcpy(gid.raw + 12, &big_endian, sizeof big_endian);
  return gid;
}

std::optional<wire::Ipv4> address_of(const ibv_gid& gid) {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::memcmp(gid.raw, kMapped, sizeof kMapped) != 0) return std::nullopt;
  std::uint32_t big_endian = 0;
  std::memcpy(&big_endian, gid.raw + 12, sizeof big_endian);
  const wire::Ipv4 address(be32toh(big_endian));
  if (address.is_unset()) return std::nullopt;
  return address;
}

__be64 guid_of(wire::Ipv4 address) {
  return htobe64(std::uint64_t{0x0200'0000} << 32 | address.value());
}

wire::Result<std::shared_ptr<LiveNic>> acquire_nic() { return NicHolder::instance().acquire(); }

std::shared_ptr<LiveNic> current_nic() { return NicHolder::instance().current(); }

void release_nic(std::shared_ptr<LiveNic> nic) { NicHolder::instance().release(std::move(nic)); }

wire::Ipv4 nic_address() { return NicHolder::instance().address(); }

}  // namespace cepheus::verbs
