// Assigns hosts to clients, and reserves hosts for jobs. Without I/O: the caller tells which ports
// are free.
//
// Clients request a host by name, address or index, or any host. A reservation keeps hosts for the
// processes of one job before they attach: others get none of them, under any name.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "switch-emulator/ports/handshake.h"

namespace cepheus::live {

class HostAssignment {
 public:
  struct Host {
    std::string name;
    wire::Ipv4 address;
  };
  // Called for every host that is considered, at that moment.
  class Ports {
   public:
    virtual bool is_free(std::size_t host) = 0;
    // For a host that is not free: "is held by pid 7: end it, or choose another host".
    virtual std::string why_not_free(std::size_t host) const = 0;

   protected:
    ~Ports() = default;
  };

  HostAssignment(std::vector<Host> hosts, Ports& ports);

  // The host for the client, or the reason why it gets none.
  struct Choice {
    std::size_t host = 0;
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;
  };
  Choice choose(const fabric::AttachRequest& hello, uid_t user) const;

  // Reserves all wanted hosts, until end(id), or none. Only the holder's user gets these hosts, and
  // the error for others names its process. Precondition: `id` is not 0, and not in use.
  struct Reserved {
    std::string names;  // separated by commas, in the order of the request
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;  // the reason
  };
  Reserved reserve(const fabric::HostsWanted& wanted, fabric::ReservationId id,
                   const fabric::PeerCredentials& holder);
  void end(fabric::ReservationId id);
  // Process that has reserved the host; 0: none that is visible from here.
  std::optional<pid_t> reserved_by(std::size_t host) const;

 private:
  struct Reservation {
    fabric::ReservationId id = 0;  // 0: none
    fabric::PeerCredentials holder;
  };
  // The reservation in a client's AttachRequest.
  struct Claim {
    fabric::ReservationId id = 0;
    uid_t user = 0;
  };
  struct Selection {
    std::vector<std::size_t> hosts;
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;
  };

  Choice take(std::size_t host, const Claim& claim) const;
  Choice take_named(const std::string& wanted, const Claim& claim) const;
  Choice take_any() const;
  Selection select_named(const std::string& names) const;
  Selection select_free(std::uint32_t number) const;
  bool is_anybodys(std::size_t host) const { return ports_.is_free(host) && !is_reserved(host); }
  bool is_reserved(std::size_t host) const { return reservations_[host].id != 0; }
  bool is_kept_from(std::size_t host, const Claim& claim) const {
    const Reservation& kept = reservations_[host];
    return kept.id != 0 && (kept.id != claim.id || kept.holder.uid != claim.user);
  }

  const std::vector<Host> hosts_;
  Ports& ports_;
  std::vector<Reservation> reservations_;  // by host
};

}  // namespace cepheus::live
