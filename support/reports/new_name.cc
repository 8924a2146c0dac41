#include "support/reports/new_name.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace cepheus::reports {

std::string new_name(std::string_view suffix) {
  unsigned long long random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    random = static_cast<unsigned long long>(
        std::chrono::system_clock::now().time_since_epoch().count());
  }
  char text[48];
  std::snprintf(text, sizeof text, "%d-%016llx", static_cast<int>(getpid()), random);
  return text + std::string(suffix);
}

}  // namespace cepheus::reports
