// A member's role: leader or member of a group with an address, sender or receiver of a sender
// group. A group has one role at a time. mcast_group_lead() turns a member into the leader, and a
// receiver into the sender.
//
// A role holds the member's part of registration (controller/). It passes outcomes to its group.
#pragma once

#include <memory>
#include <string>

#include "controller/sender_registration.h"
#include "libmcast/engine/group_state.h"

namespace cepheus::mcast {

class Role {
 public:
  virtual ~Role() = default;

  virtual bool is_leader() const = 0;
  // The address in the group's name: the group's own, or its sender's. Unset while that is not
  // known.
  virtual wire::Ipv4 address() const = 0;
  // The destination of this member's datagrams.
  virtual wire::Ipv4 peer() const = 0;
  // The group's address; unset of sender groups, which have none.
  virtual wire::McstId mcst_id() const { return {}; }
  virtual std::uint16_t epoch() const = 0;
  virtual std::size_t member_count() const { return 0; }  // as the leader knows it; 0 of others
  // Of an active reduction group: the switches' pairs are by address, and addresses ascend with
  // members' indices.
  struct Pairs {
    bool are_flat = false, ascend = false;
  };
  virtual Pairs pairs() const { return {}; }
  // Of member_count(): without a confirmation of the registration's present step.
  virtual std::size_t missing_count() const { return 0; }

  virtual void on_message(wire::Instant, wire::Ipv4, const wire::MrpMessage&, GroupOutput&) {}
  virtual void on_sender_group_message(wire::Instant, wire::Ipv4, const wire::SenderGroupMessage&,
                                       GroupOutput&) {}
  virtual void on_timer(wire::Instant now, GroupOutput& out) = 0;
  virtual wire::Instant deadline() const = 0;
  // The queue pair has been connected, or could not be and the group has failed.
  virtual void on_connected(wire::Instant, bool /*ok*/, GroupOutput&) {}
  // This member's sends do not end: asks for the lagging members.
  virtual void send_request(wire::Instant now, mrp::Outbox& out) = 0;
  // After all that has arrived was taken in: fails the group if the other side is gone.
  virtual void look(wire::Instant now, GroupOutput& out) = 0;
  // The group has failed here because of `reason`: sends that to the others.
  virtual void send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) = 0;

  // The member leaves the group. A leader ends it, which takes on_message() and on_timer() until
  // has_left().
  virtual void leave(wire::Instant, mrp::Outbox&) {}
  virtual bool has_left() const { return true; }

  // The calls that the member may make. INVALID with the remedy.
  virtual Expected<void> check_may_send() const { return {}; }
  virtual Expected<void> check_may_publish() const { return {}; }
  virtual Expected<void> check_may_revoke() const { return {}; }
  // ... bring its regions to the member that leads, with its name.
  virtual Expected<void> check_may_name_regions() const = 0;
  // OK: all that was published and revoked is in force.
  virtual mcast_status_t regions_status() const = 0;

  struct Registrations {
    std::unique_ptr<mrp::Registration> of_group;
    std::unique_ptr<mrp::SenderRegistration> of_sender_group;
  };
  // See GroupEngine.
  virtual Registrations take_registration() { return {}; }
};

}  // namespace cepheus::mcast
