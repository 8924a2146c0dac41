// ECN marks before a link: the congestion point of DCQCN (Zhu et al. 2015, 3.1), which marks as
// random early detection does.
//
//   probability
//       1 |              +-------
//         |              |
//    pmax |           . '|
//         |       . '    |
//       0 +------+-------+-------  bytes waiting in front
//              kmin    kmax
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/splitmix.h"
#include "wire/types.h"

namespace cepheus::net {

struct EcnConfig {
  bool on = false;
  wire::Bytes kmin = 0;  // 0: by the link's rate
  wire::Bytes kmax = 0;  // 0: by the link's rate
  double pmax = kUsualPmax;

  // The bytes of 4 us at the link's rate, and ten times that: 50 and 500 KB at 100 Gb/s. The floor
  // is two packets, because two packets wait wherever two senders meet.
  static constexpr double kUsualPmax = 0.01;
  static constexpr wire::Bytes kLeastKmin = 8'500;
  EcnConfig for_rate(wire::BitRate rate) const {
    constexpr std::uint64_t kBytesOf4us = 8 * 250'000;  // bit/s for each byte
    EcnConfig full = *this;
    const wire::Bytes usual = std::max(rate.bits_per_second / kBytesOf4us, kLeastKmin);
    if (full.kmin == 0) full.kmin = full.kmax == 0 ? usual : std::min(usual, full.kmax / 10 + 1);
    if (full.kmax == 0) full.kmax = std::max(10 * usual, full.kmin);
    return full;
  }
  bool operator==(const EcnConfig&) const = default;
};

class EcnMarker {
 public:
  // The marker has its own random numbers. A short queue draws none.
  EcnMarker(const EcnConfig& config, std::uint64_t seed) : config_(config), random_(seed) {}

  // For the queue before a link (net::LinkConfig). Its random numbers are not those of the link's
  // faults.
  template <typename LinkConfig>
  static EcnMarker of(const LinkConfig& link) {
    constexpr std::uint64_t kOwnStream = 0xEC4;
    return EcnMarker(link.ecn.for_rate(link.rate), wire::splitmix(link.seed, kOwnStream));
  }

  // Whether to mark a frame that is queued behind `waiting` bytes.
  bool marks(wire::Bytes waiting) {
    if (!config_.on || waiting <= config_.kmin) return false;
    if (waiting >= config_.kmax) return true;
    const double probability = config_.pmax * static_cast<double>(waiting - config_.kmin) /
                               static_cast<double>(config_.kmax - config_.kmin);
    return random_.fraction() < probability;
  }

 private:
  EcnConfig config_;
  wire::SplitMix random_;
};

}  // namespace cepheus::net
