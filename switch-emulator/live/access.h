// Who may use a fabric, by the user id that the kernel vouches for at a Unix socket.
//
// The fabric's own user and root may do everything. Users that the topology names may attach and
// look; everybody else is refused, and without named users the sockets are closed to them anyway.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "wire/result.h"

namespace cepheus::live {

class Access {
 public:
  // `users` are names or numbers. kInvalid: a user that does not exist here.
  static wire::Result<Access> of(const std::vector<std::string>& users);

  bool may_attach(uid_t user) const;
  bool may_command(uid_t user) const;  // links, counters, the end
  // Permissions of the sockets: for the owner alone, or for all, who are then told apart.
  mode_t socket_mode() const { return users_.empty() ? 0600 : 0666; }

 private:
  explicit Access(std::vector<uid_t> users);

  uid_t own_;
  std::vector<uid_t> users_;
};

}  // namespace cepheus::live
