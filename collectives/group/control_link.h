// Control messages between the members of a team: one receive for any member is always
// posted, sends are forgotten once they are out. Never blocks.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "collectives/core/agreement.h"
#include "collectives/core/rootless_agreement.h"
#include "collectives/group/messages.h"

namespace cepheus::coll {

template <typename Message, Tag kTag>
class Link {
 public:
  // `arrived` runs when a message may be there, inside the host's progress: it must not call MPI.
  Link(const Team& team, std::function<void()> arrived)
      : team_(team), arrival_{{run}, std::move(arrived)} {}
  ~Link() { close(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Posts the receive.
  Code open();
  bool is_open() const { return receive_ != nullptr; }
  // It has been open, and is not closed: the host may have refused it the receive of a further message.
  bool has_opened() const { return has_opened_; }
  // While the communicator can communicate: takes the receive back.
  void close();

  // `to`: a member or Action::kEveryone.
  Code send(int to, const Message& message);
  bool has_sent_to(int member) const {
    return !receivers_.empty() && receivers_[static_cast<std::size_t>(member)];
  }
  // The next message, if one has arrived.
  bool receive(int& from, Message& out);

 private:
  struct Arrival : host::Notice {
    std::function<void()> arrived;
  };
  static void run(host::Notice* self) { static_cast<Arrival*>(self)->arrived(); }
  Code post();

  const Team& team_;
  Arrival arrival_;
  host::Request* receive_ = nullptr;
  bool has_opened_ = false;
  Message incoming_{};
  std::vector<bool> receivers_;  // by member; empty: none
};
using ControlLink = Link<ControlMessage, Tag::kControl>;
using RootlessLink = Link<RootlessMessage, Tag::kReductionControl>;

}  // namespace cepheus::coll
