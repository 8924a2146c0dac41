// How the makes of NICs keep time: the time-out code of their queue pairs, and how late they repeat
// a packet. A group's limits follow from it (docs/protocol.md, "Timers of the hosts"). Also how many
// packets they send ahead.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/times.h"
#include "wire/types.h"

namespace cepheus::mcast {

// RC parameters that depend on how the device keeps time.
struct Timers {
  std::uint8_t ack_timeout;    // local ACK timeout code, 4.096 us * 2^code
  std::uint8_t min_rnr_timer;  // code sent in RNR NAKs
};
inline constexpr std::uint8_t kRetries = 7;

constexpr wire::Duration code_time(std::uint8_t code) {
  return std::chrono::nanoseconds(std::int64_t{4096} << code);
}
// The time after which a queue pair gives up a silent peer, if time-outs do not grow: the first
// time and each retry (InfiniBand specification 9.7.6.1.3, which allows up to four times that).
constexpr wire::Duration retry_time(Timers timers) {
  return code_time(timers.ack_timeout) * (kRetries + 1);
}

// kIrdma: Intel's hardware. Its driver ignores the time-out code (irdma_modify_qp_roce).
enum class NicMake : std::uint8_t { kEmulated, kSoftRoce, kIrdma, kHardware };

// Packets that a queue pair has under way at most, whatever is posted; 0: no limit is known.
// rdma_rxe's (RXE_MAX_UNACKED_PSNS) and irdma's (roce_cwnd) are in their drivers' sources. The
// emulated NIC's depends on its make (Device::window).
constexpr std::uint32_t nic_window(NicMake make) {
  if (make == NicMake::kSoftRoce) return 129;
  return make == NicMake::kIrdma ? 1024 : 0;
}

// A link that is down for less than this ends no group: 1 to 2 s is a usual flap.
inline constexpr wire::Duration kLinkOutage = std::chrono::seconds(2);

class NicTiming {
 public:
  // `outage`: see mcast_context_params_t::link_outage_ms.
  constexpr explicit NicTiming(NicMake make, wire::Duration outage = kLinkOutage)
      : ignores_code_(make == NicMake::kIrdma), timers_(usual_timers(make)) {
    while (timers_.ack_timeout < kMostCode && outlasts(make) < outage) ++timers_.ack_timeout;
    const wire::Duration once = code_time(timers_.ack_timeout);
    const bool is_exact = make == NicMake::kEmulated || make == NicMake::kSoftRoce;
    latest_repeat_ = is_exact ? once : std::max<wire::Duration>(4 * once, kAdaptiveRange);
  }
  // The NIC reports its own times. They replace those of its make.
  constexpr NicTiming(const NicTiming& of_make, wire::Duration latest_repeat, bool ignores_code)
      : ignores_code_(ignores_code), timers_(of_make.timers_), latest_repeat_(latest_repeat) {}

  constexpr Timers timers() const { return timers_; }
  // The time-outs of queue pairs do not depend on the code.
  constexpr bool ignores_code() const { return ignores_code_; }
  // How late a NIC may repeat a packet for the first time. The InfiniBand specification (9.7.6.1.3)
  // allows four times the code's time. A ConnectX chooses at random from adaptive ranges of up to
  // 4.096 s (NVIDIA, "RoCE accelerations: adaptive retransmission"). Other hardware is assumed to do
  // so, too: nothing is known of it, and one group may have NICs of several makes.
  constexpr wire::Duration latest_repeat() const { return latest_repeat_; }
  // The silence after which a lagging member is dead: a living one may be silent for two repeats, of
  // which the first was lost.
  constexpr wire::Duration evict_after() const {
    return std::max<wire::Duration>(wire::times::kEvict,
                                    2 * latest_repeat() + std::chrono::milliseconds(100));
  }
  // The time without a completed send after which a sender fails. The device's own retries end
  // first, for any setting. Without a setting, so does the eviction of a dead member.
  constexpr wire::Duration sender_time_limit(std::optional<wire::Duration> requested) const {
    const wire::Duration least = std::max<wire::Duration>(
        retry_time(timers_), latest_repeat() + wire::times::kSenderRequests);
    const wire::Duration usual =
        wire::times::kSenderGivesUp + (evict_after() - wire::times::kEvict);
    return std::max(requested.value_or(usual), least);
  }

 private:
  static constexpr std::uint8_t kMostCode = 20;  // 4.3 s
  static constexpr wire::Duration kAdaptiveRange = std::chrono::milliseconds(4096);

  // rdma_rxe does not cancel the retransmission timer: below 18 it retransmits spuriously. The
  // emulated NIC times exactly, and doubles the time-out while no answer comes. Its first time-out is
  // short after the loss of a message's last packet, and eight of them outlast a process that was
  // stopped for seconds. With 16, eight time-outs take 2.1 s.
  static constexpr Timers usual_timers(NicMake make) {
    switch (make) {
      case NicMake::kEmulated:
        return {14, 1};  // 67 ms, 10 us
      case NicMake::kSoftRoce:
        return {18, 12};  // 1.07 s, 0.64 ms
      default:
        return {16, 12};  // 268 ms, 0.64 ms
    }
  }
  // How long retries last at least.
  constexpr wire::Duration outlasts(NicMake make) const {
    if (make != NicMake::kEmulated) return retry_time(timers_);
    wire::Duration sum{}, each = code_time(timers_.ack_timeout);
    for (unsigned i = 0; i <= kRetries; ++i) {
      sum += each;
      each = std::min<wire::Duration>(2 * each, wire::times::kSourceRepeats);
    }
    return sum;
  }

  bool ignores_code_;
  Timers timers_;
  wire::Duration latest_repeat_{};
};

// Of a kernel's device, by its vendor and sysfs.
NicMake make_of(const std::string& device, std::uint32_t vendor_id,
                const std::string& sysfs = "/sys/class/infiniband");
// Why a parameter contradicts the NIC, and what to do; empty: none does. Unset: not given.
std::string contradiction(const NicTiming& timing, std::optional<wire::Duration> outage,
                          std::optional<wire::Duration> progress_timeout);

}  // namespace cepheus::mcast
