// Opening: check the interface, open the port, watch its descriptor, adopt its MTU, attach the
// host. At the start a failure ends the fabric. Later it is reported once, and the next look tries
// again. A missing interface is not opened in vain, since that takes the kernel milliseconds.
//
// Checks of an interface in use never detach it: doubts go to the operator, and to hosts that send
// PROBE.
#include "switch-emulator/live/control/interfaces.h"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "switch-emulator/ports/interface_check.h"
#include "wire/probe.h"

namespace cepheus::live {

wire::Result<void> Interfaces::open(wire::Instant now) {
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    fabric::WirePort* const port = datapath_.wire_port(host);
    if (port == nullptr) continue;
    if (auto opened = open(*port, host, now); !opened) return opened;
    next_look_ = now + kBetweenLooks;
  }
  if (datapath_.one_armed() == nullptr) return {};
  next_look_ = now + kBetweenLooks;
  return open_one_armed(now);
}

namespace {

std::uint8_t doubt_of(const fabric::InterfaceCheck& found) {
  if (found.verdict == fabric::InterfaceCheck::Verdict::kGood) return 0;
  if (found.name == "roce") return wire::ProbeSight::kRoce;
  if (found.name == "merging") return wire::ProbeSight::kMerging;
  return found.name == "queues" ? wire::ProbeSight::kQueues : 0;
}

std::uint8_t cores_of_switch() {
  constexpr unsigned kMost = 255;
  return static_cast<std::uint8_t>(std::min(fabric::cores_of_thread(), kMost));
}

}  // namespace

wire::Result<std::uint8_t> Interfaces::check(const std::string& interface,
                                             std::uint32_t largest_frame) {
  using enum fabric::InterfaceCheck::Verdict;
  std::uint8_t doubts = 0;
  for (const auto& found : fabric::check_interface(interface, largest_frame, machine_)) {
    const std::string text = found.to_text(interface);
    if (found.verdict == kUnusable) return wire::unavailable(text);
    if (found.verdict == kDoubtful && doubts_.insert(text).second) warn_(text);
    doubts |= doubt_of(found);
  }
  return doubts;
}

// An interface in use stays in use: doubts about it are reported, here and to hosts that send PROBE.
std::uint8_t Interfaces::check_again(const std::string& interface, std::uint32_t largest_frame) {
  std::uint8_t doubts = 0;
  for (const auto& found : fabric::check_interface(interface, largest_frame, machine_)) {
    const std::string text = found.to_text(interface);
    const bool is_good = found.verdict == fabric::InterfaceCheck::Verdict::kGood;
    if (!is_good && doubts_.insert(text).second) warn_(text);
    doubts |= doubt_of(found);
  }
  return doubts;
}

void Interfaces::check_again(const fabric::WirePort& port, std::size_t host) {
  const fabric::WirePortConfig& config = port.config();
  datapath_.set_box(host, check_again(config.interface, config.largest_frame), cores_of_switch());
}

void Interfaces::check_one_armed_again() {
  const fabric::OneArmedConfig& config = datapath_.one_armed()->config();
  set_doubts_behind_one_armed(check_again(config.interface, config.largest_frame));
}

void Interfaces::look_for_roce() {
  auto devices = fabric::roce_devices(machine_);
  if (devices != roce_devices_) checks_left_ = kChecksOfRoce;
  roce_devices_ = std::move(devices);
  if (checks_left_ == 0) return;
  --checks_left_;
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    const fabric::WirePort* const port = datapath_.wire_port(host);
    if (port != nullptr && port->is_open()) check_again(*port, host);
  }
  const fabric::OneArmedInterface* const one_armed = datapath_.one_armed();
  if (one_armed != nullptr && one_armed->is_open()) check_one_armed_again();
}

void Interfaces::set_doubts_behind_one_armed(std::uint8_t doubts) {
  const std::uint8_t cores = cores_of_switch();
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    if (datapath_.is_behind_one_armed(host)) datapath_.set_box(host, doubts, cores);
  }
}

wire::Result<void> Interfaces::open(fabric::WirePort& port, std::size_t host, wire::Instant now) {
  const fabric::WirePortConfig& config = port.config();
  const auto doubts = check(config.interface, config.largest_frame);
  if (!doubts) return tl::unexpected(doubts.error());
  if (auto opened = port.open(); !opened) return opened;
  if (auto watched = watch(port, [this, host] { datapath_.wake(host); }); !watched) {
    port.close();
    return watched;
  }
  datapath_.set_box(host, *doubts, cores_of_switch());
  adopt_mtu(port, host);
  datapath_.attach(now, host);
  return {};
}

