// A queue pair's congestion control (IBTA Annex A17.9): its notifications to the peer, and its own
// rate. Reliable connections only, those of groups included.
//
//     congested queue           marks a data packet: congestion experienced (CE)
//     receiver                  notification point: CNP, or echo in an acknowledgement
//     sender                    reaction point: Dcqcn gives a rate, packets leave no faster
//
// Time is an argument. A queue pair of a NIC without congestion control has no such object.
#pragma once

#include "nic-emulator/engine/counters.h"
#include "nic-emulator/engine/dcqcn.h"
#include "wire/ecn.h"
#include "wire/roce.h"

namespace cepheus::rnic {

enum class Notification : std::uint8_t {
  kCnp,     // a packet of its own, at most one in each cnp_interval
  kCeEcho,  // BECN in the BTH of the acknowledgement that each marked packet requests
};

struct CongestionConfig {
  DcqcnParameters reaction;
  Notification notification = Notification::kCnp;
  wire::Duration cnp_interval = std::chrono::microseconds(50);  // of one queue pair
  wire::BitRate link{100'000'000'000};  // the port's rate: the upper limit of all rates
  // A driver that was not scheduled makes up for at most this much missed time. 0 for
  // drivers that are never late.
  wire::Duration catch_up{0};

  wire::Result<void> check() const;
};

struct CongestionState {
  wire::BitRate rate;
  double alpha = 0;
  bool is_limited = false;  // the rate is below the link's
};

class QpCongestion {
 public:
  // Both outlive this. Precondition: config.check() succeeds.
  QpCongestion(const CongestionConfig& config, Counters& counters);
  void reset();

  static bool is_marked(const wire::RoceHeaders& headers) {
    return wire::ecn_of(headers.ip.tos) == wire::Ecn::kExperienced;
  }
  // A marked request (`answers`: acknowledgements are sent for it) or response has arrived.
  void on_marked(wire::Instant now, bool answers);
  bool owes_cnp() const { return owes_cnp_; }
  bool owes_echo() const { return owes_echo_; }
  void on_cnp_sent();
  void on_echo_sent();

  // A CNP or an echo has arrived.
  void on_notification(wire::Instant now);

  // A data packet of this size was sent. True: the next one waits until deadline().
  bool on_sent(wire::Instant now, std::size_t bytes);
  bool waits() const { return waits_; }
  wire::Instant deadline() const { return waits_ ? next_send_ : wire::kNever; }
  void on_timer(wire::Instant now) { waits_ = waits_ && now < next_send_; }

  CongestionState state(wire::Instant now) const;

 private:
  const CongestionConfig& config_;
  Counters& counters_;
  bool waits_ = false;
  bool owes_cnp_ = false;
  bool owes_echo_ = false;
  wire::Instant next_send_ = wire::Instant::min();
  wire::Instant next_cnp_ = wire::Instant::min();
  Dcqcn reaction_;
};

}  // namespace cepheus::rnic
