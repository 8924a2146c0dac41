// cepheus-replica serve: one replica of one volume, from a file.
#pragma once

#include <cstdint>
#include <string>

namespace cepheus::replica {

struct ServeArguments {
  std::string volume, file, listen, device;
  std::uint64_t size = 0;
  std::uint32_t block = 4096;
  bool create = false;
  bool is_direct = false;
  int ready_fd = -1;
};

// Until SIGTERM or SIGINT; an exit code.
int serve(const ServeArguments& arguments);

}  // namespace cepheus::replica
