// A measurement: its cases, the CPU time of all processes, and its printed line.
#pragma once

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/storage/meeting.h"

namespace cepheus::bench {

// CPU time in microseconds: of all processes that take part, and of the calling one, which holds the
// writer's program and its emulated NIC.
struct CpuTime {
  double all = 0, writer = 0;

  static CpuTime now(const std::vector<pid_t>& processes) {
    CpuTime found;
    for (const pid_t pid : processes) {
      clockid_t clock{};
      timespec t{};
      require(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0,
              "a process is gone");
      const double us = static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
      found.all += us;
      if (pid == getpid()) found.writer = us;
    }
    return found;
  }
  // Of one of `writes` WRITEs since `begin`.
  CpuTime of_each(const CpuTime& begin, std::size_t writes) const {
    const auto n = static_cast<double>(writes);
    return {(all - begin.all) / n, (writer - begin.writer) / n};
  }
};

struct Case {
  std::size_t size = 0;  // bytes a WRITE
  unsigned depth = 0;    // WRITEs under way

  // "SIZE:DEPTH".
  static Case parse(const std::string& text, unsigned most_depth, std::size_t most_bytes) {
    Case found;
    require(std::sscanf(text.c_str(), "%zu:%u", &found.size, &found.depth) == 2 &&
                found.size % 8 == 0 && found.size > 0 && found.depth > 0 &&
                found.depth <= most_depth && found.size * found.depth <= most_bytes,
            "SIZE:DEPTH is bytes, a multiple of 8, and 1 to " + std::to_string(most_depth) +
                " at once, together at most " + std::to_string(most_bytes >> 20) + " MiB: " + text);
    return found;
  }
};

// `latencies` of at least one WRITE, in microseconds, which took `seconds` together; `cpu` of one.
inline void print_row(const std::string& way, const Case& of, std::vector<double> latencies,
                      double seconds, const CpuTime& cpu) {
  std::sort(latencies.begin(), latencies.end());
  const auto n = static_cast<double>(latencies.size());
  const auto at = [&](double p) { return latencies[static_cast<std::size_t>(p * (n - 1) + 0.5)]; };
  std::puts(nlohmann::json({{"way", way},
                            {"size", of.size},
                            {"depth", of.depth},
                            {"rate", n / seconds},
                            {"median", at(0.5)},
                            {"p10", at(0.1)},
                            {"p90", at(0.9)},
                            {"n", latencies.size()},
                            {"cpu", cpu.all},
                            {"writer", cpu.writer}})
                .dump()
                .c_str());
}

// Runs `round` with 0, 1, 2, ... for each input line, and prints an empty line after each round.
template <typename Round>
void run_rounds(Round round) {
  unsigned number = 0;
  for (int c = 0; (c = std::getchar()) != EOF;) {
    if (c != '\n') continue;
    round(number++);
    std::puts("");
    std::fflush(stdout);
  }
}

}  // namespace cepheus::bench
