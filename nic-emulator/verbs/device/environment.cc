// Each call reads the variables anew and keeps nothing. A rank is the first number among
// OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK and SLURM_PROCID. CEPHEUS_HOST overrides all placement
// by rank.
//
// A malformed number of ranks or milliseconds counts as unset. The texts of CEPHEUS_CONGESTION and
// CEPHEUS_NIC_PROFILE are checked at attachment, not here. A refusal is only recorded: the
// attachment fails with it.
//
// fabric_listens() reads the result of connect(2): EPROTOTYPE means a living listener of another
// type, ECONNREFUSED a socket that its owner left behind (unix(7)).
#include "nic-emulator/verbs/device/environment.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace cepheus::verbs {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

unsigned long number_of(const std::string& text) { return std::strtoul(text.c_str(), nullptr, 10); }

// The rank as the launcher's variable has it; empty without one.
std::string rank_variable() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (std::string rank = variable(name); is_number(rank)) return rank;
  }
  return {};
}

// Ranks that MPI_Comm_spawn has started count from 0 again, beside their parents: Open MPI's, and
// those of MPICH's hydra.
bool is_spawned() {
  return !variable("OMPI_PARENT_PORT").empty() || variable("PMI_SPAWNED") == "1";
}

// The n-th of the names in `list`, or an empty string.
std::string name_at(const std::string& list, unsigned long n) {
  std::size_t begin = 0;
  for (; n > 0; --n) {
    const std::size_t comma = list.find(',', begin);
    if (comma == std::string::npos) return {};
    begin = comma + 1;
  }
  return list.substr(begin, list.find(',', begin) - begin);
}

// Where several ranks are one host, only the first of them has its port.
void share_host(Environment& environment, unsigned long rank, unsigned long per_host) {
  if (rank % per_host == 0) return;
  environment.refusal = "rank " + std::to_string(rank) + " shares its host with rank " +
                        std::to_string(rank / per_host * per_host) +
                        ", which has the port (CEPHEUS_RANKS_PER_HOST=" + std::to_string(per_host) +
                        ")";
}

// Sets the rank's host, unless the user has set it for this process alone.
void place_rank(Environment& environment, unsigned long rank, unsigned long per_host) {
  if (is_spawned()) return;
  const std::string hosts = variable("CEPHEUS_HOSTS");
  const unsigned long number = rank / per_host;
  if (hosts.empty()) {
    environment.host = "#" + std::to_string(number);
    return;
  }
  environment.or_any = false;
  environment.host = name_at(hosts, number);
  if (environment.host.empty()) {
    environment.refusal =
        "CEPHEUS_HOSTS has no host for rank " + std::to_string(rank) + ": name one for each rank";
  }
}

}  // namespace

Environment Environment::read() {
  Environment environment;
  environment.fabric = variable("CEPHEUS_FABRIC");
  const std::string rank = rank_variable();
  environment.is_rank = !rank.empty();
  environment.is_first_rank = environment.is_rank && number_of(rank) == 0;
  environment.reservation = std::strtoull(variable("CEPHEUS_RESERVATION").c_str(), nullptr, 16);
  environment.host = variable("CEPHEUS_HOST");
  if (!environment.host.empty()) {
    environment.or_any = false;
  } else if (environment.is_rank) {
    const std::string share = variable("CEPHEUS_RANKS_PER_HOST");
    const unsigned long per_host = is_number(share) ? std::max(number_of(share), 1UL) : 1;
    share_host(environment, number_of(rank), per_host);
    place_rank(environment, number_of(rank), per_host);
  }
  if (const std::string limit = variable("CEPHEUS_ATTACH_TIMEOUT_MS"); is_number(limit))
    environment.attach_timeout = std::chrono::milliseconds(number_of(limit));
  environment.congestion = variable("CEPHEUS_CONGESTION");
  environment.nic_profile = variable("CEPHEUS_NIC_PROFILE");
  const std::string verbose = variable("CEPHEUS_VERBOSE");
  environment.verbose = !verbose.empty() && verbose != "0";
  return environment;
}

bool fabric_listens(const std::string& path, std::string& reason) {
  const std::string what = "CEPHEUS_FABRIC=" + path + ": ";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    reason = what + "the path is too long for a Unix socket; use a shorter one";
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
    reason = what + "this is not a fabric's socket; give the path of cepheus-switch --fabric";
  } else if (error == ENOENT) {
    reason = what + "no such socket; start cepheus-switch, or correct the path";
  } else if (error == ECONNREFUSED) {
    reason = what + "no fabric serves this socket any more; start cepheus-switch again";
  } else {
    reason = what + std::strerror(error) + "; check the path and its permissions";
  }
  return false;
}

}  // namespace cepheus::verbs
