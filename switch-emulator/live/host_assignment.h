// Which host a client becomes, and which hosts are kept free for a job. Without I/O: the caller
// says which ports are free.
//
// Clients ask for a host by name, address or index, or for any. A reservation keeps hosts for the
// processes of one job before they attach: others get none of them, by whatever name they ask.
#pragma once

#include <sys/types.h>

#include <functional>
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
  // Asked for every host that is considered, at that moment.
  class Ports {
   public:
    virtual bool is_free(std::size_t host) = 0;
    // Of a host that is not free: "is held by pid 7: end it, or ask for another host".
    virtual std::string why_not_free(std::size_t host) const = 0;

   protected:
    ~Ports() = default;
  };

  HostAssignment(std::vector<Host> hosts, Ports& ports);

  // The host that the client shall be, or why it can't be any.
  struct Choice {
    std::size_t host = 0;
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;
  };
  Choice choose(const fabric::AttachRequest& hello, uid_t user) const;

  // Reserves all that is wanted, until end(id), or nothing. Only the holder's user gets these hosts,
  // and its process is named to others. Precondition: `id` is not 0, and not in use.
  struct Reserved {
    std::string names;  // separated by commas, in the order asked for
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;  // why not
  };
  Reserved reserve(const fabric::HostsWanted& wanted, fabric::ReservationId id,
                   const fabric::PeerCredentials& holder);
  void end(fabric::ReservationId id);
  // Who has reserved the host; 0: a process that can't be seen from here.
  std::optional<pid_t> reserved_by(std::size_t host) const;

 private:
  struct Reservation {
    fabric::ReservationId id = 0;  // 0: none
    fabric::PeerCredentials holder;
  };
  // What a client shows of a reservation.
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
