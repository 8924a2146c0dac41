#include "switch-emulator/live/control/interfaces.h"

#include <net/if.h>

#include <cerrno>
#include <cstring>

#include "switch-emulator/ports/interface_check.h"

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

wire::Result<void> Interfaces::check(const std::string& interface, std::uint32_t largest_frame) {
  using enum fabric::InterfaceCheck::Verdict;
  for (const auto& found : fabric::check_interface(interface, largest_frame)) {
    const std::string text = found.to_text(interface);
    if (found.verdict == kUnusable) return wire::unavailable(text);
    if (found.verdict == kDoubtful && doubts_.insert(text).second) warn_(text);
  }
  return {};
}

wire::Result<void> Interfaces::open(fabric::WirePort& port, std::size_t host, wire::Instant now) {
  const fabric::WirePortConfig& config = port.config();
  if (auto good = check(config.interface, config.largest_frame); !good) return good;
  if (auto opened = port.open(); !opened) return opened;
  if (auto watched = watch(port, [this, host] { datapath_.wake(host); }); !watched) {
    port.close();
    return watched;
  }
  datapath_.attach(now, host);
  return {};
}

wire::Result<void> Interfaces::open_one_armed(wire::Instant now) {
  const fabric::OneArmedConfig& config = datapath_.one_armed()->config();
  if (auto good = check(config.interface, config.largest_frame); !good) return good;
  if (auto opened = datapath_.open_one_armed(now); !opened) return opened;
  fabric::OneArmedInterface& one_armed = *datapath_.one_armed();
  if (one_armed.fd() < 0) return {};  // it is polled all the time
  auto watched = watch(one_armed, [this] { datapath_.wake_one_armed(); });
  if (!watched) datapath_.close_one_armed(now);
  return watched;
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
}

void Interfaces::look_at(fabric::WirePort& port, std::size_t host, wire::Instant now) {
  const std::string who = "host " + datapath_.identity(host).name + " is ";
  if (port.is_open()) {
    if (port.is_at_its_interface()) return;
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
    if (looked) return;
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
