// Permissions at a fabric, by the user id that the kernel reports for a Unix socket's peer.
//
// The fabric's own user and root may do everything. Users that the topology names may attach and
// read the status. All others are refused; without named users the sockets' permissions exclude
// them already.
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
  bool may_command(uid_t user) const;  // change links, reset counters, stop the fabric
  // Permissions of the sockets: for the owner alone, or for all users, which are then checked here.
  mode_t socket_mode() const { return users_.empty() ? 0600 : 0666; }

 private:
  explicit Access(std::vector<uid_t> users);

  uid_t own_;
  std::vector<uid_t> users_;
};

}  // namespace cepheus::live