wire::Result<void> Interfaces::open_one_armed(wire::Instant now) {
  const fabric::OneArmedConfig& config = datapath_.one_armed()->config();
  const auto doubts = check(config.interface, config.largest_frame);
  if (!doubts) return tl::unexpected(doubts.error());
  set_doubts_behind_one_armed(*doubts);
  if (auto opened = datapath_.open_one_armed(now); !opened) return opened;
  adopt_mtu_of_one_armed();
  fabric::OneArmedInterface& one_armed = *datapath_.one_armed();
  if (one_armed.fd() < 0) return {};  // it is polled all the time
  auto watched = watch(one_armed, [this] { datapath_.wake_one_armed(); });
  if (!watched) datapath_.close_one_armed(now);
  return watched;
}

bool Interfaces::adopt_mtu(const fabric::WirePort& port, std::size_t host) {
  const fabric::WirePortConfig& config = port.config();
  return datapath_.set_interface_frame(host,
                                       fabric::frame_at(config.interface, config.largest_frame));
}

bool Interfaces::adopt_mtu_of_one_armed() {
  const fabric::OneArmedConfig& config = datapath_.one_armed()->config();
  const std::uint32_t frame = fabric::frame_at(config.interface, config.largest_frame);
  bool changes = false;
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    if (datapath_.is_behind_one_armed(host)) changes |= datapath_.set_interface_frame(host, frame);
  }
  return changes;
}

template <typename Interface, typename Wake>
wire::Result<void> Interfaces::watch(Interface& port, Wake wake) {
  const auto on_event = [&port, wake](std::uint32_t events) {
    if ((events & EPOLLERR) != 0) port.clear_error();
    wake();
  };
  if (poller_.watch(port.fd(), Poller::kIn | Poller::kEdge, on_event)) return {};
  return wire::unavailable("can't watch interface " + port.config().interface + ": " +
                           std::strerror(errno));
}

void Interfaces::look_again(wire::Instant now) {
  next_look_ = now + kBetweenLooks;
  for (std::size_t host = 0; host < datapath_.host_count(); ++host) {
    if (fabric::WirePort* const port = datapath_.wire_port(host)) look_at(*port, host, now);
  }
  if (datapath_.one_armed() != nullptr) look_at_one_armed(now);
  look_for_roce();
}

void Interfaces::look_at(fabric::WirePort& port, std::size_t host, wire::Instant now) {
  const std::string who = "host " + datapath_.identity(host).name + " is ";
  if (port.is_open()) {
    if (port.is_at_its_interface()) {
      if (adopt_mtu(port, host)) check_again(port, host);
      return;
    }
    poller_.forget(port.fd());
    datapath_.detach(now, host);
    warn_(who + "detached: interface " + port.config().interface + " was removed; make it again");
  }
  const std::string& interface = port.config().interface;
  if (!is_there(interface)) return;
  const auto opened = open(port, host, now);
  report(host, opened, who + "attached again at interface " + interface);
}

// A failed open of a packet socket takes the kernel milliseconds, in which no frame moves.
bool Interfaces::is_there(const std::string& interface) {
  // The reason may be EMFILE: opening shows it.
  return if_nametoindex(interface.c_str()) != 0 || errno != ENODEV;
}

// `good` if it was opened, else the reason, once.
void Interfaces::report(std::size_t who, const wire::Result<void>& opened,
                        const std::string& good) {
  const std::string text = opened ? good : opened.error().text;
  if (std::string& last = reported_[who]; last != text) warn_(last = text);
  if (opened) reported_.erase(who);
}

void Interfaces::look_at_one_armed(wire::Instant now) {
  fabric::OneArmedInterface& one_armed = *datapath_.one_armed();
  if (one_armed.is_open()) {
    const auto looked = one_armed.look();
    if (looked) {
      if (adopt_mtu_of_one_armed()) check_one_armed_again();
      return;
    }
    if (one_armed.fd() >= 0) poller_.forget(one_armed.fd());
    datapath_.close_one_armed(now);
    warn_("all hosts behind it are detached: " + looked.error().text);
  }
  const std::string& interface = one_armed.config().interface;
  if (!is_there(interface)) return;
  const auto opened = open_one_armed(now);
  report(datapath_.host_count(), opened, "hosts are attached again at interface " + interface);
}

}  // namespace cepheus::live
