// Control messages between the members of a team: one receive for any member is always
// posted, sends are forgotten once they are out. Never blocks.
#pragma once

#include <functional>
#include <utility>

#include "ompi-coll/agreement.h"
#include "ompi-coll/messages.h"

namespace cepheus::coll {

class ControlLink {
 public:
  // `arrived` runs when a message may be there, inside Open MPI's progress: it must not call MPI.
  ControlLink(const Team& team, std::function<void()> arrived)
      : team_(team), arrived_(std::move(arrived)) {}
  ~ControlLink() { close(); }
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Posts the receive. Errors are Open MPI's codes.
  int open();
  bool is_open() const { return receive_ != nullptr; }
  // While the communicator can communicate: takes the receive back.
  void close();

  // `to`: a member or Action::kEveryone.
  int send(int to, const ControlMessage& message);
  // The next message, if one has arrived.
  bool receive(int& from, ControlMessage& out);

 private:
  int post();

  const Team& team_;
  const std::function<void()> arrived_;
  ompi_request_t* receive_ = nullptr;
  ControlMessage incoming_{};
};

}  // namespace cepheus::coll
