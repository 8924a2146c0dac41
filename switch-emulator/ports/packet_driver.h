// A one-armed interface by a packet socket: any interface of the kernel's, and CAP_NET_RAW. Each
// copy's payload is copied into the kernel's ring.
#pragma once

#include <memory>
#include <string>

#include "switch-emulator/ports/interface_driver.h"

namespace cepheus::fabric {

class PacketDriver final : public InterfaceDriver {
 public:
  // Errors as PacketSocket::open.
  static wire::Result<std::unique_ptr<InterfaceDriver>> open(const std::string& interface,
                                                             std::uint32_t largest_frame);

  int fd() const override { return socket_->fd(); }
  void clear_error() override { socket_->clear_error(); }
  std::optional<PacketSocket::Received> next() override { return socket_->next(); }
  void release() override { socket_->release(); }
  bool has_received() const override { return socket_->has_received(); }
  std::uint32_t take_dropped() override { return socket_->take_dropped(); }
  std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                  const wire::Mac& to) override;
  std::uint32_t kick() override { return socket_->kick(); }
  bool has_pushed() const override { return socket_->has_pushed(); }
  bool is_pending() const override { return socket_->is_pending(); }

 private:
  explicit PacketDriver(std::unique_ptr<PacketSocket> socket) : socket_(std::move(socket)) {}

  std::unique_ptr<PacketSocket> socket_;
};

}  // namespace cepheus::fabric
