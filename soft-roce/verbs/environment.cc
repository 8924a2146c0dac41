#include "soft-roce/verbs/environment.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace cepheus::rnic {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_number(const std::string& text);

// The host of a rank, where a launcher puts several on one.
void share_host(Environment& environment, const std::string& rank) {
  const std::string share = variable("CEPHEUS_RANKS_PER_HOST");
  const unsigned long per_host = is_number(share) ? std::strtoul(share.c_str(), nullptr, 10) : 1;
  const unsigned long number = std::strtoul(rank.c_str(), nullptr, 10);
  const unsigned long host = per_host > 0 ? number / per_host : number;
  environment.host = "#" + std::to_string(host);
  const unsigned long holder = per_host > 0 ? host * per_host : number;
  if (number == holder) return;
  environment.refusal = "rank " + rank + " shares host " + environment.host + " with rank " +
                        std::to_string(holder) +
                        ", which has its port (CEPHEUS_RANKS_PER_HOST=" + share + ")";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Environment Environment::read() {
  Environment environment;
  environment.fabric = variable("CEPHEUS_FABRIC");
  environment.host = variable("CEPHEUS_HOST");
  if (environment.host.empty()) {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
      if (const std::string rank = variable(name); is_number(rank)) {
        share_host(environment, rank);
        break;
      }
    }
  }
  environment.host_chosen = !environment.host.empty();
  const std::string verbose = variable("CEPHEUS_VERBOSE");
  environment.verbose = !verbose.empty() && verbose != "0";
  return environment;
}

bool fabric_listens(const std::string& path, std::string& reason) {
  const std::string what = "CEPHEUS_FABRIC=" + path + ": ";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    reason = what + "the path is longer than a Unix socket's may be; use a shorter one";
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    reason = what + "can't open a Unix socket: " + std::strerror(errno);
    return false;
  }
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ::close(fd);
  if (!connected && error == EPROTOTYPE) return true;  // a stream or packet listener, alive
  if (connected) {
    reason = what + "this is not a fabric's socket; name the one that cepheus-switch was given";
  } else if (error == ENOENT) {
    reason = what + "no such socket; start cepheus-switch, or correct the path";
  } else if (error == ECONNREFUSED) {
    reason = what + "nobody listens there any more; start cepheus-switch again";
  } else {
    reason = what + std::strerror(error) + "; check the path and its permissions";
  }
  return false;
}

}  // namespace cepheus::rnic
