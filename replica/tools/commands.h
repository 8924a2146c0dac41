// The commands of cepheus-replica. Each returns the program's exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cepheus::replica {

struct ServeArguments {
  std::string volume, file, listen, device;
  std::uint64_t size = 0;
  std::uint32_t block = 4096;
  bool create = false;
  bool is_direct = false;
  int ready_fd = -1;
};

// Serves one replica of one volume, from a file, until SIGTERM or SIGINT.
int serve(const ServeArguments& arguments);

// Prints the status of each replica, as JSON lines or as text. 0; 1: one did not answer; 2: usage.
int show_status(const std::vector<std::string>& addresses, bool as_json);

// Compares the replicas, while a writer may be writing. 0: equal; 1: different; 2: unknown (a
// replica is missing, named twice, or not of that volume; usage).
int check_volume(const std::string& volume, const std::vector<std::string>& addresses);

}  // namespace cepheus::replica
